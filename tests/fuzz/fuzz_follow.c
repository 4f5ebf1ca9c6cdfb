/* Follow-up jobs as they lie in Redis: any bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_span text = {data, size}, then = text, channel;
    struct wr_buf type = {0}, queue = {0};
    struct wr_follow follow;
    size_t left = size;

    if (wr_follow_open(&text, &channel)) {
        left = text.len;
        while (wr_follow_next(&text, &follow)) {
            if (text.len >= left)
                abort();
            left = text.len;
        }
    }
    while (then.len > 0) {
        left = then.len;
        (void)wr_then_take(&then, &type, &queue);
        if (then.len >= left)
            abort();
    }
    wr_buf_fini(&type);
    wr_buf_fini(&queue);
    return 0;
}
