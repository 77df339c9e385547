/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_ids - a list of users or groups, by number or by name, as numbers.
 *
 * Invariant: an entry that is none, or is not found, fails the whole list: to
 * leave it out could turn a list of few into one of all.
 */
#include "conf_ids.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"

#define NAME_SHOWN 24 /* of a wrong entry */
#define NAME_SIZE 128
#define NOBODY UINT32_MAX /* (uid_t)-1 is none */

static bool
fail(char *fault, const char *why, const char *name)
{
	(void)snprintf(
	    fault, CONF_IDS_ERROR_MAX, "%s \"%.*s\"", why, NAME_SHOWN, name);
	return (false);
}

static bool
find_number(const char *name, uint32_t *out)
{
	uint64_t v;

	if (!doc_parse_u64(name, &v) || v >= NOBODY)
		return (false);
	*out = (uint32_t)v;
	return (true);
}

static bool
find_name(const char *name, bool groups, uint32_t *out)
{
	const struct passwd *user = groups ? NULL : getpwnam(name);
	const struct group *group = groups ? getgrnam(name) : NULL;

	if (user == NULL && group == NULL)
		return (false);
	*out = user != NULL ? user->pw_uid : group->gr_gid;
	return (true);
}

static bool
add(struct conf_ids *out, const char *name, bool groups, char *fault)
{
	uint32_t id;

	if (name[0] == '\0')
		return (fail(fault, "an empty entry is none:", name));
	if (strspn(name, "-0123456789") == strlen(name)) {
		if (!find_number(name, &id))
			return (fail(fault, "there is no ID", name));
	} else if (!find_name(name, groups, &id)) {
		return (fail(fault,
		    groups ? "there is no group" : "there is no user", name));
	}
	if (conf_ids_hold(out, id))
		return (true);
	if (out->n == CONF_IDS_MAX)
		return (fail(fault, "there is no room for", name));
	out->id[out->n++] = id;
	return (true);
}

bool
conf_ids_parse(const char *text, bool groups, struct conf_ids *out,
    char fault[CONF_IDS_ERROR_MAX])
{
	const char *p = text, *end;
	char name[NAME_SIZE];

	memset(out, 0, sizeof(*out));
	if (text[0] == '\0')
		return (true);
	for (;;) {
		p += strspn(p, " ");
		end = p + strcspn(p, ",");
		while (end > p && end[-1] == ' ')
			end--;
		if ((size_t)(end - p) >= sizeof(name))
			return (fail(fault, "this name is too long:", p));
		memcpy(name, p, (size_t)(end - p));
		name[end - p] = '\0';
		if (!add(out, name, groups, fault))
			return (false);
		p = end + strspn(end, " ");
		if (*p == '\0')
			return (true);
		p++; /* the comma */
	}
}

bool
conf_ids_hold(const struct conf_ids *ids, uint32_t id)
{
	for (unsigned i = 0; i < ids->n; i++)
		if (ids->id[i] == id)
			return (true);
	return (false);
}
