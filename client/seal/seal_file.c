/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal_file - keys from a file that nobody else can read.
 *
 * Invariant: what is checked is what is read: the open file, not its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "firn-seal.h"

#define FILE_MAX 8192

struct keys {
	size_t size, count;
	unsigned char bytes[FIRN_SEAL_KEYS_MAX * 32];
};

/* One line of n characters. */
static bool
read_line(struct keys *k, const char *line, size_t n)
{
	unsigned char *to;

	while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
		n--;
	if (n == 0 || line[0] == '#')
		return (true);
	if ((n != 32 && n != 64) || k->count == FIRN_SEAL_KEYS_MAX ||
	    (k->count > 0 && k->size != n / 2))
		return (false);
	k->size = n / 2;
	to = k->bytes + k->count * k->size;
	for (size_t i = 0; i < n; i += 2) {
		int high = bytes_hex_digit(line[i]);
		int low = bytes_hex_digit(line[i + 1]);

		if (high < 0 || low < 0)
			return (false);
		to[i / 2] = (unsigned char)(high << 4 | low);
	}
	k->count++;
	return (true);
}

static bool
read_lines(struct keys *k, const char *text, size_t n, unsigned *line)
{
	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = end == NULL ? n - at : (size_t)(end - text) - at;

		++*line;
		if (!read_line(k, text + at, len))
			return (false);
		at += len + 1;
	}
	*line = 0;
	return (k->count > 0);
}

/* The file's bytes, or -1. */
static ssize_t
read_file(const char *path, char *text, size_t size)
{
	/* no waiting for the writer of a FIFO, which is refused below */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = -1, got = 0;

	if (fd == -1)
		return (-1);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & (S_IRWXG | S_IRWXO)) == 0 &&
	    (st.st_uid == geteuid() || st.st_uid == 0)) {
		do {
			n = read(fd, text + got, size - (size_t)got);
			if (n > 0)
				got += n;
		} while (n > 0 || (n == -1 && errno == EINTR));
	}
	(void)close(fd);
	return (n == -1 ? -1 : got);
}

int
firn_seal_open_file(struct firn_seal **out, const char *path,
    const char *purpose, unsigned *line)
{
	char text[FILE_MAX];
	struct keys k = { .count = 0 };
	unsigned at = 0;
	ssize_t n;
	int rc = FIRN_EINVAL;

	if (line != NULL)
		*line = 0;
	if (out == NULL || path == NULL)
		return (FIRN_EINVAL);
	n = read_file(path, text, sizeof(text));
	if (n == -1)
		return (FIRN_EACCES);
	if ((size_t)n < sizeof(text) && read_lines(&k, text, (size_t)n, &at))
		rc = firn_seal_open(out, k.bytes, k.size, k.count, purpose);
	else if (line != NULL)
		*line = at;
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(&k, sizeof(k));
	return (rc);
}
