#include "worker/turns.h"

#include "base/clock.h"
#include "base/cond.h"

void
wr_turns_init(struct wr_turns *t)
{
    *t = (struct wr_turns){.first = false};
    pthread_mutex_init(&t->mu, NULL);
    (void)wr_cond_init(&t->changed);
}

void
wr_turns_fini(struct wr_turns *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mu);
}

bool
wr_turns_claim(struct wr_turns *t, int64_t until_ms)
{
    bool mine;

    pthread_mutex_lock(&t->mu);
    t->first = true;
    while (t->second && wr_clock_ms() < until_ms)
        (void)wr_cond_wait_until(&t->changed, &t->mu, until_ms);
    mine = !t->second;
    pthread_mutex_unlock(&t->mu);
    return mine;
}

void
wr_turns_leave(struct wr_turns *t)
{
    pthread_mutex_lock(&t->mu);
    t->first = false;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mu);
}

void
wr_turns_take(struct wr_turns *t)
{
    pthread_mutex_lock(&t->mu);
    while (t->first)
        pthread_cond_wait(&t->changed, &t->mu);
    t->second = true;
    pthread_mutex_unlock(&t->mu);
}

void
wr_turns_give(struct wr_turns *t)
{
    pthread_mutex_lock(&t->mu);
    t->second = false;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mu);
}
