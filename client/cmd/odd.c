/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd - nodes of a realm that make no sense, as alerts.
 *
 * Invariant: no more than ODD_MAX alerts, and no text of a stranger's but
 * printable ASCII.
 */
#include <stdio.h>
#include <string.h>

#include "odd.h"

#define NAME_SHOWN 80 /* a claim's name is shorter */

static void
make_plain(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

static struct fleet_alert *
next_alert(struct odd *o, const char *kind, uint64_t worker)
{
	struct fleet_alert *a;

	if (o->n == ODD_MAX - 1) {
		/* the last place counts those that have none */
		a = &o->alert[ODD_MAX - 1];
		*a = (struct fleet_alert){
			.kind = "more_nodes",
			.severity = FLEET_WARNING,
			.worker = NO_WORKER,
		};
		(void)snprintf(a->text, sizeof(a->text),
		    "%zu more nodes make no sense", ++o->more);
		return (NULL);
	}
	a = &o->alert[o->n++];
	*a = (struct fleet_alert){
		.severity = FLEET_WARNING,
		.worker = worker,
	};
	(void)snprintf(a->kind, sizeof(a->kind), "%s", kind);
	return (a);
}

void
odd_add(struct odd *o, const char *kind, uint64_t worker, const char *what,
    const char *name, const char *fault)
{
	struct fleet_alert *a = next_alert(o, kind, worker);

	if (a == NULL)
		return;
	(void)snprintf(a->text, sizeof(a->text), "%s %.*s: %s", what,
	    NAME_SHOWN, name, fault);
	make_plain(a->text);
}

void
odd_take_name(struct odd_names *names, const char *name)
{
	if (names->n < ODD_NAMES_MAX)
		names->name[names->n] = name;
	names->n++;
}

void
odd_add_names(struct odd *o, const struct odd_names *names, const char *what)
{
	struct fleet_alert *a;

	for (size_t i = 0; names->n <= ODD_NAMES_MAX && i < names->n; i++)
		odd_add(
		    o, "foreign_node", NO_WORKER, "node", names->name[i], what);
	if (names->n <= ODD_NAMES_MAX)
		return;
	a = next_alert(o, "foreign_node", NO_WORKER);
	if (a == NULL)
		return;
	(void)snprintf(a->text, sizeof(a->text), "%zu nodes, such as %.*s: %s",
	    names->n, NAME_SHOWN, names->name[0], what);
	make_plain(a->text);
}
