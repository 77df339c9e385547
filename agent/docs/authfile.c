/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authfile - the one line "user:password" by which ZooKeeper knows an agent.
 *
 * Invariant: no byte of the file gets into an error or outlives a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "authfile.h"

#define PATH_SHOWN 100

/* What is wrong with the file itself, or NULL. */
static const char *
fault_of(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return ("must be a regular file");
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return ("must belong to root or to the user of this process");
	if ((st->st_mode & 0077) != 0)
		return ("must not be open to group or others (chmod 600)");
	return (NULL);
}

/* One line; the user's name has no colon, the password may. */
static const char *
check_line(struct authfile *a)
{
	const char *colon;

	if (a->length > 0 && a->text[a->length - 1] == '\n')
		a->length--;
	a->text[a->length] = '\0';
	colon = strchr(a->text, ':');
	for (size_t i = 0; i < a->length; i++)
		if ((unsigned char)a->text[i] < 0x20 || a->text[i] == 0x7f)
			return ("must hold one line, user:password");
	if (colon == NULL || colon == a->text || colon[1] == '\0')
		return ("must hold one line, user:password");
	return (NULL);
}

static int
fail(struct doc_error *err, const char *path, const char *words, int error)
{
	size_t n = strlen(path);

	doc_error_set(err, "auth_file: %s: %s",
	    n > PATH_SHOWN ? path + n - PATH_SHOWN : path, words);
	return (error == EMFILE || error == ENFILE || error == ENOMEM
		    ? 1
		    : EX_CONFIG);
}

static int
read_line(int fd, const char *path, struct authfile *out, struct doc_error *err)
{
	const char *fault;
	ssize_t n = read(fd, out->text, sizeof(out->text));

	if (n == -1)
		return (fail(err, path, strerror(errno), errno));
	if ((size_t)n == sizeof(out->text))
		return (fail(err, path, "must be at most 255 bytes", 0));
	out->length = (size_t)n;
	fault = check_line(out);
	return (fault != NULL ? fail(err, path, fault, 0) : 0);
}

int
authfile_read(const char *path, struct authfile *out, struct doc_error *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *fault;
	struct stat st;
	int rc;

	memset(out, 0, sizeof(*out));
	if (fd == -1)
		return (fail(err, path, strerror(errno), errno));
	if (fstat(fd, &st) == -1)
		rc = fail(err, path, strerror(errno), errno);
	else if ((fault = fault_of(&st)) != NULL)
		rc = fail(err, path, fault, 0);
	else
		rc = read_line(fd, path, out, err);
	(void)close(fd);
	if (rc != 0)
		authfile_wipe(out);
	return (rc);
}

void
authfile_wipe(struct authfile *a)
{
	explicit_bzero(a, sizeof(*a));
}

int
authfile_check(const char *path, struct doc_error *err)
{
	struct authfile auth;
	int rc;

	/* before the first byte of it is here; 0 is always taken */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	rc = authfile_read(path, &auth, err);
	authfile_wipe(&auth);
	return (rc);
}
