/* base/base64.h - bytes as text (RFC 4648, with padding). */
#ifndef WR_BASE_BASE64_H
#define WR_BASE_BASE64_H

#include <stdbool.h>

#include "base/buf.h"

void wr_base64_write(struct wr_buf *out, struct wr_span bytes); /* appends */
/* Appends. False: not base64, and then nothing was appended. */
bool wr_base64_read(struct wr_buf *out, struct wr_span text);

#endif
