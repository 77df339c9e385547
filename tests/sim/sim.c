/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim - worlds in which everything goes wrong, and what must hold in each.
 *
 *   sim [--seed N] [--steps N] [SCENARIO...]
 *
 * Exit status 0 if each scenario ended as it must.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

struct scenario {
	const char *name, *why;
	struct weather weather;
	unsigned share; /* of the steps, in percent */
	bool must_repeat; /* a mutant: a repeat must be found */
	bool (*special)(struct world *w, const struct scenario *s);
};

static bool storm(struct world *w, const struct scenario *s);
static bool full(struct world *w, const struct scenario *s);
static bool mass_restart(struct world *w, const struct scenario *s);
static bool mass_loss(struct world *w, const struct scenario *s);
static bool stepped_back(struct world *w, const struct scenario *s);
static bool refused(struct world *w, const struct scenario *s);

#define CALM_S 300 /* after which all must serve again */

#define ROUGH                                                           \
	.reserve_ms = 60000, .reserve_max_ms = 60000, .lose_reply = 20, \
	.lose_request = 5, .issue_ms = 100
#define CALM .reserve_ms = 60000, .reserve_max_ms = 60000, .issue_ms = 1000

static const struct scenario scenarios[] = {
	{ "chaos", "hundreds of agents, everything goes wrong",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 300, .workers = 512,
		.chaos_ms = 20000, .wild_clocks = true, .files = 500,
		.still = 100 },
	    45, false, NULL },
	{ "mad-clocks", "some clocks are up to an hour off",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 100, .workers = 256,
		.chaos_ms = 20000, .wild_clocks = true, .mad_clocks = true },
	    10, false, NULL },
	{ "crowded", "as many agents as worker IDs",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 24, .workers = 24,
		.chaos_ms = 8000, .wild_clocks = true, .files = 500,
		.still = 100 },
	    15, false, NULL },
	{ "one-id", "claims are ignored, all want one ID: the mark decides",
	    { ROUGH, .hosts = 40, .workers = 8, .force_worker = 3,
		.chaos_ms = 10000, .wild_clocks = true, .files = 500 },
	    15, false, NULL },
	{ "rivals", "a few fight for one ID with short windows and bad links",
	    { .reserve_ms = 1500,
		.reserve_max_ms = 60000,
		.lose_reply = 100,
		.lose_request = 50,
		.issue_ms = 30,
		.hosts = 4,
		.workers = 8,
		.force_worker = 3,
		.chaos_ms = 5000,
		.jumpy_clocks = true,
		.files = 500 },
	    10, false, NULL },
	{ "twins", "processes are copied with their memory",
	    { .reserve_ms = 60000,
		.reserve_max_ms = 60000,
		.lose_reply = 150,
		.lose_request = 30,
		.issue_ms = 50,
		.hosts = 16,
		.workers = 64,
		.force_worker = NO_WORKER,
		.chaos_ms = 30000,
		.twins_ms = 3000 },
	    5, false, NULL },
	{ "marks-deleted", "an operator deletes marks under load",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 40, .workers = 64,
		.chaos_ms = 6000, .delete_marks_ms = 300 },
	    10, false, NULL },
	{ "renewed", "an operator renews the realm every few minutes",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 60, .workers = 64,
		.chaos_ms = 15000, .renew_realm_ms = 90000 },
	    5, false, NULL },
	{ "restarts", "state files, processes that end all the time, bad links",
	    { .reserve_ms = 60000,
		.reserve_max_ms = 60000,
		.lose_reply = 100,
		.lose_request = 30,
		.issue_ms = 20,
		.hosts = 24,
		.workers = 20,
		.force_worker = NO_WORKER,
		.chaos_ms = 4000,
		.wild_clocks = true,
		.files = 1000,
		.still = 50,
		.restless = true,
		.quick = true,
		.lead_ms = 100 },
	    15, false, NULL },
	{ "rolled-back",
	    "ZooKeeper's data goes back, then the realm is renewed",
	    { .reserve_ms = 60000,
		.reserve_max_ms = 60000,
		.lose_reply = 50,
		.lose_writes = 700,
		.lose_request = 10,
		.issue_ms = 200,
		.hosts = 20,
		.workers = 32,
		.force_worker = NO_WORKER,
		.chaos_ms = 30000,
		.files = 700,
		.roll_back_ms = 100000 },
	    10, false, NULL },
	{ "wiped", "ZooKeeper's data is lost, then the realm is restored",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 20, .workers = 32,
		.chaos_ms = 15000, .files = 500, .wipe_ms = 150000 },
	    5, false, NULL },
	{ "floor", "data goes back under a lone host: its file is the floor",
	    { ROUGH, .force_worker = NO_WORKER, .hosts = 1, .workers = 1,
		.chaos_ms = 5000, .wild_clocks = true, .jumpy_clocks = true,
		.files = 1000, .safe_files = true, .restless = true,
		.roll_back_ms = 60000, .careless = true },
	    2, false, NULL },
	{ "refused", "who is refused by its peers does not walk, nor moves",
	    { CALM, .force_worker = NO_WORKER, .hosts = 20, .workers = 20,
		.files = 1000, .safe_files = true },
	    0, false, refused },
	{ "storm", "1,000 agents in 1,024 IDs after a cut of 20 s",
	    { CALM, .force_worker = NO_WORKER, .hosts = 1000, .workers = 1024 },
	    0, false, storm },
	{ "mass-restart",
	    "900 of 1,024 agents killed at once, with their files",
	    { CALM, .force_worker = NO_WORKER, .hosts = 1024, .workers = 1024,
		.files = 1000, .safe_files = true },
	    0, false, mass_restart },
	{ "mass-loss", "900 of 1,024 hosts lost at once, fresh ones come",
	    { CALM, .force_worker = NO_WORKER, .hosts = 1024, .workers = 1024 },
	    0, false, mass_loss },
	{ "stepped-back",
	    "a whole fleet is stepped back an hour, then repaired",
	    { CALM, .force_worker = NO_WORKER, .hosts = 100, .workers = 1024,
		.files = 500, .safe_files = true },
	    0, false, stepped_back },
	{ "full", "more agents than IDs: the late ones only list",
	    { CALM, .force_worker = NO_WORKER, .hosts = 20, .workers = 16 }, 0,
	    false, full },
	{ "blind", "mutant: marks written without compare-and-set",
	    { ROUGH, .hosts = 40, .workers = 8, .force_worker = 3,
		.blind = true, .chaos_ms = 10000, .wild_clocks = true },
	    15, true, NULL },
};

static void
report(const struct scenario *s, const struct world *w, double seconds)
{
	struct tally t;

	world_tally(w, &t);
	(void)printf("%-14s %9" PRIu64 " steps, %9" PRIu64 " IDs, %7" PRIu64
		     " claims, %8" PRIu64 " marks, lost %" PRIu64
		     ", expired %" PRIu64 ", pauses %" PRIu64
		     ", crashes %" PRIu64 ", stops %" PRIu64 ", steps %" PRIu64
		     ", twins %" PRIu64 ", reboots %" PRIu64
		     ", resumed %" PRIu64 " (%" PRIu64
		     " in the dark), file faults %" PRIu64 ", refused %" PRIu64
		     ", rollbacks %" PRIu64 ", wipes %" PRIu64
		     "; %.0f s of theirs, %.1f of ours; serving %u of %u\n",
	    s->name, t.steps, t.ids, t.creates, t.writes, t.lost, t.expired,
	    t.pauses, t.crashes, t.stops, t.clock_steps, t.twins, t.reboots,
	    t.resumed, t.resumed_dark, t.file_faults, t.stills, t.rollbacks,
	    t.wipes, (double)world_time(w) / 1e9 - 1000, seconds, t.serving,
	    s->weather.hosts);
	(void)printf("%-14s refusals:", "");
	for (int i = 1; i < 13; i++)
		(void)printf(" %s %" PRIu64,
		    gate_reason_name((enum gate_reason)i), t.refusals[i]);
	(void)printf("\n");
	if (t.repeats + t.decreases + t.outside + t.moved + t.stranded > 0)
		(void)printf("%-14s repeats %" PRIu64 ", decreases %" PRIu64
			     ", outside %" PRIu64 ", moved %" PRIu64
			     ", stranded %" PRIu64 "\n",
		    "", t.repeats, t.decreases, t.outside, t.moved, t.stranded);
}

/* Everybody serves; all are cut off; everybody keeps the ID it had. */
static bool
storm(struct world *w, const struct scenario *s)
{
	struct tally before, after;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 60 * NS_PER_S);

	world_tally(w, &before);
	world_cut_all(w, 20 * NS_PER_S);
	good = world_run(w, UINT64_MAX, world_time(w) + 60 * NS_PER_S) && good;
	world_tally(w, &after);
	(void)printf("%-14s before: %u serve, %" PRIu64
		     " claims; after the cut: %u serve, %" PRIu64
		     " claims more\n",
	    s->name, before.serving, before.creates, after.serving,
	    after.creates - before.creates);
	return (good && before.serving == s->weather.hosts &&
		after.serving == s->weather.hosts &&
		after.creates - before.creates < 1100 && after.expired >= 1000);
}

/* With their state files they go on: all serve within a second. */
static bool
mass_restart(struct world *w, const struct scenario *s)
{
	struct tally t;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 120 * NS_PER_S);

	world_tally(w, &t);
	good = good && t.serving == s->weather.hosts;
	world_kill(w, 0, 900, true);
	good = world_run(w, UINT64_MAX, world_time(w) + NS_PER_S) && good;
	world_tally(w, &t);
	(void)printf("%-14s a second after the kill %u of %u serve\n", s->name,
	    t.serving, s->weather.hosts);
	good = good && t.serving == s->weather.hosts;
	return (
	    world_run(w, UINT64_MAX, world_time(w) + 60 * NS_PER_S) && good);
}

/*
 * All worker IDs but 124 stand in quarantine: the walk ends after 8 claims,
 * then each holds one and waits.
 */
static bool
mass_loss(struct world *w, const struct scenario *s)
{
	struct tally before, t;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 120 * NS_PER_S);
	int64_t from, took = 0;

	world_tally(w, &before);
	world_kill(w, 0, 900, false);
	from = world_time(w);
	do {
		good =
		    world_run(w, UINT64_MAX, world_time(w) + NS_PER_S) && good;
		world_tally(w, &t);
		took = world_time(w) - from;
	} while (good && t.serving < s->weather.hosts && took < 300 * NS_PER_S);
	(void)printf("%-14s all serve after %" PRId64 " s; %" PRIu64
		     " claims more, %" PRIu64 " at the most by one\n",
	    s->name, took / NS_PER_S, t.creates - before.creates,
	    t.most_creates);
	return (good && t.serving == s->weather.hosts && took < 90 * NS_PER_S);
}

/* Nobody issues what was issued; repaired, all serve within seconds. */
static bool
stepped_back(struct world *w, const struct scenario *s)
{
	struct tally back, t;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 120 * NS_PER_S);

	world_step_all(w, -3600000);
	good = world_run(w, UINT64_MAX, world_time(w) + 30 * NS_PER_S) && good;
	world_kill(w, 0, s->weather.hosts / 2, true);
	good = world_run(w, UINT64_MAX, world_time(w) + 30 * NS_PER_S) && good;
	world_tally(w, &back);
	world_step_all(w, 3600000);
	good = world_run(w, UINT64_MAX, world_time(w) + 10 * NS_PER_S) && good;
	world_tally(w, &t);
	(void)printf("%-14s stepped back %u serve, repaired %u of %u\n",
	    s->name, back.serving, t.serving, s->weather.hosts);
	return (good && t.serving == s->weather.hosts);
}

/* 16 IDs for 20 agents: 16 serve; the others stop creating. */
static bool
full(struct world *w, const struct scenario *s)
{
	struct tally before, after;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 100 * NS_PER_S);

	world_tally(w, &before);
	good = world_run(w, UINT64_MAX, world_time(w) + 300 * NS_PER_S) && good;
	world_tally(w, &after);
	return (good && after.serving == s->weather.workers &&
		before.serving == s->weather.workers &&
		after.creates == before.creates);
}

#define REFUSED 4

/*
 * Clocks that are half a minute behind find all marks ahead: the agents hold
 * on to one claim each until they are right again.
 */
static bool
refused(struct world *w, const struct scenario *s)
{
	struct tally before, off, after;
	bool good = world_run(w, UINT64_MAX, world_time(w) + 60 * NS_PER_S);

	world_tally(w, &before);
	world_refuse(w, 0, REFUSED, -30000);
	good = world_run(w, UINT64_MAX, world_time(w) + 60 * NS_PER_S) && good;
	world_tally(w, &off);
	world_accept(w, 0, REFUSED);
	good = world_run(w, UINT64_MAX, world_time(w) + 90 * NS_PER_S) && good;
	world_tally(w, &after);
	return (good && before.serving == s->weather.hosts &&
		off.serving == s->weather.hosts - REFUSED &&
		after.serving == s->weather.hosts &&
		off.creates - before.creates <= 2 * REFUSED);
}

static unsigned
all_there_can(const struct weather *w)
{
	return (w->hosts < w->workers ? w->hosts : (unsigned)w->workers);
}

/*
 * Trouble for so many steps: nothing may repeat.  Then calm: everybody must
 * come back, but where many fight for one ID or clocks have spoiled them.
 */
static bool
rough_times(struct world *w, const struct scenario *s, uint64_t steps)
{
	bool good = world_run(w, steps, INT64_MAX);
	struct tally t;

	if (s->must_repeat)
		return (!good);
	world_calm(w);
	good =
	    good && world_run(w, UINT64_MAX, world_time(w) + CALM_S * NS_PER_S);
	world_tally(w, &t);
	if (s->weather.force_worker == NO_WORKER && !s->weather.mad_clocks)
		good = good && t.serving == all_there_can(&s->weather);
	return (good);
}

static bool
run(const struct scenario *s, uint64_t seed, uint64_t steps)
{
	struct timespec t0, t1;
	struct world *w = world_make(&s->weather, seed);
	bool good;

	(void)clock_gettime(CLOCK_MONOTONIC, &t0);
	if (s->special != NULL)
		good = s->special(w, s);
	else
		good = rough_times(w, s, steps / 100 * s->share);
	(void)clock_gettime(CLOCK_MONOTONIC, &t1);
	report(s, w,
	    (double)(t1.tv_sec - t0.tv_sec) +
		(double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
	(void)printf(
	    "%-14s %s (%s)\n", s->name, good ? "ok" : "FAILED", s->why);
	(void)fflush(stdout);
	world_free(w);
	return (good);
}

static bool
wanted(const char *name, int argc, char **argv, int from)
{
	for (int i = from; i < argc; i++) {
		if (strcmp(name, argv[i]) == 0)
			return (true);
	}
	return (from >= argc);
}

int
main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL), steps = 1000000;
	const char *env = getenv("FIRN_TEST_SEED");
	int passed = 0, failed = 0, at = 1;

	if (env != NULL)
		seed = strtoull(env, NULL, 10);
	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--seed") == 0)
			seed = strtoull(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--steps") == 0)
			steps = strtoull(argv[at + 1], NULL, 10);
	}
	(void)printf(
	    "sim: --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!wanted(scenarios[i].name, argc, argv, at))
			continue;
		if (run(&scenarios[i], seed, steps))
			passed++;
		else
			failed++;
	}
	(void)printf("%d passed, %d failed\n", passed, failed);
	return (failed == 0 ? 0 : 1);
}
