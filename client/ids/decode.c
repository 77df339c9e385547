/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode - the public side of layouts: presets, an ID taken apart, the
 * smallest ID of an instant.  Arguments are checked here and nowhere below.
 */
#include <string.h>

#include "layout.h"

/* As in the specifications of each; size is set on the way out. */
static const struct firn_layout presets[] = {
	/* the default: 1024 agents, 4096 IDs a ms each, until 2094 */
	{
	    .name = "firn",
	    .time_bits = 41,
	    .worker_bits = 10,
	    .sequence_bits = 12,
	    .tick_ms = 1,
	    .epoch_ms = LAYOUT_EPOCH_MS,
	},
	/* Snowflake; 2010-11-04T01:42:54.657Z */
	{
	    .name = "twitter",
	    .time_bits = 41,
	    .worker_bits = 10,
	    .sequence_bits = 12,
	    .datacenter_bits = 5,
	    .tick_ms = 1,
	    .epoch_ms = INT64_C(1288834974657),
	},
	/* all 64 bits; 2015-01-01 */
	{
	    .name = "discord",
	    .time_bits = 42,
	    .worker_bits = 10,
	    .sequence_bits = 12,
	    .datacenter_bits = 5,
	    .tick_ms = 1,
	    .epoch_ms = INT64_C(1420070400000),
	},
	/* all 64 bits, the worker is a logical shard; 2011-08-24 */
	{
	    .name = "instagram",
	    .time_bits = 41,
	    .worker_bits = 13,
	    .sequence_bits = 10,
	    .tick_ms = 1,
	    .epoch_ms = INT64_C(1314220021721),
	},
	/* 2014-09-01 */
	{
	    .name = "sonyflake",
	    .time_bits = 39,
	    .worker_bits = 16,
	    .sequence_bits = 8,
	    .flags = FIRN_SEQUENCE_ABOVE_WORKER,
	    .tick_ms = 10,
	    .epoch_ms = INT64_C(1409529600000),
	},
	/* exact in a double: 53 bits */
	{
	    .name = "js53",
	    .time_bits = 38,
	    .worker_bits = 7,
	    .sequence_bits = 8,
	    .tick_ms = 10,
	    .epoch_ms = LAYOUT_EPOCH_MS,
	},
};

int
firn_layout_preset(const char *name, struct firn_layout *out)
{
	if (name == NULL || out == NULL)
		return (FIRN_EINVAL);
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		if (strcmp(name, presets[i].name) != 0)
			continue;
		*out = presets[i];
		out->size = (uint32_t)sizeof(*out);
		return (0);
	}
	return (FIRN_EINVAL);
}

/*
 * A caller built against a later header has a larger struct, of which this
 * library reads the part that it knows; a smaller one would be read past its
 * end.
 */
static bool
layout_usable(const struct firn_layout *l)
{
	return (l != NULL && l->size >= sizeof(*l) && layout_valid(l));
}

int
firn_decode(const struct firn_layout *l, uint64_t id, struct firn_parts *out)
{
	uint64_t tick, worker, sequence;

	if (!layout_usable(l) || out == NULL)
		return (FIRN_EINVAL);
	if (!layout_split(l, id, &tick, &worker, &sequence))
		return (FIRN_ERANGE);
	*out = (struct firn_parts){
		.size = (uint32_t)sizeof(*out),
		.unix_ms = layout_tick_start_ms(l, (int64_t)tick),
		.tick = tick,
		.worker = worker,
		.datacenter = worker >> (l->worker_bits - l->datacenter_bits),
		.sequence = sequence,
	};
	return (0);
}

int
firn_id_floor(const struct firn_layout *l, int64_t unix_ms, uint64_t *id)
{
	int64_t tick;

	if (!layout_usable(l) || id == NULL)
		return (FIRN_EINVAL);
	tick = layout_tick_of(l, unix_ms);
	if (tick < 0 || !layout_compose(l, (uint64_t)tick, 0, 0, id))
		return (FIRN_ERANGE);
	return (0);
}
