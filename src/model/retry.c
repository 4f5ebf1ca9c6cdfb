#include "model/retry.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BASE_DEFAULT_MS 2000
#define CAP_DEFAULT_MS 3600000
#define JITTER_PERCENT 10

/* Splits "a,b,c" into durations. */
static bool
read_steps(const char *text, int64_t *out, unsigned max, unsigned *n)
{
    *n = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        char part[32];

        if (*n == max || len == 0 || len >= sizeof(part))
            return false;
        memcpy(part, text, len);
        part[len] = '\0';
        if (!wr_text_duration(part, &out[(*n)++]))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

bool
wr_backoff_parse(const char *spec, struct wr_backoff *out)
{
    static const struct {
        const char *prefix;
        enum wr_backoff_kind kind;
        unsigned max;
    } kinds[] = {{"exp:", WR_BACKOFF_EXP, 2},
                 {"fixed:", WR_BACKOFF_FIXED, 1},
                 {"linear:", WR_BACKOFF_LINEAR, 2},
                 {"list:", WR_BACKOFF_LIST, WR_BACKOFF_MAX_STEPS}};

    *out = (struct wr_backoff){
        .kind = WR_BACKOFF_EXP, .base_ms = BASE_DEFAULT_MS, .cap_ms = CAP_DEFAULT_MS};
    if (!spec || *spec == '\0')
        return true;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t len = strlen(kinds[i].prefix);

        if (strncmp(spec, kinds[i].prefix, len) != 0)
            continue;
        out->kind = kinds[i].kind;
        if (!read_steps(spec + len, out->steps_ms, kinds[i].max, &out->steps))
            return false;
        out->base_ms = out->steps_ms[0];
        if (kinds[i].max == 2 && out->steps == 2)
            out->cap_ms = out->steps_ms[1];
        else if (out->cap_ms < out->base_ms) /* "exp:2h" means two hours at least */
            out->cap_ms = out->base_ms;
        return true;
    }
    return false;
}

/* Doubling stops at the cap, so nothing overflows however many attempts there were. */
static int64_t
exponential(int64_t base_ms, int64_t cap_ms, int64_t attempts)
{
    int64_t delay = base_ms;

    if (delay == 0)
        return 0;
    for (int64_t i = 1; i < attempts && delay < cap_ms; i++)
        delay *= 2;
    return delay < cap_ms ? delay : cap_ms;
}

int64_t
wr_backoff_delay_ms(const struct wr_backoff *b, int64_t attempts, uint64_t random)
{
    int64_t delay = b->base_ms, spread;

    if (attempts < 1)
        attempts = 1;
    switch (b->kind) {
    case WR_BACKOFF_EXP:
        delay = exponential(b->base_ms, b->cap_ms, attempts);
        break;
    case WR_BACKOFF_FIXED:
        return b->base_ms;
    case WR_BACKOFF_LINEAR:
        if (__builtin_mul_overflow(b->base_ms, attempts, &delay) || delay > b->cap_ms)
            delay = b->cap_ms;
        break;
    case WR_BACKOFF_LIST:
        return b->steps_ms[attempts <= (int64_t)b->steps ? attempts - 1 : b->steps - 1];
    }
    /* Jobs that failed together must not come back together. */
    spread = delay / 100 * JITTER_PERCENT;
    delay += (int64_t)(random % (uint64_t)(2 * spread + 1)) - spread;
    return delay < b->cap_ms ? delay : b->cap_ms;
}
