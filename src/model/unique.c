#include "model/unique.h"

#include <string.h>

static const char *const words[] = {"ready", "delayed", "processing", "dead", "done"};
#define WORDS (sizeof(words) / sizeof(words[0]))
#define WAITING 3U /* ready, delayed */
#define DEFAULT 7U /* and processing */

/* A bit a word; 0 if one is unknown. */
static unsigned
read_states(const char *spec)
{
    unsigned states = 0;

    for (;;) {
        size_t len = strcspn(spec, ","), i = 0;

        while (i < WORDS && (strlen(words[i]) != len || memcmp(words[i], spec, len) != 0))
            i++;
        if (i == WORDS)
            return 0;
        states |= 1U << i;
        if (spec[len] == '\0')
            return states;
        spec += len + 1;
    }
}

bool
wr_unique_states_write(const char *spec, struct wr_buf *out)
{
    unsigned states = spec && *spec ? read_states(spec) : DEFAULT;
    const char *comma = "";

    if ((states & WAITING) != WAITING)
        return false;
    for (size_t i = 0; out && states != DEFAULT && i < WORDS; i++) {
        if (states & 1U << i) {
            wr_buf_addf(out, "%s%s", comma, words[i]);
            comma = ",";
        }
    }
    return true;
}
