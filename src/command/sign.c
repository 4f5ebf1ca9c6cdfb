#include "command/sign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/error.h"
#include "base/text.h"

#define KEYS_MAX 8
#define KEY_MIN 16
#define KEY_MAX 1024
#define MAC_LEN 32

struct wr_keys {
    char key[KEYS_MAX][KEY_MAX + 2];
    size_t len[KEYS_MAX], n;
};

static enum weir_err
read_lines(FILE *f, const char *path, struct wr_keys *keys, struct weir_error *err)
{
    unsigned line = 0;

    while (keys->n < KEYS_MAX) {
        char *key = keys->key[keys->n];
        size_t len;

        if (!fgets(key, KEY_MAX + 2, f))
            break;
        line++;
        len = strcspn(key, "\r\n");
        if (len == 0 || *key == '#')
            continue;
        if (len < KEY_MIN || len > KEY_MAX)
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "key file %.150s:%u: a key has %d to %d bytes", path, line,
                           KEY_MIN, KEY_MAX);
        keys->len[keys->n++] = len;
    }
    if (ferror(f))
        return wr_fail(err, WEIR_E_CONFIG, errno, "key file %.150s", path);
    if (keys->n == 0)
        return wr_fail(err, WEIR_E_CONFIG, 0, "key file %.150s: it holds no key", path);
    return WEIR_OK;
}

enum weir_err
wr_keys_read(const char *path, struct wr_keys **out, struct weir_error *err)
{
    struct wr_keys *keys = calloc(1, sizeof(*keys));
    FILE *f = fopen(path, "re");
    enum weir_err rc;
    struct stat st;

    *out = NULL;
    if (!keys)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "key file");
    else if (!f || fstat(fileno(f), &st) != 0)
        rc = wr_fail(err, WEIR_E_CONFIG, errno, "key file %.150s", path);
    else if (st.st_mode & (S_IROTH | S_IWOTH))
        rc = wr_fail(err, WEIR_E_CONFIG, 0,
                     "key file %.150s: everybody may read or write it: chmod o= it",
                     path);
    else
        rc = read_lines(f, path, keys, err);
    if (f)
        fclose(f);
    if (rc != WEIR_OK) {
        wr_keys_free(keys);
        return rc;
    }
    *out = keys;
    return WEIR_OK;
}

void
wr_keys_free(struct wr_keys *keys)
{
    if (keys)
        explicit_bzero(keys, sizeof(*keys));
    free(keys);
}

/* What comes before the signed bytes, so that they count for one job alone. */
static bool
preface(const char *queue, const char *id, struct wr_buf *out)
{
    wr_buf_add_str(out, "weir-command/1\nqueue ");
    wr_text_word_encode(out, wr_span_str(queue));
    wr_buf_add_str(out, "\nid ");
    wr_text_word_encode(out, wr_span_str(id));
    wr_buf_add_str(out, "\n");
    return !out->failed;
}

static bool
hmac(const char *key, size_t key_len, struct wr_span first, struct wr_span second,
     unsigned char out[MAC_LEN])
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *c = mac ? EVP_MAC_CTX_new(mac) : NULL;
    size_t len = 0;
    bool good = c && EVP_MAC_init(c, (const unsigned char *)key, key_len, params) == 1 &&
                EVP_MAC_update(c, first.ptr, first.len) == 1 &&
                EVP_MAC_update(c, second.ptr, second.len) == 1 &&
                EVP_MAC_final(c, out, &len, MAC_LEN) == 1 && len == MAC_LEN;

    EVP_MAC_CTX_free(c);
    EVP_MAC_free(mac);
    return good;
}

static bool
sign_with(const struct wr_keys *keys, size_t which, struct wr_span before,
          struct wr_span bytes, char out[WR_COMMAND_SIGN_LEN + 1])
{
    unsigned char mac[MAC_LEN];

    if (!hmac(keys->key[which], keys->len[which], before, bytes, mac))
        return false;
    for (size_t i = 0; i < MAC_LEN; i++)
        snprintf(out + 2 * i, 3, "%02x", mac[i]);
    return true;
}

bool
wr_command_sign(const struct wr_keys *keys, const char *queue, const char *id,
                struct wr_span written, char out[WR_COMMAND_SIGN_LEN + 1])
{
    struct wr_buf before = {0};
    bool good = preface(queue, id, &before) &&
                sign_with(keys, 0, wr_buf_span(&before), written, out);

    wr_buf_fini(&before);
    return good;
}

const char *
wr_command_verify(const struct wr_keys *keys, const char *queue, const char *id,
                  const struct wr_command *c, int64_t now_ms)
{
    char expected[WR_COMMAND_SIGN_LEN + 1];
    struct wr_buf before = {0};
    bool good = false;

    if (c->sign[0] == '\0')
        return "it is not signed";
    if (preface(queue, id, &before)) {
        for (size_t i = 0; i < keys->n && !good; i++)
            good = sign_with(keys, i, wr_buf_span(&before), c->signed_bytes, expected) &&
                   CRYPTO_memcmp(expected, c->sign, WR_COMMAND_SIGN_LEN) == 0;
    }
    wr_buf_fini(&before);
    if (!good)
        return "its signature is wrong: another key, or somebody changed it";
    if (c->until_ms == 0 || c->until_ms < now_ms)
        return "its signature is over";
    return NULL;
}
