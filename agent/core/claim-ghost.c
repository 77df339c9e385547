/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-ghost - the agent's own nodes that must not stand, and how they go.
 *
 * Invariant: c->node is emptied by claim_forget_node() alone.
 */
#include <string.h>

#include "claim-private.h"

void
claim_remember_ghost(struct claim *c, const char *name)
{
	size_t n = strlen(name);

	if (n >= CLAIM_PREFIX_MAX) /* a whole name: without the counter */
		n = CLAIM_PREFIX_MAX - 1;
	for (unsigned i = 0; i < c->nghosts; i++) {
		if (strncmp(c->ghosts[i], name, UUID_TEXT_MAX - 1) == 0)
			return;
	}
	if (c->nghosts == CLAIM_GHOSTS) {
		memmove(c->ghosts[0], c->ghosts[1],
		    sizeof(c->ghosts) - sizeof(c->ghosts[0]));
		c->nghosts--;
	}
	memset(c->ghosts[c->nghosts], 0, CLAIM_PREFIX_MAX);
	/* The UUID alone tells them apart. */
	memcpy(c->ghosts[c->nghosts++], name, UUID_TEXT_MAX - 1);
}

bool
claim_is_ghost(const struct claim *c, const char *name)
{
	for (unsigned i = 0; i < c->nghosts; i++) {
		if (strncmp(c->ghosts[i], name, UUID_TEXT_MAX - 1) == 0)
			return (true);
	}
	return (false);
}

void
claim_forget_node(struct claim *c)
{
	if (c->node[0] != '\0')
		claim_remember_ghost(c, c->node);
	c->node[0] = '\0';
	c->node_worker = NO_WORKER;
	c->watched = false;
}

void
claim_clear(struct claim *c, const char *name, const char *generation,
    enum claim_state after, const char *cause)
{
	memcpy(c->victim_generation, generation, GENERATION_MAX);
	memset(c->victim, 0, sizeof(c->victim));
	memcpy(c->victim, name, strnlen(name, CLAIM_NAME_MAX - 1));
	c->after = after;
	claim_enter(c, CLAIM_CLEARING, cause);
}
