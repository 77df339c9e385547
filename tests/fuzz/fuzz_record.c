/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: the state file.  Any fields, of an open and of a closed record:
 * what is written reads back equal.  One byte that was changed makes it
 * refused, and so do fewer bytes.  Any bytes as a file: nothing is believed
 * that is not as it was written.
 */
#include "fuzz.h"
#include "layout.h"
#include "record.h"

struct source {
	const uint8_t *at;
	size_t left;
};

static uint64_t
take(struct source *s, size_t n)
{
	uint64_t v = 0;

	for (; n > 0; n--) {
		v = v << 8 | (s->left > 0 ? *s->at : 0);
		s->at += s->left > 0 ? 1 : 0;
		s->left -= s->left > 0 ? 1 : 0;
	}
	return (v);
}

static void
make_record(struct source *s, struct state_record *r, struct record_home *h)
{
	memset(r, 0, sizeof(*r));
	memset(h, 0, sizeof(*h));
	(void)firn_layout_preset("firn", &r->contract.layout);
	r->contract.format = 1;
	r->contract.generation = 1 + (int64_t)take(s, 1);
	(void)memcpy(r->contract.generation_text, "1-00000000", 11);
	r->contract.worker_last = 1023;
	r->contract.reserve_max_ms = 60000;
	(void)memcpy(r->realm, "default", 8);
	r->open = take(s, 1) % 2 == 1;
	if (r->open)
		(void)memcpy(r->claim,
		    "00000000-0000-4000-8000-000000000000-w0-0000000001", 51);
	r->ceiling = (int64_t)(take(s, 8) >> 1);
	r->version = (int32_t)(take(s, 4) >> 1);
	r->local_mark = (int64_t)take(s, 8);
	r->worker = take(s, 2);
	r->zxid = (int64_t)(take(s, 8) >> 1);
	r->skew_refused = take(s, 1) % 2 == 1;
	r->skew_us = (int64_t)take(s, 4);
	r->base_ns = (int64_t)take(s, 8);
	h->lock_dev = take(s, 8);
	h->lock_ino = take(s, 8);
	h->boot_id[0] = (uint8_t)take(s, 1);
}

/* Each digit of the checksum counts. */
static void
check_sum(char bytes[RECORD_SIZE])
{
	static const char head[] = "\"checksum\":\"";
	char *digit = memmem(bytes, RECORD_SIZE, head, sizeof(head) - 1);
	struct state_record r;
	struct record_home h;
	struct doc_error err;

	check(digit != NULL);
	digit += sizeof(head) - 1;
	for (int i = 0; i < 16; i++) {
		char was = digit[i];

		digit[i] = was == '0' ? '1' : '0';
		check(record_parse(bytes, RECORD_SIZE, &r, &h, &err) != 0);
		digit[i] = was;
	}
}

static void
check_fields(struct source *s)
{
	static char bytes[RECORD_SIZE], second[RECORD_SIZE];
	struct state_record r, again;
	struct record_home h, home;
	struct doc_error err;
	size_t at;

	make_record(s, &r, &h);
	if (record_format(&r, &h, bytes) != 0)
		return;
	check(record_parse(bytes, sizeof(bytes), &again, &home, &err) == 0);
	check(record_format(&again, &home, second) == 0);
	check(memcmp(bytes, second, sizeof(bytes)) == 0);
	check(again.open == r.open && again.worker == r.worker &&
	      again.base_ns == r.base_ns && again.zxid == r.zxid &&
	      home.lock_ino == h.lock_ino);
	check(!r.open ||
	      (again.ceiling == r.ceiling && again.version == r.version &&
		  again.local_mark == r.local_mark));
	check_sum(second);
	at = take(s, 2) % sizeof(bytes);
	bytes[at] = (char)(bytes[at] ^ (char)(1 + take(s, 1) % 255));
	check(record_parse(bytes, sizeof(bytes), &again, &home, &err) != 0);
	check(record_parse(second, take(s, 2) % sizeof(second), &again, &home,
		  &err) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source s = { data, size };
	struct state_record r;
	struct record_home h;
	struct doc_error err;
	char *text;

	check_fields(&s);
	text = text_of(data, size);
	/* a checksum of 32 bits: it does not come about by itself */
	check(
	    size == RECORD_SIZE || record_parse(text, size, &r, &h, &err) != 0);
	free(text);
	return (0);
}
