#include "cron/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define HEADER_LEN 44
#define CHANGES_MAX 65536
#define PATH_BYTES 1024

struct wr_zone {
    size_t changes;
    int64_t *at;     /* rising */
    int32_t *offset; /* changes + 1 of them: offset[i] is right before at[i] */
    bool has_rule;   /* after the last change */
    struct wr_rule rule;
};

/* ---- names and files ---- */

static bool
is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '+' || c == '-' || c == '.' || c == '/';
}

bool
wr_zone_is_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > WR_ZONE_NAME_MAX || name[len - 1] == '/')
        return false;
    for (size_t i = 0; i < len; i++) {
        bool begins = i == 0 || name[i - 1] == '/';

        if (!is_name_char(name[i]) || (begins && (name[i] == '.' || name[i] == '/')))
            return false;
    }
    return true;
}

/* The zones of this machine and of the person, not of the world. */
static bool
is_local_name(const char *name)
{
    return strcmp(name, "localtime") == 0 || strcmp(name, "posixrules") == 0;
}

static const char *
zone_dir(void)
{
    const char *dir = getenv("TZDIR");

    return dir && *dir ? dir : WR_ZONE_DIR;
}

/* Is this name missing, or are there no zones at all? Those are different troubles. */
static enum weir_err
say_missing(const char *name, const char *dir, struct weir_error *err)
{
    char path[PATH_BYTES];
    struct stat st;
    int len = snprintf(path, sizeof(path), "%s/Europe/London", dir);

    if (len < 0 || (size_t)len >= sizeof(path) || stat(path, &st) != 0)
        return wr_fail(
            err, WEIR_E_CONFIG, 0,
            "zone %s: no time zone files in %.100s; install the package tzdata", name,
            dir);
    return wr_fail(err, WEIR_E_DATA, 0,
                   "no such time zone: %s (write one as Europe/Berlin or UTC)", name);
}

/* The whole file, at most WR_ZONE_FILE_MAX bytes; never waits (a FIFO, a device). */
static enum weir_err
read_file(int fd, const char *name, unsigned char **out, size_t *len,
          struct weir_error *err)
{
    struct stat st;
    unsigned char *bytes;
    size_t n = 0;
    ssize_t got = 1;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > WR_ZONE_FILE_MAX)
        return wr_fail(err, WEIR_E_DATA, 0, "no such time zone: %s", name);
    bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "zone %s", name);
    while (got > 0 && n < (size_t)st.st_size) {
        got = read(fd, bytes + n, (size_t)st.st_size - n);
        if (got > 0)
            n += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (got < 0) {
        free(bytes);
        return wr_fail(err, WEIR_E_CONFIG, errno, "zone %s", name);
    }
    *out = bytes;
    *len = n;
    return WEIR_OK;
}

static enum weir_err
open_file(const char *name, unsigned char **out, size_t *len, struct weir_error *err)
{
    const char *dir = zone_dir();
    char path[PATH_BYTES];
    enum weir_err rc;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name), fd;

    if (n < 0 || (size_t)n >= sizeof(path))
        return wr_fail(err, WEIR_E_CONFIG, 0, "TZDIR is too long");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return say_missing(name, dir, err);
    if (fd < 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "zone %s", name);
    rc = read_file(fd, name, out, len, err);
    close(fd);
    return rc;
}

/* ---- the format ---- */

static uint32_t
be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int32_t
signed32(uint32_t n)
{
    return n <= INT32_MAX ? (int32_t)n : (int32_t)((int64_t)n - (INT64_C(1) << 32));
}

static int64_t
signed_of(const unsigned char *p, size_t width)
{
    uint64_t n;

    if (width == 4)
        return signed32(be32(p));
    n = (uint64_t)be32(p) << 32 | be32(p + 4);
    return n <= INT64_MAX ? (int64_t)n : -(int64_t)(UINT64_MAX - n) - 1;
}

/* One of the one or two blocks of a file: its header's numbers, and where its data is. */
struct block {
    char version;
    size_t ut, standard, leaps, changes, types, chars;
    size_t width; /* of a time: 4 or 8 */
    const unsigned char *data;
    size_t data_len;
};

static bool
read_header(const unsigned char *p, size_t len, size_t width, struct block *out)
{
    if (len < HEADER_LEN || memcmp(p, "TZif", 4) != 0)
        return false;
    *out = (struct block){
        .version = (char)p[4],
        .ut = be32(p + 20),
        .standard = be32(p + 24),
        .leaps = be32(p + 28),
        .changes = be32(p + 32),
        .types = be32(p + 36),
        .chars = be32(p + 40),
        .width = width,
        .data = p + HEADER_LEN,
    };
    /* A byte each at least: so no sum below can overflow. */
    if (out->ut > len || out->standard > len || out->leaps > len || out->changes > len ||
        out->types > len || out->chars > len)
        return false;
    out->data_len = out->changes * (width + 1) + out->types * 6 + out->chars +
                    out->leaps * (width + 4) + out->standard + out->ut;
    return out->data_len <= len - HEADER_LEN;
}

static const char *
fill_changes(struct wr_zone *z, const struct block *b)
{
    const unsigned char *index = b->data + b->changes * b->width;
    const unsigned char *types = index + b->changes;

    for (size_t i = 0; i <= b->changes; i++) {
        size_t type = i == 0 ? 0 : index[i - 1];
        int32_t offset;

        if (type >= b->types)
            return "a change to a type that is not there";
        offset = signed32(be32(types + 6 * type));
        if (offset > WR_OFFSET_MAX_S || offset < -WR_OFFSET_MAX_S)
            return "an offset of more than a day";
        z->offset[i] = offset;
        if (i == b->changes)
            break;
        z->at[i] = signed_of(b->data + i * b->width, b->width);
        if (i > 0 && z->at[i] <= z->at[i - 1])
            return "changes out of order";
    }
    z->changes = b->changes;
    return NULL;
}

/* The footer: "\nRULE\n"; an empty one says that the last offset stays. */
static const char *
fill_rule(struct wr_zone *z, const unsigned char *p, const unsigned char *end)
{
    const unsigned char *stop;

    if (p == end || *p != '\n')
        return "no last line";
    p++;
    stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop)
        return "no end of the last line";
    if (stop == p)
        return NULL;
    if (!wr_rule_parse((const char *)p, (size_t)(stop - p), &z->rule))
        return "a last line that is no rule";
    z->has_rule = true;
    return NULL;
}

static const char *
fill_zone(struct wr_zone *z, const unsigned char *p, size_t len)
{
    const unsigned char *end = p + len;
    const char *wrong;
    struct block b;

    if (!read_header(p, len, 4, &b))
        return "no TZif file";
    if (b.version >= '2') {
        const unsigned char *second = b.data + b.data_len;

        if (!read_header(second, (size_t)(end - second), 8, &b))
            return "no 64-bit data";
    }
    if (b.types == 0 || b.changes > CHANGES_MAX)
        return "no types, or too many changes";
    if (b.leaps > 0)
        return "it counts leap seconds, which clocks of servers do not";
    z->at = calloc(b.changes + 1, sizeof(*z->at));
    z->offset = calloc(b.changes + 1, sizeof(*z->offset));
    if (!z->at || !z->offset)
        return "out of memory";
    wrong = fill_changes(z, &b);
    if (!wrong && b.version >= '2')
        wrong = fill_rule(z, b.data + b.data_len, end);
    return wrong;
}

enum weir_err
wr_zone_read(const void *bytes, size_t len, struct wr_zone **out, struct weir_error *err)
{
    struct wr_zone *z = calloc(1, sizeof(*z));
    const char *wrong;

    *out = NULL;
    if (!z)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "zone");
    wrong = fill_zone(z, bytes, len);
    if (wrong) {
        wr_zone_free(z);
        return wr_fail(err, WEIR_E_DATA, 0, "%s", wrong);
    }
    *out = z;
    return WEIR_OK;
}

/* The zone without a file. */
static struct wr_zone *
make_utc(void)
{
    struct wr_zone *z = calloc(1, sizeof(*z));

    if (!z)
        return NULL;
    z->offset = calloc(1, sizeof(*z->offset));
    if (z->offset)
        return z;
    free(z);
    return NULL;
}

enum weir_err
wr_zone_open(const char *name, struct wr_zone **out, struct weir_error *err)
{
    struct weir_error why = {0};
    unsigned char *bytes = NULL;
    size_t len = 0;
    enum weir_err rc;

    *out = NULL;
    if (strcmp(name, "UTC") == 0) {
        *out = make_utc();
        return *out ? WEIR_OK : wr_fail(err, WEIR_E_NO_MEMORY, 0, "zone");
    }
    if (!wr_zone_is_name(name))
        return wr_fail(err, WEIR_E_DATA, 0,
                       "no name of a time zone: write it as Europe/Berlin or UTC");
    if (is_local_name(name))
        return wr_fail(err, WEIR_E_DATA, 0,
                       "zone %s: differs from machine to machine; name the zone", name);
    rc = open_file(name, &bytes, &len, err);
    if (rc != WEIR_OK)
        return rc;
    rc = wr_zone_read(bytes, len, out, &why);
    free(bytes);
    if (rc == WEIR_E_DATA)
        return wr_fail(err, rc, 0, "zone %s: %.150s", name, why.text);
    if (rc != WEIR_OK)
        return wr_fail(err, rc, 0, "zone %s", name);
    return WEIR_OK;
}

void
wr_zone_free(struct wr_zone *zone)
{
    if (!zone)
        return;
    free(zone->at);
    free(zone->offset);
    free(zone);
}

/* ---- looking up ---- */

/* How many changes are at or before t. */
static size_t
changes_until(const struct wr_zone *z, int64_t t)
{
    size_t low = 0, high = z->changes;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (z->at[mid] <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct wr_zone_span
wr_zone_at(const struct wr_zone *z, int64_t t)
{
    size_t i = changes_until(z, t);
    struct wr_zone_span span = {
        .from = i > 0 ? z->at[i - 1] : INT64_MIN,
        .until = i < z->changes ? z->at[i] : INT64_MAX,
        .offset = z->offset[i],
    };

    if (i == z->changes && z->has_rule) {
        int64_t from, until;

        span.offset = wr_rule_at(&z->rule, t, &from, &until);
        span.until = until;
        if (from > span.from)
            span.from = from;
    }
    return span;
}
