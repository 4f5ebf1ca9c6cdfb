#include "worker/slots.h"

#include <string.h>
#include <sys/mman.h>

static size_t
size_of(size_t n)
{
    return sizeof(struct wr_slots) + n * sizeof(struct wr_slot);
}

struct wr_slots *
wr_slots_new(size_t n)
{
    void *at = mmap(NULL, size_of(n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);
    struct wr_slots *slots = at;

    if (at == MAP_FAILED)
        return NULL;
    slots->n = n;
    return slots;
}

void
wr_slots_clear(struct wr_slots *slots)
{
    size_t n = slots->n;

    memset(slots, 0, size_of(n));
    slots->n = n;
}

void
wr_slots_free(struct wr_slots *slots)
{
    if (slots)
        munmap(slots, size_of(slots->n));
}
