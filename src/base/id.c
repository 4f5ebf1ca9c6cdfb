#include "base/id.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/rand.h"

#define RANDOM_BITS 52

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

/* The last id of this process; guarded by mu. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_ms;
static uint64_t last_random;
static pid_t owner;
static pthread_once_t fork_hooks_once = PTHREAD_ONCE_INIT;

/* fork() may come while another thread holds mu; the child would wait for ever. */
static void
lock(void)
{
    pthread_mutex_lock(&mu);
}

static void
unlock(void)
{
    pthread_mutex_unlock(&mu);
}

static void
install_fork_hooks(void)
{
    int rc = pthread_atfork(lock, unlock, unlock);

    WR_ASSERT(rc == 0);
}

static uint64_t
random_52(void)
{
    return wr_rand_below(UINT64_C(1) << RANDOM_BITS);
}

/* Within one ms the random part counts up by steps that differ, so that it rises: ids are
 * distinct, not secret. When it would overflow the time goes on by one. */
static void
next_id(int64_t *ms, uint64_t *random)
{
    int64_t now = wr_clock_wall_ms();
    pid_t self = getpid();

    pthread_once(&fork_hooks_once, install_fork_hooks);
    pthread_mutex_lock(&mu);
    if (owner != self || now > last_ms) {
        owner = self;
        last_ms = now > last_ms ? now : last_ms;
        last_random = random_52() >> 1; /* room to count up */
    } else {
        last_random += 1 + (last_random & 0xffff);
        if (last_random >> RANDOM_BITS) {
            last_ms++;
            last_random = random_52() >> 1;
        }
    }
    *ms = last_ms;
    *random = last_random;
    pthread_mutex_unlock(&mu);
}

void
wr_id_make(char out[WR_ID_LEN + 1])
{
    uint64_t random, high;
    int64_t ms;

    next_id(&ms, &random);
    /* 48 bits of time and 52 random ones are 100 bits: 20 digits of 5. */
    high = ((uint64_t)ms & 0xffffffffffff) << 2 | random >> 50;
    for (int i = 9; i >= 0; i--, high >>= 5)
        out[i] = digits[high & 31];
    random &= (UINT64_C(1) << 50) - 1;
    for (int i = 19; i >= 10; i--, random >>= 5)
        out[i] = digits[random & 31];
    out[WR_ID_LEN] = '\0';
}

void
wr_id_make_worker(char out[97])
{
    unsigned char bytes[8];
    char host[48] = "host";

    if (gethostname(host, sizeof(host) - 1) != 0)
        snprintf(host, sizeof(host), "host");
    host[sizeof(host) - 1] = '\0';
    for (char *p = host; *p; p++) {
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            *p = '_';
    }
    wr_rand_bytes(bytes, sizeof(bytes));
    snprintf(out, 97, "%s.%d.%02x%02x%02x%02x%02x%02x%02x%02x", host, (int)getpid(),
             bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6],
             bytes[7]);
}
