/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_ids - a list of users or groups, by number or by name, as numbers.
 */
#ifndef CONF_IDS_H
#define CONF_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_IDS_MAX 64
#define CONF_IDS_ERROR_MAX 80

struct conf_ids {
	uint32_t id[CONF_IDS_MAX];
	unsigned n; /* 0: the list is empty */
};

/*
 * "1000,app": numbers ask nobody, names are looked up, which may wait for
 * whatever the system asks for them.  False with the reason in `fault`.
 */
__attribute__((warn_unused_result)) bool conf_ids_parse(const char *text,
    bool groups, struct conf_ids *out, char fault[CONF_IDS_ERROR_MAX]);

bool conf_ids_hold(const struct conf_ids *ids, uint32_t id);

#endif
