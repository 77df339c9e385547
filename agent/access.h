/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access - may this peer take IDs?  And of whom a line was written lately.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "conf.h"
#include "listener.h"

#define ACCESS_LINE_MS 60000 /* between two lines about one uid */
#define ACCESS_LINES 32 /* more uids than this are counted, not named */

/* Those about whom enough was said for now. */
struct access_lines {
	struct {
		uint32_t uid;
		mono_t until;
	} said[ACCESS_LINES];
};

/*
 * By allow_uids and allow_gids: the peer's user is in the one, or any of its
 * groups, as they were when it connected with fd, in the other.  Everybody if
 * both are empty; root and the agent's own user in any case.
 */
bool access_allows(
    const struct conf *conf, int fd, const struct listener_peer *peer);

/* The words of the refusal. */
void access_words(const struct conf *conf, const struct listener_peer *peer,
    char *buf, size_t n);

/* True once a minute for each uid: then a line may be written. */
bool access_may_say(struct access_lines *lines, uint32_t uid, mono_t now);

#endif
