/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: known IDs of the presets, limits, refusals, and over random valid
 * layouts that an ID comes apart into what it was put together from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "layout.h"

#define WORLDS 20000

static struct firn_layout
preset(const char *name)
{
	struct firn_layout l;

	memset(&l, 0xa5, sizeof(l));
	assert_int_equal(firn_layout_preset(name, &l), 0);
	return (l);
}

static struct firn_layout
split(unsigned time, unsigned worker, unsigned sequence)
{
	return ((struct firn_layout){
	    .size = sizeof(struct firn_layout),
	    .time_bits = (uint8_t)time,
	    .worker_bits = (uint8_t)worker,
	    .sequence_bits = (uint8_t)sequence,
	    .tick_ms = 1,
	    .epoch_ms = LAYOUT_EPOCH_MS,
	    .name = "custom",
	});
}

/* A random valid layout; all kinds are about as likely. */
static struct firn_layout
roll_layout(struct dice *d)
{
	static const uint32_t ticks_ms[] = { 1, 1, 10, 1000, 3600000, 0 };
	struct firn_layout l;

	do {
		unsigned total =
		    dice_below(d, 3) == 0 ? 64 : (unsigned)dice_range(d, 2, 64);
		unsigned time = (unsigned)dice_range(d, 1, total - 1);
		unsigned worker = dice_below(d, 4) == 0
				      ? 0
				      : (unsigned)dice_below(d, total - time);

		l = split(time, worker, total - time - worker);
		l.datacenter_bits = (uint8_t)dice_below(d, worker + 1);
		l.flags = (uint32_t)dice_below(d, 2);
		l.tick_ms = ticks_ms[dice_below(d, 6)];
		if (l.tick_ms == 0)
			l.tick_ms = (uint32_t)dice_range(d, 1, 3600000);
		l.epoch_ms = dice_range(d, 0, INT64_C(253402300799999));
	} while (!layout_valid(&l));
	return (l);
}

/* ---- presets ------------------------------------------------------------- */

static void
known_ids_come_apart(void **state)
{
	static const struct {
		const char *preset;
		uint64_t id;
		int64_t unix_ms;
		uint64_t worker, datacenter, sequence;
		const char *why;
	} cases[] = {
		{ "twitter", UINT64_C(1541815603606036480),
		    INT64_C(1656432460105), 378, 11, 0,
		    "a tweet, 2022-06-28T16:07:40.105Z" },
		{ "discord", UINT64_C(175928847299117063),
		    INT64_C(1462015105796), 32, 1, 7,
		    "the example of Discord's reference" },
		{ "firn", 0, LAYOUT_EPOCH_MS, 0, 0, 0, "the first ID" },
		{ "discord", UINT64_MAX, INT64_C(5818116911103), 1023, 31, 4095,
		    "the last of 64 bits: unsigned, or it would be -1" },
		{ "instagram", UINT64_C(1) << 63, INT64_C(2413731649497), 0, 0,
		    0, "the sign bit turns 2046-06-27T17:00:49.497Z" },
		{ "discord", UINT64_C(1) << 63, INT64_C(3619093655552), 0, 0, 0,
		    "the sign bit turns 2084-09-06T15:47:35.552Z" },
		{ "sonyflake", UINT64_C(1) << 24 | UINT64_C(3) << 16 | 500,
		    INT64_C(1409529600010), 500, 0, 3,
		    "ticks of 10 ms, sequence above machine" },
		{ "js53", UINT64_C(9007199254740991),
		    LAYOUT_EPOCH_MS + INT64_C(2748779069430), 127, 0, 255,
		    "the last ID is 2^53 - 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l = preset(cases[i].preset);
		struct firn_parts p;
		uint64_t id = 1;

		print_message("%s: %s\n", cases[i].preset, cases[i].why);
		memset(&p, 0xa5, sizeof(p));
		assert_int_equal(firn_decode(&l, cases[i].id, &p), 0);
		assert_int_equal(p.size, sizeof(p));
		assert_int_equal(p.reserved, 0);
		assert_int_equal(p.unix_ms, cases[i].unix_ms);
		assert_int_equal(p.worker, cases[i].worker);
		assert_int_equal(p.datacenter, cases[i].datacenter);
		assert_int_equal(p.sequence, cases[i].sequence);
		assert_true(
		    layout_compose(&l, p.tick, p.worker, p.sequence, &id));
		assert_int_equal(id, cases[i].id);
	}
}

static void
presets_have_their_limits(void **state)
{
	static const struct {
		const char *name;
		unsigned total_bits;
		int64_t end_ms;
		uint64_t stride;
		const char *why;
	} cases[] = {
		{ "firn", 63, LAYOUT_EPOCH_MS + (INT64_C(1) << 41), 1,
		    "2094, never negative" },
		{ "twitter", 63, INT64_C(3487858230209), 1,
		    "last instant 2080-07-10T17:30:30.208Z" },
		{ "discord", 64, INT64_C(5818116911104), 1,
		    "last instant 2154-05-15T07:35:11.103Z" },
		{ "instagram", 64, INT64_C(3513243277273), 1,
		    "ends on 2081-04-30" },
		{ "sonyflake", 63, INT64_C(6907087738880), 65536,
		    "ends on 2188-11-16" },
		{ "js53", 53, LAYOUT_EPOCH_MS + INT64_C(2748779069440), 1,
		    "exact in a double" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l = preset(cases[i].name);
		uint64_t id;

		print_message("%s: %s\n", cases[i].name, cases[i].why);
		assert_true(layout_valid(&l));
		assert_int_equal(l.size, sizeof(l));
		assert_string_equal(l.name, cases[i].name);
		assert_int_equal(l.time_bits + l.worker_bits + l.sequence_bits,
		    cases[i].total_bits);
		assert_int_equal(layout_end_ms(&l), cases[i].end_ms);
		assert_int_equal(layout_stride(&l), cases[i].stride);
		assert_int_equal(
		    firn_id_floor(&l, cases[i].end_ms - 1, &id), 0);
		assert_int_equal(
		    firn_id_floor(&l, cases[i].end_ms, &id), FIRN_ERANGE);
		assert_int_equal(firn_id_floor(&l, l.epoch_ms, &id), 0);
		assert_int_equal(id, 0);
		assert_int_equal(
		    firn_id_floor(&l, l.epoch_ms - 1, &id), FIRN_ERANGE);
	}
}

/* The day that IDs leave a signed column: the instants of each specification. */
static void
sign_bits_turn_when_they_do(void **state)
{
	static const struct {
		const char *name;
		int64_t unix_ms; /* 0: never within the field */
	} cases[] = {
		{ "firn", 0 }, { "twitter", 0 }, { "sonyflake", 0 },
		{ "js53", 0 },
		{ "discord",
		    INT64_C(3619093655552) }, /* 2084-09-06T15:47:35.552Z */
		{ "instagram",
		    INT64_C(2413731649497) }, /* 2046-06-27T17:00:49.497Z */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l = preset(cases[i].name);
		int64_t ms = 0;
		uint64_t id;

		assert_int_equal(
		    layout_sign_ms(&l, &ms), cases[i].unix_ms != 0);
		assert_int_equal(ms, cases[i].unix_ms);
		if (ms == 0)
			continue;
		assert_int_equal(firn_id_floor(&l, ms, &id), 0);
		assert_true(id == UINT64_C(1) << 63);
		assert_int_equal(firn_id_floor(&l, ms - 1, &id), 0);
		assert_true(id < UINT64_C(1) << 63);
	}
}

static void
passes_2_53_within_a_month(void **state)
{
	struct firn_layout l = preset("firn");
	struct firn_parts p;

	(void)state;
	assert_int_equal(firn_decode(&l, UINT64_C(1) << 53, &p), 0);
	/* 2^53 >> 22 ms is 24.9 days */
	assert_int_equal(p.unix_ms - l.epoch_ms, INT64_C(2147483648));
}

static void
unknown_presets_are_refused(void **state)
{
	static const char *const names[] = { "", "Firn", "firn ", "fir",
		"custom", "41/10/12" };
	struct firn_layout l, before;

	(void)state;
	memset(&l, 0xa5, sizeof(l));
	before = l;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(firn_layout_preset(names[i], &l), FIRN_EINVAL);
	assert_int_equal(firn_layout_preset(NULL, &l), FIRN_EINVAL);
	assert_int_equal(firn_layout_preset("firn", NULL), FIRN_EINVAL);
	assert_memory_equal(&l, &before, sizeof(l));
}

/* ---- validity ------------------------------------------------------------ */

static void
validity_has_its_edges(void **state)
{
	static const struct {
		unsigned time, worker, sequence, datacenter;
		uint32_t flags, tick_ms;
		int64_t epoch_ms;
		bool valid;
		const char *why;
	} cases[] = {
		{ 41, 10, 12, 0, 0, 1, 0, true, "epoch 1970" },
		{ 41, 10, 12, 0, 0, 1, -1, false, "epoch before 1970" },
		{ 41, 10, 12, 0, 0, 1, INT64_C(253402300799999), true,
		    "epoch's last ms of 9999" },
		{ 41, 10, 12, 0, 0, 1, INT64_C(253402300800000), false,
		    "epoch in 10000" },
		{ 41, 10, 12, 0, 0, 1, INT64_MAX, false, "epoch overflows" },
		{ 41, 10, 12, 0, 0, 1, INT64_MIN, false, "epoch underflows" },
		{ 41, 10, 13, 0, 0, 1, 0, true, "64 bits" },
		{ 41, 11, 13, 0, 0, 1, 0, false, "65 bits" },
		{ 62, 0, 2, 0, 0, 1, 0, true, "no worker bits" },
		{ 62, 1, 1, 0, 0, 1, 0, true, "widest time" },
		{ 63, 0, 1, 0, 0, 1, 0, false, "time of 63 bits" },
		{ 0, 10, 12, 0, 0, 1, 0, false, "no time" },
		{ 41, 10, 0, 0, 0, 1, 0, false, "no sequence" },
		{ 1, 0, 63, 0, 0, 1, 0, true, "widest sequence" },
		{ 1, 62, 1, 62, 1, 1, 0, true, "widest worker" },
		{ 255, 255, 255, 0, 0, 1, 0, false, "sum beyond a byte" },
		{ 41, 10, 12, 10, 0, 1, 0, true, "all worker bits upper" },
		{ 41, 10, 12, 11, 0, 1, 0, false, "more upper than worker" },
		{ 41, 10, 12, 0, 1, 1, 0, true, "sequence above worker" },
		{ 41, 10, 12, 0, 2, 1, 0, false, "a flag unknown here" },
		{ 41, 10, 12, 0, 0, 0, 0, false, "tick of 0" },
		{ 41, 10, 12, 0, 0, 3600000, 0, true, "tick of an hour" },
		{ 41, 10, 12, 0, 0, 3600001, 0, false, "tick over an hour" },
		{ 62, 0, 2, 0, 0, 2, 0, false, "2^63 ms: one too far" },
		{ 61, 0, 2, 0, 0, 3, 0, true, "ends inside an int64" },
		{ 61, 0, 2, 0, 0, 4, 0, false, "2^63 ms again" },
		{ 62, 0, 2, 0, 0, 1, INT64_C(253402300799999), true,
		    "the latest epoch still fits" },
		{ 42, 0, 1, 0, 0, 2097151, INT64_C(4398046511103), true,
		    "ends at the last int64" },
		{ 42, 0, 1, 0, 0, 2097151, INT64_C(4398046511104), false,
		    "ends one beyond" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l =
		    split(cases[i].time, cases[i].worker, cases[i].sequence);

		l.datacenter_bits = (uint8_t)cases[i].datacenter;
		l.flags = cases[i].flags;
		l.tick_ms = cases[i].tick_ms;
		l.epoch_ms = cases[i].epoch_ms;
		print_message("%s\n", cases[i].why);
		assert_int_equal(layout_valid(&l), cases[i].valid);
	}
}

/* The public functions refuse what is no layout, and touch nothing. */
static void
bad_arguments_are_refused(void **state)
{
	struct firn_layout good = preset("firn"), bad = good, later;
	struct firn_parts p, before;
	uint64_t id = 42;

	(void)state;
	memset(&p, 0xa5, sizeof(p));
	before = p;
	assert_int_equal(firn_decode(NULL, 1, &p), FIRN_EINVAL);
	assert_int_equal(firn_decode(&good, 1, NULL), FIRN_EINVAL);
	assert_int_equal(firn_id_floor(NULL, good.epoch_ms, &id), FIRN_EINVAL);
	assert_int_equal(
	    firn_id_floor(&good, good.epoch_ms, NULL), FIRN_EINVAL);
	bad.time_bits = 0;
	assert_int_equal(firn_decode(&bad, 1, &p), FIRN_EINVAL);
	assert_int_equal(firn_id_floor(&bad, good.epoch_ms, &id), FIRN_EINVAL);
	bad = good;
	bad.size--;
	assert_int_equal(firn_decode(&bad, 1, &p), FIRN_EINVAL);
	assert_int_equal(firn_id_floor(&bad, good.epoch_ms, &id), FIRN_EINVAL);
	assert_int_equal(
	    firn_decode(&good, UINT64_C(1) << 63, &p), FIRN_ERANGE);
	assert_int_equal(firn_id_floor(&good, INT64_MIN, &id), FIRN_ERANGE);
	assert_int_equal(firn_id_floor(&good, INT64_MAX, &id), FIRN_ERANGE);
	assert_memory_equal(&p, &before, sizeof(p));
	assert_int_equal(id, 42);
	/* a caller of a later version, with a longer struct */
	later = good;
	later.size += 8;
	assert_int_equal(firn_decode(&later, 1, &p), 0);
	assert_int_equal(firn_id_floor(&later, good.epoch_ms, &id), 0);
}

static void
equal_means_the_same_ids(void **state)
{
	struct firn_layout a = preset("twitter"), b = a;

	(void)state;
	memcpy(b.name, "custom", sizeof("custom"));
	b.datacenter_bits = 0;
	assert_true(layout_equal(&a, &b));
	b.time_bits--;
	assert_false(layout_equal(&a, &b));
	b = a;
	b.worker_bits--;
	assert_false(layout_equal(&a, &b));
	b = a;
	b.sequence_bits--;
	assert_false(layout_equal(&a, &b));
	b = a;
	b.flags = FIRN_SEQUENCE_ABOVE_WORKER;
	assert_false(layout_equal(&a, &b));
	b = a;
	b.tick_ms = 10;
	assert_false(layout_equal(&a, &b));
	b = a;
	b.epoch_ms++;
	assert_false(layout_equal(&a, &b));
}

/* ---- time ---------------------------------------------------------------- */

static void
ticks_are_floors(void **state)
{
	static const struct {
		uint32_t tick_ms;
		int64_t epoch_ms, unix_ms, tick, start_ms;
		const char *why;
	} cases[] = {
		{ 1, 1000, 1000, 0, 1000, "the epoch itself" },
		{ 1, 1000, 999, -1, 999, "a ms before it" },
		{ 10, 1000, 1009, 0, 1000, "last ms of the first tick" },
		{ 10, 1000, 1010, 1, 1010, "first ms of the second" },
		{ 10, 1000, 999, -1, 990, "negative rounds down, not to 0" },
		{ 10, 1000, 990, -1, 990, "first ms of tick -1" },
		{ 10, 1000, 989, -2, 980, "last ms of tick -2" },
		{ 1000, 1005, 2004, 0, 1005, "ticks count from the epoch" },
		{ 1000, 1005, 2005, 1, 1005 + 1000, "not from whole seconds" },
		{ 1, 0, INT64_MIN, INT64_MIN, INT64_MIN, "the lowest instant" },
		{ 1, 0, INT64_MAX, INT64_MAX, INT64_MAX, "the highest" },
		{ 1, 1000, INT64_MIN, INT64_MIN, INT64_MIN + 1000,
		    "an instant too far below the epoch saturates" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l = split(41, 10, 12);

		l.tick_ms = cases[i].tick_ms;
		l.epoch_ms = cases[i].epoch_ms;
		print_message("%s\n", cases[i].why);
		assert_int_equal(
		    layout_tick_of(&l, cases[i].unix_ms), cases[i].tick);
		assert_int_equal(
		    layout_tick_start_ms(&l, cases[i].tick), cases[i].start_ms);
	}
}

static void
tick_starts_saturate(void **state)
{
	struct firn_layout l = split(41, 10, 12);

	(void)state;
	l.tick_ms = 10;
	assert_int_equal(layout_tick_start_ms(&l, INT64_MAX), INT64_MAX);
	assert_int_equal(layout_tick_start_ms(&l, INT64_MIN), INT64_MIN);
	l.tick_ms = 1;
	assert_int_equal(layout_tick_start_ms(&l, INT64_MAX), INT64_MAX);
}

/* ---- properties ---------------------------------------------------------- */

/* The same ID by 128-bit sums instead of shifts in 64. */
static unsigned __int128
wide_compose(const struct firn_layout *l, uint64_t tick, uint64_t worker,
    uint64_t sequence)
{
	unsigned __int128 workers = (unsigned __int128)1 << l->worker_bits;
	unsigned __int128 sequences = (unsigned __int128)1 << l->sequence_bits;

	if ((l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0)
		return ((tick * sequences + sequence) * workers + worker);
	return ((tick * workers + worker) * sequences + sequence);
}

static void
compose_and_decode_are_inverse(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		uint64_t tick = dice_number(&d) & layout_tick_max(&l);
		uint64_t worker = dice_number(&d) & layout_worker_max(&l);
		uint64_t sequence = dice_number(&d) & layout_sequence_max(&l);
		unsigned upper = (unsigned)(l.worker_bits - l.datacenter_bits);
		struct firn_parts p;
		uint64_t id;

		assert_true(layout_compose(&l, tick, worker, sequence, &id));
		assert_true(wide_compose(&l, tick, worker, sequence) == id);
		assert_int_equal(firn_decode(&l, id, &p), 0);
		assert_true(p.tick == tick);
		assert_true(p.worker == worker);
		assert_true(p.sequence == sequence);
		assert_true(p.datacenter == worker / (UINT64_C(1) << upper));
		assert_true(p.unix_ms ==
			    (__int128)l.epoch_ms + (__int128)tick * l.tick_ms);
		assert_true(layout_tick_of(&l, p.unix_ms) == (int64_t)tick);
	}
}

/* And the other way round: any number, or a refusal for one with bits above. */
static void
decode_and_compose_are_inverse(void **state)
{
	struct dice d = dice_open(__func__);
	unsigned decoded = 0, refused = 0;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		unsigned total =
		    (unsigned)l.time_bits + l.worker_bits + l.sequence_bits;
		uint64_t id = dice_number(&d), again;
		bool fits = total == 64 || id >> total == 0;
		struct firn_parts p;

		assert_int_equal(
		    firn_decode(&l, id, &p), fits ? 0 : FIRN_ERANGE);
		if (!fits) {
			refused++;
			continue;
		}
		assert_true(
		    layout_compose(&l, p.tick, p.worker, p.sequence, &again));
		assert_true(again == id);
		decoded++;
	}
	assert_true(decoded > WORLDS / 10 && refused > WORLDS / 10);
}

/* A full field is a refusal, never a spill into its neighbour. */
static void
full_fields_are_refused(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		uint64_t t = layout_tick_max(&l), w = layout_worker_max(&l);
		uint64_t s = layout_sequence_max(&l), id = 42, over;

		over = dice_below(&d, 2) == 0 ? 1 : 1 + (dice_next(&d) >> 2);
		assert_false(layout_compose(&l, t + over, 0, 0, &id));
		assert_false(layout_compose(&l, 0, w + over, 0, &id));
		assert_false(layout_compose(&l, 0, 0, s + over, &id));
		assert_false(layout_compose(&l, UINT64_MAX, w, s, &id));
		assert_false(layout_compose(&l, t, UINT64_MAX, s, &id));
		assert_false(layout_compose(&l, t, w, UINT64_MAX, &id));
		assert_int_equal(id, 42);
		assert_true(layout_compose(&l, t, w, s, &id));
		assert_true(wide_compose(&l, t, w, s) == id);
	}
}

/* Stride is the distance of sequences; IDs order by tick before all else. */
static void
ids_keep_their_order(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		uint64_t t = dice_next(&d) & layout_tick_max(&l);
		uint64_t s = dice_next(&d) & layout_sequence_max(&l);
		uint64_t w = dice_next(&d) & layout_worker_max(&l);
		uint64_t one, two;

		assert_true(layout_compose(&l, t, w, s, &one));
		if (s > 0) {
			assert_true(layout_compose(&l, t, w, s - 1, &two));
			assert_true(one - two == layout_stride(&l));
		}
		if (t > 0) {
			assert_true(
			    layout_compose(&l, t - 1, layout_worker_max(&l),
				layout_sequence_max(&l), &two));
			assert_true(two < one);
		}
	}
}

/* IDs of an instant's tick and later are >= its floor, all earlier below. */
static void
floor_divides_the_ids(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		uint64_t t = dice_number(&d) & layout_tick_max(&l);
		int64_t start_ms = layout_tick_start_ms(&l, (int64_t)t);
		int64_t inside_ms =
		    dice_range(&d, start_ms, start_ms + (int64_t)l.tick_ms - 1);
		uint64_t w = dice_next(&d) & layout_worker_max(&l);
		uint64_t s = dice_next(&d) & layout_sequence_max(&l);
		uint64_t floor, id;
		struct firn_parts p;

		assert_int_equal(firn_id_floor(&l, inside_ms, &floor), 0);
		assert_true(layout_compose(&l, t, w, s, &id));
		assert_true(id >= floor);
		assert_int_equal(firn_decode(&l, floor, &p), 0);
		assert_true(p.tick == t && p.worker == 0 && p.sequence == 0);
		if (t > 0) {
			assert_true(
			    layout_compose(&l, t - 1, layout_worker_max(&l),
				layout_sequence_max(&l), &id));
			assert_true(id < floor);
		}
	}
}

static void
floor_ends_where_the_layout_ends(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		int64_t end_ms = layout_end_ms(&l);
		uint64_t id = 42;

		assert_true(
		    end_ms == (__int128)l.epoch_ms +
				  ((__int128)1 << l.time_bits) * l.tick_ms);
		assert_int_equal(firn_id_floor(&l, end_ms, &id), FIRN_ERANGE);
		assert_int_equal(
		    firn_id_floor(&l, l.epoch_ms - 1, &id), FIRN_ERANGE);
		assert_int_equal(id, 42);
		assert_int_equal(firn_id_floor(&l, end_ms - 1, &id), 0);
		assert_true(id >> l.worker_bits >> l.sequence_bits ==
			    layout_tick_max(&l));
	}
}

static void
ticks_agree_with_wide_arithmetic(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct firn_layout l = roll_layout(&d);
		int64_t unix_ms = (int64_t)dice_number(&d);
		__int128 off_ms = (__int128)unix_ms - l.epoch_ms;
		__int128 tick = off_ms / l.tick_ms;

		if (off_ms % l.tick_ms < 0)
			tick--;
		if (off_ms < INT64_MIN)
			tick = INT64_MIN;
		assert_true(layout_tick_of(&l, unix_ms) == tick);
	}
}

/* ---- text ---------------------------------------------------------------- */

static void
bits_are_read(void **state)
{
	static const struct {
		const char *text;
		unsigned time, worker, sequence, datacenter;
		uint32_t flags, tick_ms;
	} cases[] = {
		{ "41/10/12", 41, 10, 12, 0, 0, 1 },
		{ "39/s8/w16@10ms", 39, 16, 8, 0, 1, 10 },
		{ "39/16/8@10ms", 39, 16, 8, 0, 0, 10 },
		{ "32/s16/w4+11@1s", 32, 15, 16, 4, 1, 1000 },
		{ "41/s12/w10", 41, 10, 12, 0, 1, 1 },
		{ "41/10/12@1ms", 41, 10, 12, 0, 0, 1 },
		{ "1/s63/w0", 1, 0, 63, 0, 1, 1 },
		{ "62/1/1@1s", 62, 1, 1, 0, 0, 1000 }, /* not valid: ends */
		{ "41/5+5/12", 41, 10, 12, 5, 0, 1 },
		{ "42/5+5/12", 42, 10, 12, 5, 0, 1 },
		{ "1/0/1", 1, 0, 1, 0, 0, 1 },
		{ "62/1/1", 62, 1, 1, 0, 0, 1 },
		{ "1/62/1", 1, 62, 1, 0, 0, 1 },
		{ "1/0/63", 1, 0, 63, 0, 0, 1 },
		{ "41/10+0/13", 41, 10, 13, 10, 0, 1 },
		{ "41/0+10/13", 41, 10, 13, 0, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l;
		size_t where = 99;

		memset(&l, 0xa5, sizeof(l));
		print_message("%s\n", cases[i].text);
		assert_int_equal(
		    layout_parse_bits(cases[i].text, &l, &where), 0);
		assert_int_equal(where, 99);
		assert_int_equal(layout_valid(&l), i != 7);
		assert_int_equal(l.size, sizeof(l));
		assert_int_equal(l.time_bits, cases[i].time);
		assert_int_equal(l.worker_bits, cases[i].worker);
		assert_int_equal(l.sequence_bits, cases[i].sequence);
		assert_int_equal(l.datacenter_bits, cases[i].datacenter);
		assert_int_equal(l.flags, cases[i].flags);
		assert_int_equal(l.tick_ms, cases[i].tick_ms);
		assert_int_equal(l.epoch_ms, LAYOUT_EPOCH_MS);
		assert_string_equal(l.name, "custom");
	}
}

static void
bad_bits_are_refused_at_their_place(void **state)
{
	static const struct {
		const char *text;
		size_t where;
		const char *why;
	} cases[] = {
		{ "", 0, "nothing" },
		{ "firn", 0, "a name" },
		{ "41", 2, "one field" },
		{ "41/", 3, "the worker is missing" },
		{ "41/10", 5, "two fields" },
		{ "41/10/", 6, "the sequence is missing" },
		{ "41/10/12/", 8, "a fourth field" },
		{ "41/10/12 ", 8, "a space after" },
		{ " 41/10/12", 0, "a space before" },
		{ "41/10/12\n", 8, "a line end" },
		{ "41,10,12", 2, "another separator" },
		{ "0/10/12", 0, "no time" },
		{ "63/0/1", 0, "time too wide" },
		{ "41/10/0", 6, "no sequence" },
		{ "41/11/13", 6, "65 bits: the sequence takes it over" },
		{ "41/24/1", 3, "65 bits: the worker does" },
		{ "41/12+12/1", 6, "65 bits: the lower worker bits do" },
		{ "41/23/1", 6, "nothing left for the sequence" },
		{ "041/10/12", 0, "leading zero" },
		{ "41/010/12", 3, "leading zero" },
		{ "41/00/12", 3, "two zeros" },
		{ "41/+5/12", 3, "the datacenter's number is missing" },
		{ "41/5+/12", 5, "the worker's is" },
		{ "41/5+5+5/12", 6, "three parts" },
		{ "+41/10/12", 0, "a sign" },
		{ "41/-1/12", 3, "negative" },
		{ "99999999999999999999999/1/1", 0, "overflow" },
		{ "4294967337/10/12", 0, "41 after a wrap of 32 bits" },
		{ "297/10/12", 0, "41 after a wrap of 8 bits" },
		{ "41/10/12x", 8, "a letter" },
		{ "0x29/10/12", 0, "hex: a time of 0" },
		{ "41/s12/10", 7, "the worker without its letter" },
		{ "41/w10/s12", 3, "the usual order has no letters" },
		{ "41/s12", 6, "the worker is missing" },
		{ "41/s12/w", 8, "its number is" },
		{ "41/s/w10", 4, "the sequence's is" },
		{ "41/s0/w10", 4, "no sequence" },
		{ "41/s12/w12", 8, "65 bits" },
		{ "41/S12/w10", 3, "upper case" },
		{ "41/10/12@", 9, "no tick" },
		{ "41/10/12@10", 9, "a tick without a unit" },
		{ "41/10/12@100ms", 9, "none of the three ticks" },
		{ "41/10/12@0ms", 9, "a tick of 0" },
		{ "41/10/12@1000ms", 9, "one text for each tick: 1s" },
		{ "41/10/12@1s ", 9, "a space after" },
		{ "41/10/12@1S", 9, "upper case" },
		{ "39/s8/w16@10msx", 10, "a letter after" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l, before;
		size_t where = 99;

		memset(&l, 0xa5, sizeof(l));
		before = l;
		print_message("\"%s\": %s\n", cases[i].text, cases[i].why);
		assert_int_equal(
		    layout_parse_bits(cases[i].text, &l, &where), FIRN_EINVAL);
		assert_int_equal(where, cases[i].where);
		assert_int_equal(
		    layout_parse_bits(cases[i].text, &l, NULL), FIRN_EINVAL);
		assert_memory_equal(&l, &before, sizeof(l));
	}
}

static void
bits_are_written_as_read(void **state)
{
	struct dice d = dice_open(__func__);
	struct firn_layout odd;
	char text[LAYOUT_TEXT_MAX];

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		static const uint32_t ticks_ms[] = { 1, 10, 1000 };
		struct firn_layout l, again;

		do {
			l = roll_layout(&d);
			l.tick_ms = ticks_ms[dice_below(&d, 3)];
		} while (!layout_valid(&l));
		layout_format_bits(&l, text);
		assert_int_equal(layout_parse_bits(text, &again, NULL), 0);
		assert_int_equal(again.time_bits, l.time_bits);
		assert_int_equal(again.worker_bits, l.worker_bits);
		assert_int_equal(again.sequence_bits, l.sequence_bits);
		assert_int_equal(again.datacenter_bits, l.datacenter_bits);
		again.epoch_ms = l.epoch_ms;
		assert_true(layout_equal(&l, &again));
	}
	odd = preset("twitter");
	layout_format_bits(&odd, text);
	assert_string_equal(text, "41/5+5/12");
	odd = preset("sonyflake");
	layout_format_bits(&odd, text);
	assert_string_equal(text, "39/s8/w16@10ms");
	odd = preset("js53");
	layout_format_bits(&odd, text);
	assert_string_equal(text, "38/7/8@10ms");
	/* an invalid layout is still written, for the log line about it */
	odd = split(255, 254, 100);
	odd.datacenter_bits = 153;
	layout_format_bits(&odd, text);
	assert_string_equal(text, "255/153+101/100");
	odd.datacenter_bits = 255;
	layout_format_bits(&odd, text);
	assert_string_equal(text, "255/254/100");
	odd.tick_ms = UINT32_MAX;
	odd.flags = UINT32_MAX;
	odd.datacenter_bits = 254;
	layout_format_bits(&odd, text);
	assert_string_equal(text, "255/s100/w254+0@4294967295ms");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_ids_come_apart),
		cmocka_unit_test(presets_have_their_limits),
		cmocka_unit_test(sign_bits_turn_when_they_do),
		cmocka_unit_test(passes_2_53_within_a_month),
		cmocka_unit_test(unknown_presets_are_refused),
		cmocka_unit_test(validity_has_its_edges),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(equal_means_the_same_ids),
		cmocka_unit_test(ticks_are_floors),
		cmocka_unit_test(tick_starts_saturate),
		cmocka_unit_test(compose_and_decode_are_inverse),
		cmocka_unit_test(decode_and_compose_are_inverse),
		cmocka_unit_test(full_fields_are_refused),
		cmocka_unit_test(ids_keep_their_order),
		cmocka_unit_test(floor_divides_the_ids),
		cmocka_unit_test(floor_ends_where_the_layout_ends),
		cmocka_unit_test(ticks_agree_with_wide_arithmetic),
		cmocka_unit_test(bits_are_read),
		cmocka_unit_test(bad_bits_are_refused_at_their_place),
		cmocka_unit_test(bits_are_written_as_read),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
