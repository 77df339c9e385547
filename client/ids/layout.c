/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout - how the bits of an ID are divided; put together, taken apart.
 *
 * Invariant: in a valid layout no shift below reaches 64, since the time and
 * the sequence have at least one bit each, and no valid tick leaves int64_t.
 */
#include "layout.h"

#include <string.h>

#define ID_BITS 64
#define TIME_BITS_MAX 62
#define TICK_MS_MAX 3600000
#define EPOCH_MS_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

static uint64_t
field_max(unsigned bits)
{
	return ((UINT64_C(1) << bits) - 1);
}

static bool
sequence_is_above(const struct firn_layout *l)
{
	return ((l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0);
}

static unsigned
time_shift(const struct firn_layout *l)
{
	return ((unsigned)l->worker_bits + l->sequence_bits);
}

static unsigned
worker_shift(const struct firn_layout *l)
{
	return (sequence_is_above(l) ? 0 : l->sequence_bits);
}

static unsigned
sequence_shift(const struct firn_layout *l)
{
	return (sequence_is_above(l) ? l->worker_bits : 0);
}

static bool
end_fits(const struct firn_layout *l)
{
	int64_t ticks = (int64_t)1 << l->time_bits;

	return (ticks <= (INT64_MAX - l->epoch_ms) / (int64_t)l->tick_ms);
}

bool
layout_valid(const struct firn_layout *l)
{
	if (l->time_bits < 1 || l->time_bits > TIME_BITS_MAX)
		return (false);
	if (l->sequence_bits < 1)
		return (false);
	if (l->time_bits + l->worker_bits + l->sequence_bits > ID_BITS)
		return (false);
	if (l->datacenter_bits > l->worker_bits)
		return (false);
	if ((l->flags & ~FIRN_SEQUENCE_ABOVE_WORKER) != 0)
		return (false);
	if (l->tick_ms < 1 || l->tick_ms > TICK_MS_MAX)
		return (false);
	if (l->epoch_ms < 0 || l->epoch_ms > EPOCH_MS_MAX)
		return (false);
	return (end_fits(l));
}

bool
layout_equal(const struct firn_layout *a, const struct firn_layout *b)
{
	return (a->time_bits == b->time_bits &&
		a->worker_bits == b->worker_bits &&
		a->sequence_bits == b->sequence_bits && a->flags == b->flags &&
		a->tick_ms == b->tick_ms && a->epoch_ms == b->epoch_ms);
}

uint64_t
layout_tick_max(const struct firn_layout *l)
{
	return (field_max(l->time_bits));
}

uint64_t
layout_worker_max(const struct firn_layout *l)
{
	return (field_max(l->worker_bits));
}

uint64_t
layout_sequence_max(const struct firn_layout *l)
{
	return (field_max(l->sequence_bits));
}

uint64_t
layout_stride(const struct firn_layout *l)
{
	return (UINT64_C(1) << sequence_shift(l));
}

bool
layout_compose(const struct firn_layout *l, uint64_t tick, uint64_t worker,
    uint64_t sequence, uint64_t *id)
{
	if (tick > layout_tick_max(l) || worker > layout_worker_max(l) ||
	    sequence > layout_sequence_max(l))
		return (false);
	*id = tick << time_shift(l) | worker << worker_shift(l) |
	      sequence << sequence_shift(l);
	return (true);
}

bool
layout_split(const struct firn_layout *l, uint64_t id, uint64_t *tick,
    uint64_t *worker, uint64_t *sequence)
{
	if (id >> time_shift(l) > layout_tick_max(l))
		return (false);
	*tick = id >> time_shift(l);
	*worker = id >> worker_shift(l) & layout_worker_max(l);
	*sequence = id >> sequence_shift(l) & layout_sequence_max(l);
	return (true);
}

int64_t
layout_tick_of(const struct firn_layout *l, int64_t unix_ms)
{
	int64_t ms, tick, tick_ms = (int64_t)l->tick_ms;

	/* The epoch is not negative: only downwards can this overflow. */
	if (__builtin_sub_overflow(unix_ms, l->epoch_ms, &ms))
		return (INT64_MIN);
	tick = ms / tick_ms;
	return (ms % tick_ms < 0 ? tick - 1 : tick);
}

int64_t
layout_tick_start_ms(const struct firn_layout *l, int64_t tick)
{
	int64_t ms;

	if (__builtin_mul_overflow(tick, (int64_t)l->tick_ms, &ms) ||
	    __builtin_add_overflow(ms, l->epoch_ms, &ms))
		return (tick < 0 ? INT64_MIN : INT64_MAX);
	return (ms);
}

int64_t
layout_end_ms(const struct firn_layout *l)
{
	return (layout_tick_start_ms(l, (int64_t)layout_tick_max(l) + 1));
}

bool
layout_sign_ms(const struct firn_layout *l, int64_t *unix_ms)
{
	if (l->time_bits + l->worker_bits + l->sequence_bits < ID_BITS)
		return (false);
	*unix_ms = layout_tick_start_ms(l, INT64_C(1) << (l->time_bits - 1));
	return (true);
}

/* A text such as "41/5+5/12" or "39/s8/w16@10ms" on its way in. */
struct bits_text {
	const char *text;
	size_t at; /* next character; at a failure, the fault */
	unsigned left; /* bits that no field has taken yet */
};

static bool
read_field(struct bits_text *b, unsigned min, unsigned max, unsigned *bits)
{
	size_t at = b->at;
	unsigned v = 0;

	if (max > b->left)
		max = b->left;
	for (; b->text[at] >= '0' && b->text[at] <= '9'; at++) {
		v = v * 10 + (unsigned)(b->text[at] - '0');
		if (v > max)
			return (false);
	}
	if (at == b->at || v < min)
		return (false);
	if (b->text[b->at] == '0' && at - b->at > 1)
		return (false);
	b->at = at;
	b->left -= v;
	*bits = v;
	return (true);
}

static bool
read_mark(struct bits_text *b, char mark)
{
	if (b->text[b->at] != mark)
		return (false);
	b->at++;
	return (true);
}

/* worker, or datacenter+worker; *worker gets the sum. */
static bool
read_worker(struct bits_text *b, unsigned *datacenter, unsigned *worker)
{
	unsigned lower;

	*datacenter = 0;
	if (!read_field(b, 0, ID_BITS, worker))
		return (false);
	if (!read_mark(b, '+'))
		return (true);
	if (!read_field(b, 0, ID_BITS, &lower))
		return (false);
	*datacenter = *worker;
	*worker += lower;
	return (true);
}

/* worker/sequence, or s sequence/w worker, which is that order. */
static bool
read_lower(struct bits_text *b, unsigned *datacenter, unsigned *worker,
    unsigned *sequence, uint32_t *flags)
{
	*flags = 0;
	if (b->text[b->at] != 's')
		return (read_worker(b, datacenter, worker) &&
			read_mark(b, '/') &&
			read_field(b, 1, ID_BITS, sequence));
	b->at++;
	*flags = FIRN_SEQUENCE_ABOVE_WORKER;
	return (read_field(b, 1, ID_BITS, sequence) && read_mark(b, '/') &&
		read_mark(b, 'w') && read_worker(b, datacenter, worker));
}

/* The ticks that have a text; others are valid, but nobody asks for them. */
static const struct {
	const char *text;
	uint32_t tick_ms;
} ticks[] = { { "1ms", 1 }, { "10ms", 10 }, { "1s", 1000 } };

/* Nothing, or @ and a tick, to the end. */
static bool
read_tick(struct bits_text *b, uint32_t *tick_ms)
{
	*tick_ms = 1;
	if (b->text[b->at] != '@')
		return (read_mark(b, '\0'));
	b->at++;
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		if (strcmp(b->text + b->at, ticks[i].text) == 0) {
			*tick_ms = ticks[i].tick_ms;
			return (true);
		}
	}
	return (false);
}

int
layout_parse_bits(const char *text, struct firn_layout *l, size_t *where)
{
	struct bits_text b = { .text = text, .at = 0, .left = ID_BITS };
	unsigned time, datacenter, worker, sequence;
	uint32_t flags, tick_ms;

	if (!read_field(&b, 1, TIME_BITS_MAX, &time) || !read_mark(&b, '/') ||
	    !read_lower(&b, &datacenter, &worker, &sequence, &flags) ||
	    !read_tick(&b, &tick_ms)) {
		if (where != NULL)
			*where = b.at;
		return (FIRN_EINVAL);
	}
	*l = (struct firn_layout){
		.size = (uint32_t)sizeof(*l),
		.time_bits = (uint8_t)time,
		.worker_bits = (uint8_t)worker,
		.sequence_bits = (uint8_t)sequence,
		.datacenter_bits = (uint8_t)datacenter,
		.flags = flags,
		.tick_ms = tick_ms,
		.epoch_ms = LAYOUT_EPOCH_MS,
		.name = "custom",
	};
	return (0);
}

static char *
put_number(char *p, uint32_t v)
{
	uint32_t unit = 1;

	while (v / unit >= 10)
		unit *= 10;
	for (; unit > 0; unit /= 10)
		*p++ = (char)('0' + v / unit % 10);
	return (p);
}

static char *
put_text(char *p, const char *text)
{
	while (*text != '\0')
		*p++ = *text++;
	return (p);
}

static char *
put_worker(char *p, const struct firn_layout *l)
{
	unsigned lower = l->worker_bits;

	if (l->datacenter_bits > 0 && l->datacenter_bits <= lower) {
		p = put_text(put_number(p, l->datacenter_bits), "+");
		lower -= l->datacenter_bits;
	}
	return (put_number(p, lower));
}

void
layout_format_bits(const struct firn_layout *l, char buf[LAYOUT_TEXT_MAX])
{
	char *p = put_text(put_number(buf, l->time_bits), "/");

	if (sequence_is_above(l)) {
		p = put_number(put_text(p, "s"), l->sequence_bits);
		p = put_worker(put_text(p, "/w"), l);
	} else {
		p = put_text(put_worker(p, l), "/");
		p = put_number(p, l->sequence_bits);
	}
	if (l->tick_ms == 1000)
		p = put_text(p, "@1s");
	else if (l->tick_ms != 1)
		p = put_text(put_number(put_text(p, "@"), l->tick_ms), "ms");
	*p = '\0';
}
