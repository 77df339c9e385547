/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease-say - what a lease tells people: one line a change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lease-private.h"
#include "log.h"

#define HOSTS_SHOWN 200

void
lease_say_state(
    void *arg, enum claim_state from, enum claim_state to, const char *cause)
{
	const struct lease *l = arg;
	bool news = to == CLAIM_STANDING || to == CLAIM_FULL ||
		    to == CLAIM_HOLDING || to == CLAIM_STOPPED ||
		    (to == CLAIM_AWAY && from != CLAIM_AWAY) ||
		    (to == CLAIM_CLEARING && from != CLAIM_LEAVING);
	char worker[24] = "-";

	if (l->claim.node_worker != NO_WORKER)
		(void)snprintf(
		    worker, sizeof(worker), "%" PRIu64, l->claim.node_worker);
	if (news)
		log_info("claim %s: %s -> %s: %s", worker,
		    claim_state_name(from), claim_state_name(to), cause);
	else
		log_debug("claim %s: %s -> %s: %s", worker,
		    claim_state_name(from), claim_state_name(to), cause);
	if (to == CLAIM_FULL)
		log_warnx("claim: no worker ID to be had: %" PRIu64
			  " taken, %" PRIu64 " quarantined",
		    l->claim.taken, l->claim.quarantined);
}

static const char *
fault_text(enum realm_fault fault)
{
	switch (fault) {
	case REALM_GOOD:
	case REALM_UNREAD:
		return ("");
	case REALM_MISSING:
		return ("does not exist"); /* and more by say_missing() */
	case REALM_DENIED: /* said where the reply came */
		return ("not allowed to read it (its access list)");
	case REALM_GARBLED:
		return ("its contract makes no sense");
	case REALM_OTHER:
		return ("is another realm than at start: its uuid or layout "
			"differs");
	case REALM_BACK:
		return ("ZooKeeper's data went back: restore it with a higher "
			"generation (`firn realm renew`)");
	case REALM_UNFIT:
		return ("does not fit the configuration");
	}
	return ("");
}

/* The line to type; a long list of hosts is left to the reader. */
static void
say_missing(const struct lease *l)
{
	const char *hosts = l->conf->zookeeper;

	log_warnx("realm %s: %s: `firn realm create --zk %s --realm %s` makes "
		  "it (with --first if this ID space never served)",
	    l->conf->realm, fault_text(REALM_MISSING),
	    strlen(hosts) < HOSTS_SHOWN ? hosts : "HOSTS", l->conf->realm);
}

/* With what is wrong in it, which its writer may change as he likes. */
static void
say_garbled(struct lease *l)
{
	char path[LEASE_PATH_MAX], words[DOC_ERROR_MAX + 64];

	lease_realm_path(l, path);
	(void)snprintf(words, sizeof(words), "%s: %s",
	    fault_text(REALM_GARBLED), l->garbled.text);
	foreign_tell(&l->foreign, path, words);
}

static void
say_realm(struct lease *l)
{
	const struct claim *c = &l->claim;
	char words[sizeof(l->fault_words)] = "";

	if (c->fault != REALM_GOOD && c->fault != REALM_UNREAD)
		(void)snprintf(words, sizeof(words), "realm %s: %s",
		    l->conf->realm, fault_text(c->fault));
	if (c->fault == REALM_GARBLED)
		say_garbled(l);
	if (strcmp(words, l->fault_words) != 0) {
		if (c->fault == REALM_GARBLED || c->fault == REALM_DENIED)
			; /* said */
		else if (c->fault == REALM_MISSING)
			say_missing(l);
		else if (words[0] != '\0')
			log_warnx("%s", words);
		else
			log_info("realm %s: good, generation %s",
			    l->conf->realm, c->k.generation_text);
		memcpy(l->fault_words, words, sizeof(words));
	}
	if (l->marks_deleted_told != c->marks_deleted) {
		l->marks_deleted_told = c->marks_deleted;
		log_warnx("alert marks_deleted: realm %s: the mark of worker "
			  "ID %" PRIu64 " may have been deleted; its next "
			  "owner waits until all old windows are over",
		    l->conf->realm, c->marks_deleted_worker);
	}
	if (c->counter_end && !l->counter_end_told)
		log_warnx("alert counter_end: realm %s: the counter of claims "
			  "has ended: run `firn realm renew`",
		    l->conf->realm);
	l->counter_end_told = c->counter_end;
}

void
lease_say_news(struct lease *l)
{
	const struct claim *c = &l->claim;

	if (c->twins != l->twins_told) {
		l->twins_told = c->twins;
		log_warnx("claim: another process lives under this claim's "
			  "name, or its mark was written by hand: its worker "
			  "ID is given up");
		hold_forget(l->hold);
	}
	say_realm(l);
}
