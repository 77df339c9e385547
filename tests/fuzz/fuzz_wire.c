/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: frames.  A request and a header read from any bytes and written
 * again are the same bytes.  A run of IDs that the stub believes is taken
 * apart ID by ID, by the decoder: one tick, one worker, rising sequences, all
 * above what came before; and the stock gives just these, in order, once.
 */
#include "batch.h"
#include "firn-wire.h"
#include "fuzz.h"
#include "layout.h"

#define LOOKED_AT 256

/* Three IDs in the wire's bytes: version and type to cookie and after. */
static void
check_frames(const uint8_t *data, size_t size)
{
	uint8_t again[WIRE_REQUEST_SIZE];
	struct wire_request rq;
	struct wire_header h;
	uint8_t *exact;

	if (size < WIRE_REQUEST_SIZE)
		return;
	exact = malloc(WIRE_REQUEST_SIZE);
	if (exact == NULL)
		abort();
	memcpy(exact, data, WIRE_REQUEST_SIZE);
	wire_get_request(exact, &rq);
	wire_put_request(again, &rq);
	check(memcmp(again, exact, WIRE_REQUEST_SIZE - 8) == 0);
	check(wire_get64(again + WIRE_REQUEST_SIZE - 8) == 0);
	wire_get_header(exact, &h);
	wire_put_header(again, &h);
	check(memcmp(again, exact, WIRE_HEADER_SIZE) == 0);
	free(exact);
}

static void
check_ids(const struct firn_layout *l, const struct wire_run *run,
    uint64_t above, uint64_t last)
{
	struct firn_parts head = { .size = sizeof(head) };
	struct firn_parts p = { .size = sizeof(p) };
	uint64_t id = run->first, before = above;

	check(run->count > 0 && run->first > above);
	check(firn_decode(l, id, &head) == 0);
	for (uint32_t i = 0; i < run->count && i < LOOKED_AT; i++) {
		id = run->first + i * run->stride;
		check(firn_decode(l, id, &p) == 0);
		check(p.unix_ms == head.unix_ms && p.worker == head.worker);
		check(p.sequence == head.sequence + i);
		check(id > before);
		before = id;
	}
	id = run->first + (run->count - UINT64_C(1)) * run->stride;
	check(id == last && id >= run->first);
	check(firn_decode(l, id, &p) == 0);
	check(p.unix_ms == head.unix_ms && p.worker == head.worker);
	check(p.sequence == head.sequence + run->count - 1);
}

static void
check_stock(const struct wire_run *run, uint64_t last)
{
	static struct batch b;
	const struct batch_run add = { .run = *run,
		.generation = 1,
		.mono_until_ns = 1000,
		.real_until_ns = 1000 };
	const struct moment late = { 2000, 2000 };
	uint64_t ids[LOOKED_AT], want = run->first;
	uint64_t left = run->count;

	memset(&b, 0, sizeof(b));
	check(batch_add(&b, &add) && b.left == left);
	for (int turns = 0; left > 0 && turns < 4; turns++) {
		size_t n = batch_take(&b, ids, LOOKED_AT);

		check(n > 0 && n <= left);
		for (size_t i = 0; i < n; i++, want += run->stride)
			check(ids[i] == want && want <= last);
		left -= n;
		check(b.left == left);
	}
	check(batch_trim(&b, 1, &late) == left && b.left == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const presets[] = { "firn", "twitter", "discord",
		"instagram", "sonyflake", "js53" };
	struct firn_layout l;
	struct wire_run run;
	uint64_t above, last = 0;

	check_frames(data, size);
	if (size < 29)
		return (0);
	check(firn_layout_preset(
		  presets[data[0] % (sizeof(presets) / sizeof(presets[0]))],
		  &l) == 0);
	run.first = wire_get64(data + 1);
	/* what the layout has is rarely hit by chance */
	run.stride = data[0] < 128 ? layout_stride(&l) : wire_get64(data + 9);
	run.count = wire_get32(data + 17);
	above = wire_get64(data + 21);
	if (!batch_check_run(&l, &run, above, &last))
		return (0);
	check_ids(&l, &run, above, last);
	check_stock(&run, last);
	return (0);
}
