#include "model/state.h"

#include <stddef.h>
#include <string.h>

static const char *const words[] = {
#define X(name, word, text) [WR_STATE_##name] = word,
    WR_STATES(X)
#undef X
};

const char *
wr_state_word(enum wr_state state)
{
    return words[state];
}

bool
wr_state_parse(const char *word, enum wr_state *out)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0) {
            *out = (enum wr_state)i;
            return true;
        }
    }
    return false;
}
