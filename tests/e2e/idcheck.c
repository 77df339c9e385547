/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idcheck - reads files of IDs as idload wrote them and says whether any ID
 * is there twice, whether each file only goes up, and whether each ID decodes
 * to an allowed worker and a believable time: one of the windows that its
 * agent had (--windows), and within what that agent's clock showed (--clock).
 *
 * Invariant: the search for repeats is exact whatever the files hold.  Each
 * file is mapped and cut into ascending runs (one, if it is as it should be),
 * and the runs are merged: memory grows with the number of runs, never with
 * the number of IDs.  What cannot be searched is a failure, not a pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "firn.h"
#include "layout.h"

#define RUNS_MAX 1000000u /* a file cut more often is not worth a search */
#define RANGES_MAX 256
#define SEEN_MAX 65536u
#define LINES_MAX 1000000u /* of a file of windows, or of a clock */

struct run {
	const uint64_t *next, *end;
	unsigned file;
};

/* Ticks that the agent of some files was allowed to issue on a worker ID. */
struct window {
	uint64_t worker;
	int64_t first, last;
};

/* From this instant on a clock was at most so far from the real time. */
struct drift {
	int64_t from_ms, behind_ms, ahead_ms;
};

struct table {
	void *rows;
	size_t n;
};

/* What is known of the agent that files came from. */
struct origin {
	struct table windows; /* sorted; n == 0 and rows == NULL: any */
	struct table clock; /* ascending */
};

struct file {
	const char *name;
	struct origin from;
};

struct range {
	uint64_t first, last;
};

/* One record of a .pairs file: clock readings around one call, and its ID. */
struct pair {
	int64_t before_ns, after_ns;
	uint64_t id;
};

struct check {
	struct firn_layout layout;
	struct range allowed[RANGES_MAX];
	unsigned nallowed; /* 0: any worker */
	int64_t not_before_ms, not_after_ms;
	int64_t ttl_ms, lead_ms; /* of pairs; -1: not looked at */
	unsigned show; /* how many faults of a kind are told */
	struct origin from; /* of the files that are named next */
	struct file *files;
	unsigned nfiles;
	struct run *runs;
	unsigned nruns, runs_room;
	bool hopeless; /* more runs than can be merged */
	uint64_t ids, pairs;
	uint64_t repeats, decreases, bad_worker, bad_time, bad_pair, bad_bits;
	uint64_t bad_window;
	uint64_t first_id, last_id; /* smallest and largest */
	int64_t oldest_ms; /* largest age seen in a pair */
	uint8_t seen[SEEN_MAX];
};

static void
usage(FILE *out)
{
	fputs(
	    "usage: idcheck [--layout NAME|T/W/S] [--epoch MS] [--tick MS]\n"
	    "           [--workers A-B,C,...] [--not-before MS] "
	    "[--not-after MS]\n"
	    "           [--ttl MS] [--lead MS] [--show N]\n"
	    "           {[--windows W] [--clock C] FILE...}...\n"
	    "FILE.ids holds 64-bit IDs in the order in which one thread took\n"
	    "them, FILE.pairs clock readings around single calls (--ttl and\n"
	    "--lead bound what those may say).\n"
	    "W is text, for the files named after it: WORKER FIRST LAST, the\n"
	    "ticks that their IDs may have; an ID outside is a fault.  C is\n"
	    "text, for those files, too: FROM_MS BEHIND_MS AHEAD_MS, how far\n"
	    "from that instant on the clock may have been from the real one;\n"
	    "--ttl and --lead are widened by that.  \"\" ends either.\n"
	    "Exit status: 0 as it should be, 1 a fault, 64 usage, 2 a file\n"
	    "that cannot be read.\n",
	    out);
}

static void
die(int status, const char *what, const char *detail)
{
	fprintf(stderr, "idcheck: %s: %s\n", what, detail);
	exit(status);
}

/* True while faults of this kind are still worth a line. */
static bool
tell(const struct check *c, uint64_t *count)
{
	return ((*count)++ < c->show);
}

/* ---- what is known of an agent ----------------------------------------- */

static int
compare_windows(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	if (x->worker != y->worker)
		return (x->worker < y->worker ? -1 : 1);
	return (x->first < y->first ? -1 : x->first > y->first);
}

/*
 * Reads lines of three numbers, no more and no less; a row is three 64-bit
 * numbers, too.  An empty name is no table, an empty file one without rows.
 */
static struct table
read_table(const char *name)
{
	struct table t = { NULL, 0 };
	int64_t(*rows)[3] = NULL;
	char line[128], rest;
	size_t room = 0;
	FILE *f;

	if (*name == '\0')
		return (t);
	f = fopen(name, "re");
	if (f == NULL)
		die(2, name, strerror(errno));
	for (;;) {
		if (t.n == room) {
			room = room == 0 ? 64 : 2 * room;
			rows = realloc(rows, room * sizeof(*rows));
			if (rows == NULL || room > LINES_MAX)
				die(2, name, "too many lines");
		}
		if (fgets(line, sizeof(line), f) == NULL)
			break;
		if (strchr(line, '\n') == NULL ||
		    sscanf(line, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %c",
			&rows[t.n][0], &rows[t.n][1], &rows[t.n][2],
			&rest) != 3)
			die(2, name, "a line that is not three numbers");
		t.n++;
	}
	if (ferror(f))
		die(2, name, strerror(errno));
	(void)fclose(f);
	t.rows = rows;
	return (t);
}

static struct table
read_windows(const char *name)
{
	struct table t = read_table(name);
	const struct window *w = t.rows;

	if (t.n > 0)
		qsort(t.rows, t.n, sizeof(*w), compare_windows);
	for (size_t i = 0; i < t.n; i++) {
		if (w[i].last < w[i].first ||
		    (i > 0 && w[i].worker == w[i - 1].worker &&
			w[i].first <= w[i - 1].last))
			die(2, name, "windows that overlap, or are empty");
	}
	return (t);
}

static struct table
read_clock(const char *name)
{
	struct table t = read_table(name);
	const struct drift *d = t.rows;

	for (size_t i = 0; i < t.n; i++) {
		if (d[i].behind_ms < 0 || d[i].ahead_ms < 0 ||
		    (i > 0 && d[i].from_ms < d[i - 1].from_ms))
			die(2, name, "a clock that goes back, or less than 0");
	}
	return (t);
}

/* The last row that begins at or before this; NULL if none does. */
static const struct window *
window_find(const struct table *t, uint64_t worker, int64_t tick)
{
	const struct window *w = t->rows;
	const struct window key = { worker, tick, tick };
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_windows(&w[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return (low > 0 ? &w[low - 1] : NULL);
}

static bool
window_allows(const struct table *t, uint64_t worker, int64_t tick)
{
	static const struct window *last; /* IDs come in runs */

	if (t->rows == NULL)
		return (true);
	if (last == NULL || last < (struct window *)t->rows ||
	    last >= (struct window *)t->rows + t->n || last->worker != worker ||
	    tick < last->first || tick > last->last)
		last = window_find(t, worker, tick);
	return (last != NULL && last->worker == worker && tick <= last->last);
}

/* What a clock was off until then, at most. */
static struct drift
clock_drift(const struct table *t, int64_t until_ms)
{
	const struct drift *d = t->rows;
	struct drift found = { 0, 0, 0 };

	for (size_t i = 0; i < t->n && d[i].from_ms <= until_ms; i++) {
		if (d[i].behind_ms > found.behind_ms)
			found.behind_ms = d[i].behind_ms;
		if (d[i].ahead_ms > found.ahead_ms)
			found.ahead_ms = d[i].ahead_ms;
	}
	return (found);
}

/* ---- one ID ------------------------------------------------------------ */

static bool
worker_allowed(const struct check *c, uint64_t worker)
{
	for (unsigned i = 0; i < c->nallowed; i++) {
		if (worker >= c->allowed[i].first &&
		    worker <= c->allowed[i].last)
			return (true);
	}
	return (c->nallowed == 0);
}

static void
check_id(struct check *c, const struct file *file, size_t at, uint64_t id)
{
	const char *name = file->name;
	uint64_t tick, worker, sequence;
	int64_t ms;

	if (!layout_split(&c->layout, id, &tick, &worker, &sequence)) {
		if (tell(c, &c->bad_bits))
			fprintf(stderr,
			    "%s[%zu]: %" PRIu64 " has bits above "
			    "the layout's\n",
			    name, at, id);
		return;
	}
	if (worker < SEEN_MAX)
		c->seen[worker] = 1;
	if (!worker_allowed(c, worker) && tell(c, &c->bad_worker))
		fprintf(stderr,
		    "%s[%zu]: %" PRIu64 " is of worker %" PRIu64
		    ", which is none of those allowed\n",
		    name, at, id, worker);
	if (!window_allows(&file->from.windows, worker, (int64_t)tick) &&
	    tell(c, &c->bad_window))
		fprintf(stderr,
		    "%s[%zu]: %" PRIu64 " is of worker %" PRIu64
		    " and tick %" PRIu64 ", in none of its agent's windows\n",
		    name, at, id, worker, tick);
	ms = layout_tick_start_ms(&c->layout, (int64_t)tick);
	if ((ms < c->not_before_ms || ms > c->not_after_ms) &&
	    tell(c, &c->bad_time))
		fprintf(stderr,
		    "%s[%zu]: %" PRIu64 " has the time %" PRId64
		    ", outside %" PRId64 "..%" PRId64 "\n",
		    name, at, id, ms, c->not_before_ms, c->not_after_ms);
}

/*
 * The ID of a call that began at before_ns may be as old as its batch may
 * get, and as far ahead as borrowing goes; clocks are read apart, hence the
 * tick and a millisecond.  Whatever its agent's clock ever showed counts: it
 * may still go on from there.
 */
static void
check_pair(
    struct check *c, const struct file *file, size_t at, const struct pair *p)
{
	const char *name = file->name;
	uint64_t tick, worker, sequence;
	int64_t ms, age_ms, ahead_ms;
	int64_t slack_ms = (int64_t)c->layout.tick_ms + 1;
	struct drift off =
	    clock_drift(&file->from.clock, p->after_ns / 1000000);

	c->pairs++;
	if (!layout_split(&c->layout, p->id, &tick, &worker, &sequence)) {
		if (tell(c, &c->bad_bits))
			fprintf(stderr, "%s[%zu]: bits above the layout's\n",
			    name, at);
		return;
	}
	ms = layout_tick_start_ms(&c->layout, (int64_t)tick);
	age_ms = p->before_ns / 1000000 - ms;
	ahead_ms = ms - p->after_ns / 1000000;
	if (age_ms > c->oldest_ms)
		c->oldest_ms = age_ms;
	if (c->ttl_ms >= 0 && age_ms > c->ttl_ms + off.behind_ms + slack_ms &&
	    tell(c, &c->bad_pair))
		fprintf(stderr,
		    "%s[%zu]: %" PRIu64 " was %" PRId64
		    " ms old when it was asked for\n",
		    name, at, p->id, age_ms);
	if (c->lead_ms >= 0 &&
	    ahead_ms > c->lead_ms + off.ahead_ms + slack_ms &&
	    tell(c, &c->bad_pair))
		fprintf(stderr,
		    "%s[%zu]: %" PRIu64 " was %" PRId64
		    " ms ahead of the clock\n",
		    name, at, p->id, ahead_ms);
}

/* ---- one file ---------------------------------------------------------- */

/* Maps a file whole; *n is its length in records. */
static const void *
map_file(const char *name, size_t record, size_t *n)
{
	struct stat st;
	void *p;
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd == -1 || fstat(fd, &st) == -1)
		die(2, name, strerror(errno));
	if ((size_t)st.st_size % record != 0)
		die(2, name, "cut off in the middle of a record");
	*n = (size_t)st.st_size / record;
	if (*n == 0) {
		close(fd);
		return (NULL);
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die(2, name, strerror(errno));
	(void)madvise(p, (size_t)st.st_size, MADV_SEQUENTIAL);
	close(fd);
	return (p);
}

static void
add_run(
    struct check *c, unsigned file, const uint64_t *from, const uint64_t *end)
{
	if (c->nruns == RUNS_MAX) {
		c->hopeless = true;
		return;
	}
	if (c->nruns == c->runs_room) {
		c->runs_room = c->runs_room == 0 ? 64 : 2 * c->runs_room;
		c->runs = realloc(c->runs, c->runs_room * sizeof(*c->runs));
		if (c->runs == NULL)
			die(2, "runs", strerror(errno));
	}
	c->runs[c->nruns++] = (struct run){ from, end, file };
}

static void
read_ids(struct check *c, unsigned file)
{
	const char *name = c->files[file].name;
	size_t n, start = 0;
	const uint64_t *id = map_file(name, sizeof(*id), &n);

	for (size_t i = 0; i < n; i++) {
		check_id(c, &c->files[file], i, id[i]);
		if (id[i] < c->first_id)
			c->first_id = id[i];
		if (id[i] > c->last_id)
			c->last_id = id[i];
		/* an equal one is a repeat: the merge finds it */
		if (i == 0 || id[i] > id[i - 1])
			continue;
		if (tell(c, &c->decreases))
			fprintf(stderr,
			    "%s[%zu]: %" PRIu64 " does not lie "
			    "above %" PRIu64 ", taken just before\n",
			    name, i, id[i], id[i - 1]);
		add_run(c, file, id + start, id + i);
		start = i;
	}
	if (n > 0)
		add_run(c, file, id + start, id + n);
	c->ids += n;
}

static void
read_pairs(struct check *c, unsigned file)
{
	size_t n;
	const struct pair *p = map_file(c->files[file].name, sizeof(*p), &n);

	for (size_t i = 0; i < n; i++)
		check_pair(c, &c->files[file], i, &p[i]);
}

static bool
is_pairs(const char *name)
{
	static const char suffix[] = ".pairs";
	size_t n = strlen(name), k = sizeof(suffix) - 1;

	return (n >= k && strcmp(name + n - k, suffix) == 0);
}

/* ---- all files: the merge ---------------------------------------------- */

/* Restores the heap (smallest next ID on top) below position i. */
static void
sift(struct run *heap, unsigned n, unsigned i)
{
	struct run moving = heap[i];

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && *heap[child + 1].next < *heap[child].next)
			child++;
		if (*moving.next <= *heap[child].next)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moving;
}

static void
find_repeats(struct check *c)
{
	struct run *heap = c->runs;
	unsigned n = c->nruns, last_file = 0;
	uint64_t last = 0;
	bool any = false;

	for (unsigned i = n / 2; i-- > 0;)
		sift(heap, n, i);
	while (n > 0) {
		uint64_t id = *heap[0].next++;

		if (any && id == last && tell(c, &c->repeats))
			fprintf(stderr,
			    "repeated: %" PRIu64 " in %s and in "
			    "%s\n",
			    id, c->files[last_file].name,
			    c->files[heap[0].file].name);
		any = true;
		last = id;
		last_file = heap[0].file;
		if (heap[0].next == heap[0].end)
			heap[0] = heap[--n];
		sift(heap, n, 0);
	}
}

/* ---- command line and summary ------------------------------------------ */

static int64_t
number(const char *text, const char *option)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0)
		die(64, option, "not a number");
	return ((int64_t)v);
}

static void
parse_workers(struct check *c, const char *text)
{
	while (*text != '\0') {
		char *end;
		struct range r;

		if (c->nallowed == RANGES_MAX)
			die(64, "--workers", "too many ranges");
		r.first = r.last = strtoull(text, &end, 10);
		if (end != text && *end == '-') {
			text = end + 1;
			r.last = strtoull(text, &end, 10);
		}
		if (end == text || (*end != ',' && *end != '\0') ||
		    r.last < r.first)
			die(64, "--workers", "not a list such as 1-3,7");
		c->allowed[c->nallowed++] = r;
		text = *end == ',' ? end + 1 : end;
	}
}

static void
parse_layout(struct check *c, const char *text)
{
	if (firn_layout_preset(text, &c->layout) != 0 &&
	    layout_parse_bits(text, &c->layout, NULL) != 0)
		die(64, "--layout", "neither a preset nor T/W/S");
}

static void
add_file(struct check *c, const char *name)
{
	c->files[c->nfiles].name = name;
	c->files[c->nfiles++].from = c->from;
}

static const struct option options[] = {
	{ "layout", required_argument, NULL, 'l' },
	{ "epoch", required_argument, NULL, 'e' },
	{ "tick", required_argument, NULL, 't' },
	{ "workers", required_argument, NULL, 'w' },
	{ "not-before", required_argument, NULL, 'b' },
	{ "not-after", required_argument, NULL, 'a' },
	{ "ttl", required_argument, NULL, 'T' },
	{ "lead", required_argument, NULL, 'L' },
	{ "show", required_argument, NULL, 's' },
	{ "windows", required_argument, NULL, 'W' },
	{ "clock", required_argument, NULL, 'C' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
set_option(struct check *c, int o, const char *value)
{
	if (o == 'l')
		parse_layout(c, value);
	else if (o == 'e')
		c->layout.epoch_ms = number(value, "--epoch");
	else if (o == 't')
		c->layout.tick_ms = (uint32_t)number(value, "--tick");
	else if (o == 'w')
		parse_workers(c, value);
	else if (o == 'b')
		c->not_before_ms = number(value, "--not-before");
	else if (o == 'a')
		c->not_after_ms = number(value, "--not-after");
	else if (o == 'T')
		c->ttl_ms = number(value, "--ttl");
	else if (o == 'L')
		c->lead_ms = number(value, "--lead");
	else if (o == 's')
		c->show = (unsigned)number(value, "--show");
	else if (o == 'W')
		c->from.windows = read_windows(value);
	else if (o == 'C')
		c->from.clock = read_clock(value);
	else if (o == 1)
		add_file(c, value);
}

static void
parse_options(struct check *c, int argc, char **argv)
{
	int o;

	parse_layout(c, "firn");
	c->files = calloc((size_t)argc, sizeof(*c->files));
	if (c->files == NULL)
		die(2, "files", strerror(errno));
	/* "-": files in their order among the options, as option 1 */
	while ((o = getopt_long(argc, argv, "-", options, NULL)) != -1) {
		if (o == 'h') {
			usage(stdout);
			exit(0);
		}
		if (o == '?') {
			usage(stderr);
			exit(64);
		}
		set_option(c, o, optarg);
	}
	while (optind < argc)
		add_file(c, argv[optind++]);
	if (c->nfiles == 0 || !layout_valid(&c->layout)) {
		usage(stderr);
		exit(64);
	}
}

static void
print_summary(const struct check *c)
{
	const char *comma = "";

	printf("{\"files\": %u, \"ids\": %" PRIu64 ", \"pairs\": %" PRIu64
	       ", \"repeats\": %" PRIu64 ", \"decreases\": %" PRIu64
	       ", \"bad_worker\": %" PRIu64 ", \"bad_time\": %" PRIu64
	       ", \"bad_pair\": %" PRIu64 ", \"bad_bits\": %" PRIu64
	       ", \"bad_window\": %" PRIu64 ", \"searched\": %s",
	    c->nfiles, c->ids, c->pairs, c->repeats, c->decreases,
	    c->bad_worker, c->bad_time, c->bad_pair, c->bad_bits, c->bad_window,
	    c->hopeless ? "false" : "true");
	if (c->pairs > 0)
		printf(", \"oldest_ms\": %" PRId64, c->oldest_ms);
	if (c->ids > 0)
		printf(", \"first_id\": \"%" PRIu64
		       "\", \"last_id\": \"%" PRIu64 "\"",
		    c->first_id, c->last_id);
	printf(", \"workers\": [");
	for (unsigned i = 0; i < SEEN_MAX; i++) {
		if (c->seen[i]) {
			printf("%s%u", comma, i);
			comma = ", ";
		}
	}
	printf("]}\n");
}

int
main(int argc, char **argv)
{
	static struct check c = {
		.not_before_ms = INT64_MIN,
		.not_after_ms = INT64_MAX,
		.ttl_ms = -1,
		.lead_ms = -1,
		.show = 10,
		.first_id = UINT64_MAX,
		.oldest_ms = INT64_MIN,
	};

	parse_options(&c, argc, argv);
	for (unsigned i = 0; i < c.nfiles; i++) {
		if (is_pairs(c.files[i].name))
			read_pairs(&c, i);
		else
			read_ids(&c, i);
	}
	if (c.hopeless)
		fprintf(stderr, "idcheck: too disordered: no search for "
				"repeats was made\n");
	else
		find_repeats(&c);
	print_summary(&c);
	free(c.runs);
	return (c.hopeless || c.repeats + c.decreases + c.bad_worker +
				      c.bad_time + c.bad_pair + c.bad_bits +
				      c.bad_window >
				  0);
}
