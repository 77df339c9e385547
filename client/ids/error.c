/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error - the errors of firn.h as text, and the version.  One row for each
 * constant; a number without a row gets a string too.
 */
#include "firn.h"

#ifndef FIRN_VERSION
#error "FIRN_VERSION is missing: compile with -DFIRN_VERSION='\"x.y.z\"'"
#endif

struct error_text {
	const char *name;
	const char *sentence;
};

#define ERROR_ROW(error, sentence) [-(error)] = { #error, sentence }

static const struct error_text errors[] = {
	ERROR_ROW(FIRN_OK, "success"),
	ERROR_ROW(FIRN_EINVAL, "invalid argument"),
	ERROR_ROW(FIRN_ENOMEM, "out of memory"),
	ERROR_ROW(FIRN_EAGAIN, "no ID cached yet, a request is on its way"),
	ERROR_ROW(FIRN_ETIMEDOUT, "the agent did not answer in time"),
	ERROR_ROW(FIRN_EAWAY, "no agent listens on the socket"),
	ERROR_ROW(
	    FIRN_EACCES, "not allowed: the agent's socket, or a file of keys"),
	ERROR_ROW(FIRN_EREFUSED, "the agent refused"),
	ERROR_ROW(FIRN_EREALM, "the agent serves another realm"),
	ERROR_ROW(FIRN_EPROTO, "the agent's bytes are not the protocol"),
	ERROR_ROW(FIRN_ERANGE, "value out of range"),
	ERROR_ROW(FIRN_ERANDOM, "the kernel gives no random bytes"),
	ERROR_ROW(
	    FIRN_ESEAL, "sealed by none of the keys, or for another purpose"),
};

static const struct error_text *
error_find(int err)
{
	const int count = (int)(sizeof(errors) / sizeof(errors[0]));

	/* Not -err first: INT_MIN has no opposite. */
	return (err > 0 || err <= -count ? NULL : &errors[-err]);
}

const char *
firn_strerror(int err)
{
	const struct error_text *e = error_find(err);

	return (e == NULL ? "unknown error" : e->sentence);
}

const char *
firn_errname(int err)
{
	const struct error_text *e = error_find(err);

	return (e == NULL ? "unknown" : e->name);
}

const char *
firn_version(void)
{
	return (FIRN_VERSION);
}
