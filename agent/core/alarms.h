/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarms - what an operator should know of this host now: a fixed set of
 * kinds, each of which stands or does not.
 *
 * Invariant: raised once and cleared once, however often it is judged.
 */
#ifndef ALARMS_H
#define ALARMS_H

#include "types.h"

enum alarm_kind {
	ALARM_SKEW_WARN, /* the clock is further off its peers' than it should */
	ALARM_SKEW_REFUSE, /* ... so far that nothing is served */
	ALARM_CLOCK_STEP, /* it stepped, and that has not been settled */
	ALARM_WINDOW_LOW, /* less than half of the window is left */
	ALARM_NO_REALM, /* the realm has not been found */
	ALARM_CLOCK_UNSYNCED, /* nobody sets the clock, says the kernel */
};
#define ALARM_KINDS 6

enum alarm_severity { ALARM_INFO, ALARM_WARNING, ALARM_CRITICAL };

struct alarm {
	bool stands;
	mono_t since; /* if it stands */
};

struct alarms {
	struct alarm kinds[ALARM_KINDS]; /* zeroes: none stands */
};

/* True if that is news. */
bool alarms_set(
    struct alarms *a, enum alarm_kind kind, bool stands, mono_t now);

/* "skew_warn" and so on. */
const char *alarm_name(enum alarm_kind kind);
enum alarm_severity alarm_severity(enum alarm_kind kind);
/* "info", "warning", "critical" */
const char *alarm_severity_name(enum alarm_severity severity);

#endif
