#include "audit/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
compare_ids(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool
wr_id_set_has(const struct wr_id_set *set, struct wr_span id)
{
    char text[260], *key = text;

    snprintf(text, sizeof(text), "%.*s", (int)id.len, (const char *)id.ptr);
    return set->n > 0 &&
           bsearch(&key, set->ids, set->n, sizeof(set->ids[0]), compare_ids) != NULL;
}

bool
wr_id_set_add(struct wr_id_set *set, struct wr_span id)
{
    if (set->n == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 1024;
        char **ids = realloc(set->ids, cap * sizeof(*ids));

        if (!ids)
            return false;
        set->ids = ids;
        set->cap = cap;
    }
    set->ids[set->n] = strndup(id.ptr, id.len);
    return set->ids[set->n++] != NULL;
}

void
wr_id_set_sort(struct wr_id_set *set)
{
    if (set->n > 0)
        qsort(set->ids, set->n, sizeof(set->ids[0]), compare_ids);
}

void
wr_id_set_fini(struct wr_id_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->ids[i]);
    free(set->ids);
}

static uint64_t
mark_of(const char *kind, struct wr_span id)
{
    uint64_t mark = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *kind; kind++)
        mark = (mark ^ (unsigned char)*kind) * UINT64_C(1099511628211);
    for (size_t i = 0; i < id.len; i++)
        mark = (mark ^ ((const unsigned char *)id.ptr)[i]) * UINT64_C(1099511628211);
    return mark ? mark : 1;
}

/* Where the mark is, or would be. There is a free place. */
static uint64_t *
place_of(const struct wr_said *said, uint64_t mark)
{
    size_t at = (size_t)mark & (said->cap - 1);

    while (said->marks[at] != 0 && said->marks[at] != mark)
        at = (at + 1) & (said->cap - 1);
    return &said->marks[at];
}

static bool
grow(struct wr_said *said)
{
    struct wr_said larger = {.n = said->n, .cap = said->cap ? 2 * said->cap : 64};

    larger.marks = calloc(larger.cap, sizeof(larger.marks[0]));
    if (!larger.marks)
        return false;
    for (size_t i = 0; i < said->cap; i++) {
        if (said->marks[i] != 0)
            *place_of(&larger, said->marks[i]) = said->marks[i];
    }
    free(said->marks);
    *said = larger;
    return true;
}

bool
wr_said_before(struct wr_said *said, const char *kind, struct wr_span id)
{
    uint64_t mark = mark_of(kind, id), *place;

    if (2 * said->n >= said->cap && !grow(said))
        return false;
    place = place_of(said, mark);
    if (*place != 0)
        return true;
    *place = mark;
    said->n++;
    return false;
}

void
wr_said_fini(struct wr_said *said)
{
    free(said->marks);
}
