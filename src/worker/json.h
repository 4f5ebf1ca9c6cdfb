/* worker/json.h - is it JSON? (RFC 8259, UTF-8, at most 512 deep.) Nothing is kept. */
#ifndef WR_WORKER_JSON_H
#define WR_WORKER_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* One JSON text with nothing but blanks around it; else false, and *at is where it goes
 * wrong. */
bool wr_json_is_valid(struct wr_span text, size_t *at);

#endif
