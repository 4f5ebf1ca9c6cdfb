#include "cli/check.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum unit {
    NUMBER,
    AGE /* the value is a time; what counts is how long ago it is */
};

/* clang-format off */
static const struct row {
    const char *name;
    size_t field;
    enum unit unit;
} rows[] = {
#define FIELD(member) offsetof(struct weir_audit, member)
    {"ready", FIELD(ready), NUMBER}, {"delayed", FIELD(delayed), NUMBER},
    {"processing", FIELD(processing), NUMBER}, {"dead", FIELD(dead), NUMBER},
    {"done", FIELD(done), NUMBER}, {"overdue", FIELD(overdue), NUMBER},
    {"stuck", FIELD(stuck), NUMBER}, {"gap", FIELD(gap), NUMBER},
    {"stale", FIELD(stale), NUMBER}, {"retried", FIELD(retried), NUMBER},
    {"reclaimed", FIELD(reclaimed), NUMBER},
    {"age", FIELD(oldest_ready), AGE}, {"lag", FIELD(next_due), AGE},
#undef FIELD
};
/* clang-format on */

struct condition {
    const struct row *row;
    char op[3];
    int64_t limit;
    char text[80];
};

static const struct row *
find_row(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Reads one condition and moves over it and its comma. */
static bool
read_condition(const char **at, struct condition *c)
{
    size_t len = strcspn(*at, ","), name, op;
    const char *value;

    if (len == 0 || len >= sizeof(c->text))
        return false;
    snprintf(c->text, sizeof(c->text), "%.*s", (int)len, *at);
    *at += len + ((*at)[len] == ',');
    name = strcspn(c->text, "<>=!");
    op = strspn(c->text + name, "<>=!");
    value = c->text + name + op;
    c->row = find_row(c->text, name);
    if (!c->row || op == 0 || op >= sizeof(c->op))
        return false;
    memcpy(c->op, c->text + name, op);
    c->op[op] = '\0';
    if (!strstr(" < <= > >= = == != ", c->op) || strcmp(c->op, "!") == 0)
        return false;
    return c->row->unit == AGE ? wr_text_duration(value, &c->limit)
                               : wr_text_int(value, INT64_MIN + 1, INT64_MAX, &c->limit);
}

enum weir_err
cli_check_parse(const char *expr, struct weir_error *err)
{
    struct condition c;

    do {
        if (!read_condition(&expr, &c))
            return wr_fail(err, WEIR_E_ARG, 0,
                           "--check: \"%.60s\" is not like dead<10 or age<60s (ready "
                           "delayed processing dead done overdue stuck gap stale retried "
                           "reclaimed age lag)",
                           c.text);
    } while (*expr);
    return WEIR_OK;
}

static bool
holds(const struct condition *c, int64_t value)
{
    bool equal = value == c->limit;

    if (strcmp(c->op, "<") == 0)
        return value < c->limit;
    if (strcmp(c->op, "<=") == 0)
        return value <= c->limit;
    if (strcmp(c->op, ">") == 0)
        return value > c->limit;
    if (strcmp(c->op, ">=") == 0)
        return value >= c->limit;
    return strcmp(c->op, "!=") == 0 ? !equal : equal;
}

bool
cli_check_holds(const char *expr, const struct weir_audit *audit, char *why,
                size_t why_cap)
{
    struct condition c;

    while (*expr && read_condition(&expr, &c)) {
        int64_t value;

        memcpy(&value, (const char *)audit + c.row->field, sizeof(value));
        if (c.row->unit == AGE)
            value = value > 0 && value < audit->now ? audit->now - value : 0;
        if (!holds(&c, value)) {
            snprintf(why, why_cap, "%s does not hold: it is %lld%s", c.text,
                     (long long)value, c.row->unit == AGE ? "ms" : "");
            return false;
        }
    }
    return true;
}
