/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn-seal.h - IDs as opaque text for the outside world: libfirn-seal.
 *
 * A sealed ID is 22 characters of Base62: one block of AES over the ID's 64
 * bits and 64 fixed bits, the check.  Who has no key learns neither the ID nor
 * its time, order or number from it, and cannot make one.
 *
 * Why that authenticates: AES under a secret key is a permutation that nobody
 * can tell from a random one.  A text that was not sealed, or was changed in
 * any bit, opens to a random block, whose 64 check bits are right once in
 * 2^64.  So much is a forger's chance at each try, and no more: count failures
 * if yours may be asked without end.
 *
 * It is deterministic: the same ID, key and purpose give the same text, which
 * makes links stable, and lets everyone see that two are of the same ID.
 *
 * The conventions are those of firn.h: 0 is success, errors are negative,
 * output is written on success only.  A handle is never changed once it is
 * made, so any number of threads may use it, and a child after fork() too.
 * Nothing blocks but the reading of a file.
 */
#ifndef FIRN_SEAL_H
#define FIRN_SEAL_H

#include <firn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_SEAL_TEXT_MAX 23 /* 22 characters and a NUL */
#define FIRN_SEAL_KEYS_MAX 16

struct firn_seal;

/*
 * Makes a handle from `count` keys of `size` bytes each (16: AES-128, 32:
 * AES-256), one behind the other.  The first seals, all unseal: to change the
 * key put a new one first, and take the old one out when no text of its time
 * is used any more.  `purpose` (NULL: "") names what the IDs are of, such as
 * "invoice": a text of one purpose does not open under another.  Both are
 * copied.  Release with firn_seal_close().
 * FIRN_EINVAL: no such size, no key, more than FIRN_SEAL_KEYS_MAX.
 * FIRN_ENOMEM: memory, or libcrypto does not work.
 */
FIRN_CHECK_RESULT int firn_seal_open(struct firn_seal **out,
    const unsigned char *keys, size_t size, size_t count, const char *purpose);

/*
 * The same with keys from a file: one a line, 32 or 64 hexadecimal digits, all
 * of one length; empty lines and those that begin with # are passed over.
 * *line (if not NULL) is the line that is wrong, or 0.
 * FIRN_EACCES: it cannot be read, or is not a regular file of this user's or
 * root's without any access for group and others.  FIRN_EINVAL: no keys.
 */
FIRN_CHECK_RESULT int firn_seal_open_file(struct firn_seal **out,
    const char *path, const char *purpose, unsigned *line);

/* Erases the keys and frees the handle.  NULL is fine. */
void firn_seal_close(struct firn_seal *s);

/*
 * Writes the text and a NUL.
 * FIRN_ERANGE: n is below FIRN_SEAL_TEXT_MAX.  FIRN_ENOMEM as above.
 */
FIRN_CHECK_RESULT int firn_seal_id(
    const struct firn_seal *s, uint64_t id, char *buf, size_t n);

/*
 * Opens a text.  The time does not depend on which key opens it, nor on which
 * bits are wrong.
 * FIRN_EINVAL: not 22 characters of 0-9A-Za-z.  FIRN_ESEAL: no key of the
 * handle made this text for this purpose.  FIRN_ENOMEM as above.
 */
FIRN_CHECK_RESULT int firn_unseal_id(
    const struct firn_seal *s, const char *text, uint64_t *id);

#ifdef __cplusplus
}
#endif
#endif
