/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_table - a fleet for people: who is in trouble first. */
#ifndef FLEET_TABLE_H
#define FLEET_TABLE_H

#include "fleet.h"

/*
 * Prints the rows, those in trouble first, then figures and alerts; in colour
 * if standard output is a terminal.  False: out of memory.
 */
bool fleet_table_print(
    const char *realm, const char *generation, const struct fleet *f);

#endif
