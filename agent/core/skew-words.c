/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skew-words - the verdict of skew in words, with its figures.
 */
#include "skew.h"

static int64_t
magnitude(int64_t v)
{
	if (v == INT64_MIN)
		return (INT64_MAX);
	return (v < 0 ? -v : v);
}

struct text {
	char *buf;
	size_t n, at;
};

static void
put(struct text *t, const char *words)
{
	for (; *words != '\0'; words++) {
		if (t->at + 1 < t->n)
			t->buf[t->at] = *words;
		t->at++;
	}
}

static void
put_number(struct text *t, uint64_t v)
{
	char digits[21], *at = &digits[20];

	*at = '\0';
	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	put(t, at);
}

/* "350 us" is 0.35 ms; "12400 ms" is 12.4 s. */
static void
put_duration(struct text *t, int64_t us)
{
	bool seconds = us >= INT64_C(1000000);
	uint64_t thousandths = (uint64_t)(seconds ? us / 1000 : us);
	uint64_t part = thousandths % 1000;
	char digits[5] = { '.', (char)('0' + part / 100),
		(char)('0' + part / 10 % 10), (char)('0' + part % 10), '\0' };

	put_number(t, thousandths / 1000);
	for (size_t n = 4; n > 1 && digits[n - 1] == '0'; n--)
		digits[n - 1] = '\0';
	if (part > 0)
		put(t, digits);
	put(t, seconds ? " s" : " ms");
}

static void
put_distance(struct text *t, int64_t us)
{
	if (us == 0) {
		put(t, "level with ");
		return;
	}
	put_duration(t, magnitude(us));
	put(t, us > 0 ? " ahead of " : " behind ");
}

static void
put_average(struct text *t, const struct skew *s)
{
	if (s->peers > 0) {
		put(t, "the average of ");
		put_number(t, s->peers);
		put(t, s->peers == 1 ? " peer" : " peers");
	} else
		put(t, s->average_us == 0 ? "ZooKeeper's clock" : "the median");
}

static void
put_verdict(struct text *t, const struct skew *s)
{
	int64_t limit = ms_to_ns(s->conf.refuse_ms) / 1000; /* us */

	put_distance(t, s->skew_us);
	if (!s->has_own)
		put(t, "the peers before the restart");
	else
		put_average(t, s);
	put(t, " (error ");
	put_duration(t, s->own.error_us);
	put(t, s->refused ? ", serves again below " : ", refuses above ");
	put_duration(t, s->refused ? limit / 10 * 9 : limit);
	put(t, ")");
}

static void
put_offset(struct text *t, const struct skew *s)
{
	put_distance(t, s->own.offset_us);
	put(t, "ZooKeeper's clock (error ");
	put_duration(t, s->own.error_us);
	put(t, ")");
}

int
skew_words(const struct skew *s, char *buf, size_t n)
{
	struct text t = { .buf = buf, .n = n };

	switch (s->phase) {
	case SKEW_UNMEASURED:
		put(&t, "not measured yet");
		break;
	case SKEW_WAITING:
		put_offset(&t, s);
		put(&t, ", waiting for the offsets of peers");
		break;
	case SKEW_ALONE:
		put_offset(&t, s);
		put(&t, ", no peer to compare with");
		break;
	case SKEW_JUDGED:
		put_verdict(&t, s);
		break;
	case SKEW_HELD:
		if (s->alone && s->has_own)
			put_offset(&t, s);
		else
			put_verdict(&t, s);
		put(&t, ", last verdict stands");
		break;
	}
	if (n > 0)
		buf[t.at < n ? t.at : n - 1] = '\0';
	return (t.at < n ? (int)t.at : -1);
}

const char *
skew_phase_name(enum skew_phase p)
{
	switch (p) {
	case SKEW_UNMEASURED:
		return ("unmeasured");
	case SKEW_WAITING:
		return ("waiting");
	case SKEW_ALONE:
		return ("alone");
	case SKEW_JUDGED:
		return ("judged");
	case SKEW_HELD:
		return ("held");
	}
	return ("unknown");
}
