/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access - may this peer take IDs?
 *
 * Invariant: whatever cannot be found out about a peer lets nobody in.
 */
#include "access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS_NEAR 64 /* nobody has more, or memory is asked for */

static bool
holds_any(const struct conf_ids *ids, const gid_t *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (conf_ids_hold(ids, groups[i]))
			return (true);
	return (false);
}

/* The supplementary groups; a kernel without SO_PEERGROUPS tells of none. */
static bool
holds_peer_groups(const struct conf_ids *ids, int fd)
{
	gid_t near[GROUPS_NEAR], *far;
	socklen_t size = sizeof(near);
	bool held;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, near, &size) == 0)
		return (holds_any(ids, near, size / sizeof(near[0])));
	if (errno != ERANGE) /* else size says how many bytes there are */
		return (false);
	far = malloc(size);
	if (far == NULL)
		return (false);
	held = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, far, &size) == 0 &&
	       holds_any(ids, far, size / sizeof(far[0]));
	free(far);
	return (held);
}

bool
access_allows(const struct conf *conf, int fd, const struct listener_peer *peer)
{
	if (conf->uids.n == 0 && conf->gids.n == 0)
		return (true);
	if (peer->uid == 0 || peer->uid == geteuid() ||
	    conf_ids_hold(&conf->uids, peer->uid) ||
	    conf_ids_hold(&conf->gids, peer->gid))
		return (true);
	return (conf->gids.n > 0 && holds_peer_groups(&conf->gids, fd));
}

void
access_words(const struct conf *conf, const struct listener_peer *peer,
    char *buf, size_t n)
{
	const char *key = conf->gids.n == 0   ? "allow_uids"
			  : conf->uids.n == 0 ? "allow_gids"
					      : "allow_uids or allow_gids";

	snprintf(buf, n,
	    "not_allowed: uid %" PRIu32 ", gid %" PRIu32
	    " and its other groups are not in the agent's %s",
	    peer->uid, peer->gid, key);
}

bool
access_may_say(struct access_lines *lines, uint32_t uid, mono_t now)
{
	size_t spare = ACCESS_LINES;

	for (size_t i = 0; i < ACCESS_LINES; i++) {
		if (mono_reached(now, lines->said[i].until))
			spare = i;
		else if (lines->said[i].uid == uid)
			return (false);
	}
	if (spare == ACCESS_LINES)
		return (false);
	lines->said[spare].uid = uid;
	lines->said[spare].until = mono_add_ms(now, ACCESS_LINE_MS);
	return (true);
}
