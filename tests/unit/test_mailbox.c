/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the mailbox: order, overflow, fairness, closing from within. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>

#include "mailbox.h"

#define SLOTS 8
#define OVERFLOW UINT64_MAX
#define LOG_MAX 4096

struct world {
	struct event_base *base;
	struct mailbox *box;
	uint64_t log[LOG_MAX]; /* what the loop heard, in order */
	size_t n;
	uint64_t close_at; /* fn closes the mailbox on this message; 0: never */
	uint64_t answer_at; /* fn posts 100 + this message on seeing it */
};

static void
hear(struct world *w, uint64_t what)
{
	assert_true(w->n < LOG_MAX);
	w->log[w->n++] = what;
}

static void
on_message(void *arg, const void *msg)
{
	struct world *w = arg;
	uint64_t what = *(const uint64_t *)msg;

	hear(w, what);
	if (what == w->answer_at) {
		uint64_t answer = 100 + what;

		assert_true(mailbox_post(w->box, &answer));
	}
	if (what == w->close_at)
		mailbox_close(w->box);
}

static void
on_overflow(void *arg)
{
	struct world *w = arg;

	hear(w, OVERFLOW);
	if (w->close_at == OVERFLOW)
		mailbox_close(w->box);
}

static void
open_world(struct world *w, size_t slots)
{
	*w = (struct world){ .base = event_base_new() };
	assert_non_null(w->base);
	w->box = mailbox_open(
	    w->base, slots, sizeof(uint64_t), on_message, on_overflow, w);
	assert_non_null(w->box);
}

static void
close_world(struct world *w)
{
	if (w->close_at == 0)
		mailbox_close(w->box);
	event_base_free(w->base);
}

/* One turn of the loop; nothing sleeps. */
static void
turn(struct world *w)
{
	(void)event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static size_t
post_range(struct world *w, uint64_t from, uint64_t to)
{
	size_t fitted = 0;

	for (uint64_t i = from; i <= to; i++)
		fitted += mailbox_post(w->box, &i) ? 1 : 0;
	return (fitted);
}

static void
assert_heard(const struct world *w, const uint64_t *want, size_t n)
{
	assert_int_equal(w->n, n);
	for (size_t i = 0; i < n; i++)
		assert_true(w->log[i] == want[i]);
}

static void
test_keeps_the_order(void **state)
{
	struct world w;
	uint64_t want[3 * SLOTS];

	(void)state;
	open_world(&w, SLOTS);
	/* 5 at a time: the ring's end is crossed at every offset, unless it
	 * was emptied in between. */
	for (uint64_t i = 0; i < 3 * SLOTS; i++)
		want[i] = i + 1;
	assert_int_equal(post_range(&w, 1, 5), 5);
	for (uint64_t i = 6; i <= 3 * SLOTS; i++) {
		uint64_t got;

		assert_true(mailbox_take(w.box, &got));
		hear(&w, got);
		assert_int_equal(post_range(&w, i, i), 1);
	}
	turn(&w);
	assert_heard(&w, want, 3 * SLOTS);
	close_world(&w);
}

static void
test_nothing_posted_nothing_heard(void **state)
{
	struct world w;
	uint64_t got;

	(void)state;
	open_world(&w, SLOTS);
	turn(&w);
	assert_int_equal(w.n, 0);
	assert_false(mailbox_take(w.box, &got));
	close_world(&w);
}

static void
test_overflow_comes_last_and_once(void **state)
{
	static const uint64_t want[] = { 1, 2, 3, 4, 5, 6, 7, 8, OVERFLOW, 50 };
	struct world w;

	(void)state;
	open_world(&w, SLOTS);
	assert_int_equal(post_range(&w, 1, 20), SLOTS);
	turn(&w);
	turn(&w);
	assert_int_equal(w.n, SLOTS + 1);
	/* Once told, it is over. */
	assert_int_equal(post_range(&w, 50, 50), 1);
	turn(&w);
	assert_heard(&w, want, sizeof(want) / sizeof(want[0]));
	close_world(&w);
}

/* A message behind a lost one would be heard before the loss is. */
static void
test_nothing_passes_an_untold_overflow(void **state)
{
	struct world w;
	uint64_t got;

	(void)state;
	open_world(&w, SLOTS);
	assert_int_equal(post_range(&w, 1, SLOTS + 1), SLOTS);
	for (int i = 0; i < SLOTS; i++)
		assert_true(mailbox_take(w.box, &got));
	assert_int_equal(post_range(&w, 90, 90), 0);
	turn(&w);
	assert_int_equal(w.n, 1);
	assert_true(w.log[0] == OVERFLOW);
	close_world(&w);
}

/* A flood must leave room for the loop's other work, and still all arrive. */
static void
test_a_turn_is_bounded(void **state)
{
	struct world w;
	size_t turns = 0;

	(void)state;
	open_world(&w, 1000);
	assert_int_equal(post_range(&w, 1, 1000), 1000);
	turn(&w);
	assert_in_range(w.n, 1, 100);
	while (w.n < 1000 && turns++ < 1000)
		turn(&w);
	assert_int_equal(w.n, 1000);
	for (size_t i = 0; i < w.n; i++)
		assert_true(w.log[i] == i + 1);
	close_world(&w);
}

static void
test_fn_may_post(void **state)
{
	static const uint64_t want[] = { 1, 2, 101 };
	struct world w;

	(void)state;
	open_world(&w, SLOTS);
	w.answer_at = 1;
	assert_int_equal(post_range(&w, 1, 2), 2);
	turn(&w);
	turn(&w);
	assert_heard(&w, want, 3);
	close_world(&w);
}

/* The sanitizer sees the use after free if closing is not put off. */
static void
test_fn_may_close(void **state)
{
	static const uint64_t want[] = { 1, 2 };
	static const uint64_t overflowed[] = { 1, 2, 3, 4, 5, 6, 7, 8,
		OVERFLOW };
	struct world w;

	(void)state;
	open_world(&w, SLOTS);
	w.close_at = 2;
	assert_int_equal(post_range(&w, 1, 5), 5);
	turn(&w);
	turn(&w);
	assert_heard(&w, want, 2);
	close_world(&w);

	open_world(&w, SLOTS);
	w.close_at = OVERFLOW;
	assert_int_equal(post_range(&w, 1, 9), 8);
	turn(&w);
	turn(&w);
	assert_heard(&w, overflowed, 9);
	close_world(&w);
}

#define POSTERS 4
#define EACH UINT64_C(250)

struct poster {
	struct world *w;
	uint64_t number; /* from 1: no message is 0 */
};

static void *
post_many(void *arg)
{
	struct poster *p = arg;

	for (uint64_t i = 0; i < EACH; i++) {
		uint64_t msg = p->number << 32 | i;

		if (!mailbox_post(p->w->box, &msg))
			return (p);
	}
	return (NULL);
}

/* Every message of every thread, each thread's in its own order. */
static void
test_many_threads(void **state)
{
	struct world w;
	struct poster posters[POSTERS];
	pthread_t threads[POSTERS];
	uint64_t next[POSTERS] = { 0 };

	(void)state;
	open_world(&w, POSTERS * EACH);
	for (uint64_t i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){ &w, i + 1 };
		assert_int_equal(
		    pthread_create(&threads[i], NULL, post_many, &posters[i]),
		    0);
	}
	/* Blocks in epoll until the eventfd wakes it: a lost wake-up hangs. */
	while (w.n < POSTERS * EACH)
		(void)event_base_loop(w.base, EVLOOP_ONCE);
	for (int i = 0; i < POSTERS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	for (size_t i = 0; i < w.n; i++) {
		uint64_t who = w.log[i] >> 32;

		assert_in_range(who, 1, POSTERS);
		assert_true((w.log[i] & UINT32_MAX) == next[who - 1]++);
	}
	close_world(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_the_order),
		cmocka_unit_test(test_nothing_posted_nothing_heard),
		cmocka_unit_test(test_overflow_comes_last_and_once),
		cmocka_unit_test(test_nothing_passes_an_untold_overflow),
		cmocka_unit_test(test_a_turn_is_bounded),
		cmocka_unit_test(test_fn_may_post),
		cmocka_unit_test(test_fn_may_close),
		cmocka_unit_test(test_many_threads),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
