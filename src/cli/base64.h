/* cli/base64.h - bytes as text, for JSON (RFC 4648, with padding). */
#ifndef WR_CLI_BASE64_H
#define WR_CLI_BASE64_H

#include <stdbool.h>
#include <stddef.h>

char *cli_base64_write(const void *ptr, size_t len); /* free() it */
/* Into out (free() it). False: not base64. */
bool cli_base64_read(const char *text, size_t text_len, void **out, size_t *len);

#endif
