/*
 * Which types a worker child tells reserve that it runs: those of its handlers, less
 * those whose handler is broken for a while (its command cannot be started).
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "worker/io.h"

/* A longer list is not told: what comes and has no handler is put off after the claim. */
#define TYPES_MAX_BYTES 16384

static bool
is_any(const struct wr_handler *h)
{
    return strcmp(h->type, "*") == 0;
}

/* Is any handler broken that was not, or well again? */
static bool
note_broken(const struct weir_worker *w, int64_t now)
{
    bool changed = false;

    for (struct wr_handler *h = w->handlers; h; h = h->next) {
        bool broken = atomic_load_explicit(&h->broken_until_ms, memory_order_relaxed) >
                      now;

        changed = changed || broken != h->left_out;
        h->left_out = broken;
    }
    return changed;
}

static void
add_types(struct wr_buf *out, const struct weir_worker *w, bool left_out)
{
    wr_buf_add_str(out, " ");
    for (const struct wr_handler *h = w->handlers; h; h = h->next) {
        if (is_any(h) || h->left_out != left_out)
            continue;
        wr_text_word_encode(out, wr_span_str(h->type));
        wr_buf_add_str(out, " ");
    }
}

/* "": everything. " a b ": these. "! a b ": everything but these. */
static void
list_types(struct wr_io *io)
{
    bool everything = false, nothing = true, none_out = true;

    for (const struct wr_handler *h = io->w->handlers; h; h = h->next) {
        everything = everything || (is_any(h) && !h->left_out);
        nothing = nothing && h->left_out;
        none_out = none_out && !h->left_out;
    }
    wr_buf_clear(&io->types);
    io->knows_nothing = nothing;
    if (everything && none_out)
        return;
    if (everything)
        wr_buf_add_str(&io->types, "!");
    add_types(&io->types, io->w, everything);
    if (io->types.failed || io->types.len > TYPES_MAX_BYTES)
        wr_buf_clear(&io->types);
}

/* For the beat. */
static void
tell_broken(const struct wr_io *io)
{
    struct wr_slots *page = io->o->page;
    struct wr_buf out = {0};

    for (const struct wr_handler *h = io->w->handlers; h; h = h->next) {
        if (h->left_out)
            wr_buf_addf(&out, "%s%s", out.len ? "," : "", h->type);
    }
    snprintf(page->broken, sizeof(page->broken), "%s",
             (const char *)wr_buf_span(&out).ptr);
    wr_buf_fini(&out);
}

void
wr_io_look_at_types(struct wr_io *io, int64_t now)
{
    if (note_broken(io->w, now) || !io->types_listed) {
        list_types(io);
        tell_broken(io);
    }
    io->types_listed = true;
}
