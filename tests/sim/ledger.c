/* SPDX-License-Identifier: Apache-2.0 */
/* ledger - an open-addressed table of 64-bit maps. */
#include <stdio.h>
#include <stdlib.h>

#include "ledger.h"

struct entry {
	uint64_t key; /* worker and tick, plus 1: 0 is free */
	uint64_t map;
};

struct ledger {
	struct entry *entries;
	size_t size, used; /* size is a power of two */
};

static void *
must(void *p)
{
	if (p == NULL) {
		(void)fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return (p);
}

struct ledger *
ledger_make(void)
{
	struct ledger *l = must(calloc(1, sizeof(*l)));

	l->size = (size_t)1 << 16;
	l->entries = must(calloc(l->size, sizeof(*l->entries)));
	return (l);
}

void
ledger_free(struct ledger *l)
{
	free(l->entries);
	free(l);
}

static struct entry *
find(struct entry *entries, size_t size, uint64_t key)
{
	uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(h >> 20) & (size - 1);

	while (entries[at].key != 0 && entries[at].key != key)
		at = (at + 1) & (size - 1);
	return (&entries[at]);
}

static void
grow(struct ledger *l)
{
	size_t size = l->size * 2;
	struct entry *entries = must(calloc(size, sizeof(*entries)));

	for (size_t i = 0; i < l->size; i++) {
		if (l->entries[i].key != 0)
			*find(entries, size, l->entries[i].key) = l->entries[i];
	}
	free(l->entries);
	l->entries = entries;
	l->size = size;
}

unsigned
ledger_book(struct ledger *l, uint64_t worker, uint64_t tick, unsigned first,
    unsigned count)
{
	uint64_t key = (tick << 12 | worker) + 1, mask;
	struct entry *e;
	unsigned again;

	if (l->used * 2 > l->size)
		grow(l);
	e = find(l->entries, l->size, key);
	if (e->key == 0) {
		e->key = key;
		l->used++;
	}
	mask = (count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1) << first;
	again = (unsigned)__builtin_popcountll(e->map & mask);
	e->map |= mask;
	return (again);
}
