/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarms - what an operator should know of this host now: a fixed set of
 * kinds, each of which stands or does not.
 *
 * Invariant: raised once and cleared once, however often it is judged.
 */
#include "alarms.h"

bool
alarms_set(struct alarms *a, enum alarm_kind kind, bool stands, mono_t now)
{
	struct alarm *one = &a->kinds[kind];

	if (one->stands == stands)
		return (false);
	one->stands = stands;
	one->since = now;
	return (true);
}

const char *
alarm_name(enum alarm_kind kind)
{
	switch (kind) {
	case ALARM_SKEW_WARN:
		return ("skew_warn");
	case ALARM_SKEW_REFUSE:
		return ("skew_refuse");
	case ALARM_CLOCK_STEP:
		return ("clock_step");
	case ALARM_WINDOW_LOW:
		return ("window_low");
	case ALARM_NO_REALM:
		return ("no_realm");
	case ALARM_CLOCK_UNSYNCED:
		return ("clock_unsynced");
	}
	return ("?");
}

enum alarm_severity
alarm_severity(enum alarm_kind kind)
{
	switch (kind) {
	case ALARM_SKEW_REFUSE:
	case ALARM_WINDOW_LOW:
	case ALARM_NO_REALM:
		return (ALARM_CRITICAL);
	case ALARM_SKEW_WARN:
	case ALARM_CLOCK_STEP:
		return (ALARM_WARNING);
	case ALARM_CLOCK_UNSYNCED:
		break;
	}
	return (ALARM_INFO);
}

const char *
alarm_severity_name(enum alarm_severity severity)
{
	switch (severity) {
	case ALARM_INFO:
		return ("info");
	case ALARM_WARNING:
		return ("warning");
	case ALARM_CRITICAL:
		return ("critical");
	}
	return ("?");
}
