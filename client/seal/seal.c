/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - one block of AES over an ID and a check, as Base62.
 *
 * Invariant: an ID comes out only with the whole check; every key is tried,
 * whichever fits, and nothing branches on what a block opens to.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base62.h"
#include "bytes.h"
#include "firn-seal.h"

#define BLOCK 16
#define KEY_MAX 32
#define WIDTH (FIRN_SEAL_TEXT_MAX - 1)
#define BASE 62

/* Keys are for AES and for this alone: another version derives others. */
static const char label[] = "firn-seal-1";
static const unsigned char check[8] = { 'f', 'i', 'r', 'n', 's', 'e', 'a',
	'l' };

struct firn_seal {
	EVP_CIPHER *cipher;
	size_t count;
	unsigned char keys[FIRN_SEAL_KEYS_MAX][KEY_MAX];
};

/* ---- keys ---- */

/* HMAC-SHA-256 of the label, its NUL and the purpose, cut to the key's size. */
static bool
derive(const unsigned char *key, size_t size, const char *purpose,
    unsigned char out[KEY_MAX])
{
	size_t n = strlen(purpose);
	unsigned char *data = malloc(sizeof(label) + n);
	bool done;

	if (data == NULL)
		return (false);
	memcpy(data, label, sizeof(label));
	memcpy(data + sizeof(label), purpose, n);
	done = HMAC(EVP_sha256(), key, (int)size, data, sizeof(label) + n, out,
		   NULL) != NULL;
	free(data);
	return (done);
}

int
firn_seal_open(struct firn_seal **out, const unsigned char *keys, size_t size,
    size_t count, const char *purpose)
{
	struct firn_seal *s;
	bool good;

	if (out == NULL || keys == NULL || (size != 16 && size != 32) ||
	    count == 0 || count > FIRN_SEAL_KEYS_MAX)
		return (FIRN_EINVAL);
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return (FIRN_ENOMEM);
	s->count = count;
	s->cipher = EVP_CIPHER_fetch(
	    NULL, size == 16 ? "AES-128-ECB" : "AES-256-ECB", NULL);
	good = s->cipher != NULL;
	for (size_t i = 0; i < count && good; i++)
		good = derive(keys + i * size, size,
		    purpose == NULL ? "" : purpose, s->keys[i]);
	if (!good) {
		firn_seal_close(s);
		return (FIRN_ENOMEM);
	}
	*out = s;
	return (FIRN_OK);
}

void
firn_seal_close(struct firn_seal *s)
{
	if (s == NULL)
		return;
	EVP_CIPHER_free(s->cipher);
	OPENSSL_cleanse(s, sizeof(*s));
	free(s);
}

/* ---- one block ---- */

static bool
crypt_block(const struct firn_seal *s, size_t key, bool encrypt,
    const unsigned char in[BLOCK], unsigned char out[BLOCK])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;
	bool done;

	if (ctx == NULL)
		return (false);
	done = EVP_CipherInit_ex2(
		   ctx, s->cipher, s->keys[key], NULL, encrypt, NULL) == 1 &&
	       EVP_CIPHER_CTX_set_padding(ctx, 0) == 1 &&
	       EVP_CipherUpdate(ctx, out, &n, in, BLOCK) == 1 && n == BLOCK;
	EVP_CIPHER_CTX_free(ctx);
	return (done);
}

/* ---- text: 128 bits as digits of 62 ---- */

static void
write_text(const unsigned char block[BLOCK], char text[FIRN_SEAL_TEXT_MAX])
{
	unsigned char n[BLOCK];

	memcpy(n, block, BLOCK);
	text[WIDTH] = '\0';
	for (size_t i = WIDTH; i > 0; i--) {
		unsigned rest = 0;

		for (size_t k = 0; k < BLOCK; k++) {
			rest = rest << 8 | n[k];
			n[k] = (unsigned char)(rest / BASE);
			rest %= BASE;
		}
		text[i - 1] = base62_radix.digits[rest];
	}
}

/* FIRN_EINVAL: another form; FIRN_ESEAL: over 128 bits, so never written. */
static int
read_text(const char *text, unsigned char block[BLOCK])
{
	memset(block, 0, BLOCK);
	for (size_t i = 0; i < WIDTH; i++) {
		if (radix_digit(&base62_radix, text[i]) < 0)
			return (FIRN_EINVAL);
	}
	if (text[WIDTH] != '\0')
		return (FIRN_EINVAL);
	for (size_t i = 0; i < WIDTH; i++) {
		unsigned carry = (unsigned)radix_digit(&base62_radix, text[i]);

		for (size_t k = BLOCK; k > 0; k--) {
			carry += block[k - 1] * BASE;
			block[k - 1] = (unsigned char)carry;
			carry >>= 8;
		}
		if (carry != 0)
			return (FIRN_ESEAL);
	}
	return (FIRN_OK);
}

/* ---- sealing ---- */

int
firn_seal_id(const struct firn_seal *s, uint64_t id, char *buf, size_t n)
{
	unsigned char plain[BLOCK], block[BLOCK];

	if (s == NULL || buf == NULL)
		return (FIRN_EINVAL);
	if (n < FIRN_SEAL_TEXT_MAX)
		return (FIRN_ERANGE);
	bytes_put64(plain, id);
	memcpy(plain + 8, check, sizeof(check));
	if (!crypt_block(s, 0, true, plain, block))
		return (FIRN_ENOMEM);
	write_text(block, buf);
	return (FIRN_OK);
}

int
firn_unseal_id(const struct firn_seal *s, const char *text, uint64_t *id)
{
	unsigned char block[BLOCK], plain[BLOCK];
	uint64_t found = 0, good = 0;
	int rc;

	if (s == NULL || text == NULL || id == NULL)
		return (FIRN_EINVAL);
	rc = read_text(text, block);
	if (rc != FIRN_OK)
		return (rc);
	for (size_t i = 0; i < s->count; i++) {
		uint64_t mask;

		if (!crypt_block(s, i, false, block, plain))
			return (FIRN_ENOMEM);
		mask = (uint64_t)(CRYPTO_memcmp(
				      plain + 8, check, sizeof(check)) != 0) -
		       1;
		found |= bytes_get64(plain) & mask & ~good;
		good |= mask;
	}
	OPENSSL_cleanse(plain, sizeof(plain));
	if (good == 0)
		return (FIRN_ESEAL);
	*id = found;
	return (FIRN_OK);
}
