/* Addresses: what is taken stays in its bounds and is shown without the password. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1), shown[420], other[420];
    struct weir_error err = {0};
    struct wr_url url, again;

    if (!text)
        return 0;
    if (len > 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    if (wr_url_parse(text, &url, &err) == WEIR_OK) {
        if (url.db < 0 || (!url.is_unix && (url.port < 1 || url.port > 65535)) ||
            strlen(url.host) == 0 || (url.is_unix && strlen(url.host) > 107))
            abort();
        wr_url_show(&url, shown, sizeof(shown));
        again = url;
        if (again.password[0])
            snprintf(again.password, sizeof(again.password), "another");
        wr_url_show(&again, other, sizeof(other));
        if (strcmp(shown, other) != 0) /* it depends on what the password is */
            abort();
        if (wr_url_parse(shown, &again, NULL) == WEIR_OK && again.db != url.db)
            abort();
        wr_url_wipe(&url);
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    free(text);
    return 0;
}
