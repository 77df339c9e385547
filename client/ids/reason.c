/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason - a name for each reason why the agent refuses: the same word in
 * logs, metrics, JSON and the text of firn_why().
 */
#include "firn-wire.h"

const char *
wire_reason_name(unsigned status)
{
	switch ((enum wire_reason)status) {
	case WIRE_OK:
		return ("ok");
	case WIRE_NO_REALM:
		return ("no_realm");
	case WIRE_REALM_CHANGED:
		return ("realm_changed");
	case WIRE_NO_CLAIM:
		return ("no_claim");
	case WIRE_WINDOW_SPENT:
		return ("window_spent");
	case WIRE_STATE_LOST:
		return ("state_lost");
	case WIRE_STATE_FAILED:
		return ("state_failed");
	case WIRE_CLOCK_SKEW:
		return ("clock_skew");
	case WIRE_CLOCK_BACK:
		return ("clock_back");
	case WIRE_CLOCK_AHEAD:
		return ("clock_ahead");
	case WIRE_BEFORE_EPOCH:
		return ("before_epoch");
	case WIRE_EPOCH_ENDED:
		return ("epoch_ended");
	case WIRE_DRAINING:
		return ("draining");
	case WIRE_BAD_VERSION:
		return ("bad_version");
	case WIRE_NOT_ALLOWED:
		return ("not_allowed");
	case WIRE_TOO_MANY:
		return ("too_many");
	}
	return ("unknown");
}
