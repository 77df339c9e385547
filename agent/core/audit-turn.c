/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit-turn - what one agent makes of a summary that somebody wrote: whether
 * it is of the own realm, when it is the own turn, what is news in it.
 */
#include <string.h>

#include "audit-turn.h"

#define SLOTS 16

/*
 * Somewhere within ms, each sixteenth with half as many agents as the next:
 * so of however many, few come first, and one of them is done before more do.
 * (Were all alike, a thousand would sweep at once and none come to its end.)
 */
static int64_t
within(uint64_t chance, int64_t ms)
{
	int64_t slot_ms = ms / SLOTS, slot = SLOTS - 1;

	for (; slot > 0 && (chance & 1) == 0; chance >>= 1)
		slot--;
	return (slot * slot_ms +
		(int64_t)((chance >> 1) % ((uint64_t)slot_ms + 1)));
}

static bool
is_own(const char *own_claim, const char *claim)
{
	return (own_claim[0] != '\0' && strcmp(own_claim, claim) == 0);
}

int64_t
audit_turn_ms(const struct audit *stands, const char *own_claim,
    int64_t audit_ms, uint64_t chance)
{
	if (stands == NULL)
		return (within(chance, audit_ms / 2));
	if (is_own(own_claim, stands->oldest))
		return (audit_ms);
	if (is_own(own_claim, stands->auditor))
		return (audit_ms + audit_ms / 4);
	return (2 * audit_ms + within(chance, audit_ms / 4 * 3));
}

bool
audit_is_of(const struct audit *a, const struct contract *k)
{
	return (audit_is_of_uuid(a, k) &&
		strcmp(a->generation, k->generation_text) == 0);
}

bool
audit_is_of_uuid(const struct audit *a, const struct contract *k)
{
	return (memcmp(a->uuid, k->uuid, UUID_BYTES) == 0);
}

/* Of "2-1f00aa31" the 2. */
static int64_t
number_of(const char *generation)
{
	int64_t n = 0;

	for (; *generation >= '0' && *generation <= '9'; generation++)
		n = n <= INT64_MAX / 10 - 1 ? n * 10 + (*generation - '0')
					    : INT64_MAX;
	return (n);
}

bool
audit_is_ahead(const struct audit *a, const struct contract *k)
{
	return (audit_is_of_uuid(a, k) && !audit_is_of(a, k) &&
		number_of(a->generation) > k->generation);
}

void
audit_news(const struct audit *before, const struct audit *now,
    audit_news_fn *fn, void *arg)
{
	for (size_t i = 0; i < now->nalerts; i++) {
		const struct audit_alert *x = &now->alerts[i];
		const struct audit_alert *stood =
		    audit_find(before, x->kind, x->worker);

		if (stood == NULL || (x->critical && !stood->critical))
			fn(arg, x, true);
	}
	for (size_t i = 0; before != NULL && i < before->nalerts; i++) {
		const struct audit_alert *x = &before->alerts[i];

		if (audit_find(now, x->kind, x->worker) == NULL)
			fn(arg, x, false);
	}
}
