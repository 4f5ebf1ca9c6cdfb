#include "model/retry.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define BASE_DEFAULT_MS 2000
#define CAP_DEFAULT_MS 3600000
#define JITTER_DEFAULT 10

/* "25%", 0 to 100. */
static bool
read_percent(const char *text, unsigned *out)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 3 || strcmp(text + digits, "%") != 0)
        return false;
    *out = (unsigned)atoi(text);
    return *out <= 100;
}

/* Splits "a,b,c" into durations; a last "25%" is the jitter. */
static bool
read_steps(const char *text, struct wr_backoff *out, unsigned max)
{
    out->steps = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        char part[32];

        if (len == 0 || len >= sizeof(part))
            return false;
        memcpy(part, text, len);
        part[len] = '\0';
        if (part[len - 1] == '%')
            return text[len] == '\0' && out->steps > 0 &&
                   read_percent(part, &out->jitter);
        if (out->steps == max || !wr_text_duration(part, &out->steps_ms[out->steps++]))
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

    *out = (struct wr_backoff){.kind = WR_BACKOFF_EXP,
                               .base_ms = BASE_DEFAULT_MS,
                               .cap_ms = CAP_DEFAULT_MS,
                               .jitter = JITTER_DEFAULT};
    if (!spec || *spec == '\0')
        return true;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t len = strlen(kinds[i].prefix);

        if (strncmp(spec, kinds[i].prefix, len) != 0)
            continue;
        out->kind = kinds[i].kind;
        if (out->kind == WR_BACKOFF_FIXED || out->kind == WR_BACKOFF_LIST)
            out->jitter = 0;
        if (!read_steps(spec + len, out, kinds[i].max))
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

/* Without jitter. */
static int64_t
exact_delay(const struct wr_backoff *b, int64_t attempts)
{
    int64_t delay;

    switch (b->kind) {
    case WR_BACKOFF_EXP:
        return exponential(b->base_ms, b->cap_ms, attempts);
    case WR_BACKOFF_LINEAR:
        if (__builtin_mul_overflow(b->base_ms, attempts, &delay) || delay > b->cap_ms)
            delay = b->cap_ms;
        return delay;
    case WR_BACKOFF_LIST:
        return b->steps_ms[attempts <= (int64_t)b->steps ? attempts - 1 : b->steps - 1];
    case WR_BACKOFF_FIXED:
        break;
    }
    return b->base_ms;
}

/* Jobs that failed together must not come back together. */
int64_t
wr_backoff_delay_ms(const struct wr_backoff *b, int64_t attempts, uint64_t random)
{
    int64_t delay = exact_delay(b, attempts < 1 ? 1 : attempts), spread;
    bool capped = b->kind == WR_BACKOFF_EXP || b->kind == WR_BACKOFF_LINEAR;

    /* Small ones to the ms; large ones must not overflow. */
    spread = delay < 1000000 ? delay * b->jitter / 100 : delay / 100 * b->jitter;
    delay += (int64_t)(random % (uint64_t)(2 * spread + 1)) - spread;
    return capped && delay > b->cap_ms ? b->cap_ms : delay;
}
