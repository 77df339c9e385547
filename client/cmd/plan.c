/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - a layout's budget at a glance, and the odds of what people would take
 * instead.  Asks nobody: arithmetic alone.
 */
#include <inttypes.h>
#include <string.h>

#include "budget.h"
#include "cmd.h"
#include "json_out.h"
#include "layout.h"
#include "reckon.h"
#include "rfc3339.h"

#define BAR_BITS 64
#define RATE_DEFAULT 1000000
#define RATE_MAX INT64_C(1000000000000)
#define FOR_DEFAULT "1y"

struct plan_options {
	struct cmd_layout layout;
	const char *bits;
	int64_t agents;
	int64_t rate;
	const char *lasts;
	bool json;
};

#define AT(field) offsetof(struct plan_options, field)

static const struct cmd_option options[] = {
	{ "layout", 0, CMD_TEXT, AT(layout.layout), "PRESET|T/W/S",
	    CMD_PRESETS ",\nor bits as for --bits; default firn", 0, 0 },
	{ "bits", 0, CMD_TEXT, AT(bits), "T/W/S",
	    "bits of time, worker and sequence, such as 41/10/12,\n"
	    "41/5+5/12 (datacenter + worker), 39/s8/w16@10ms\n"
	    "(sequence above worker, ticks of 10 ms; or @1s)",
	    0, 0 },
	{ "agents", 0, CMD_NUMBER, AT(agents), "N",
	    "bits for N agents, with a quarter to spare", 1, INT64_MAX },
	{ "epoch", 0, CMD_INSTANT, AT(layout.epoch_ms), "MS|RFC3339",
	    "where time begins; default the preset's", 0, 0 },
	{ "rate", 0, CMD_NUMBER, AT(rate), "N",
	    "random IDs a second, for the odds; default 1000000", 1, RATE_MAX },
	{ "for", 0, CMD_TEXT, AT(lasts), "TIME",
	    "for so long, such as 90d (s, m, h, d, y); default 1y", 0, 0 },
	CMD_OPT_JSON(struct plan_options, "one document"),
};

static const struct cmd_spec spec = {
	.name = "plan",
	.usage = "[--layout PRESET | --bits T/W/S | --agents N] "
		 "[--epoch MS|RFC3339]\n                 [--rate N] "
		 "[--for TIME] [--json]",
	.text = "Shows what a layout gives: until when, for how many agents, "
		"how many IDs a second;\nwhat a bit moved changes; what its "
		"agents ask of ZooKeeper; and how likely random\nIDs would "
		"collide.  Needs neither an agent nor ZooKeeper.",
	.statuses = "  0   shown\n"
		    "  1   standard output\n"
		    "  64  usage",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

/* What is shown. */
struct plan {
	struct firn_layout layout;
	struct budget budget;
	uint64_t agents; /* --agents, else as many as leave a quarter */
	struct budget_load load;
	int64_t now_ms;
	uint64_t rate;
	int64_t lasts_ms;
	const char *lasts;
};

static const struct {
	const char *name;
	char mark; /* in the bar */
} fields[BUDGET_FIELDS] = {
	[BUDGET_TIME] = { "time", 'T' },
	[BUDGET_WORKER] = { "worker", 'W' },
	[BUDGET_SEQUENCE] = { "sequence", 'S' },
};

static const char *
instant(int64_t unix_ms, char buf[RFC3339_TEXT_MAX])
{
	return (rfc3339_format(unix_ms, buf) ? buf : "beyond the year 9999");
}

static unsigned
total_bits(const struct firn_layout *l)
{
	return ((unsigned)l->time_bits + l->worker_bits + l->sequence_bits);
}

/* ---- for people ---- */

/* One character a bit, from bit 63 down. */
static void
draw_bar(const struct firn_layout *l, char bar[BAR_BITS + 1])
{
	bool above = (l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0;
	char *p = bar;

	memset(p, '-', BAR_BITS);
	p += BAR_BITS - total_bits(l);
	memset(p, 'T', l->time_bits);
	p += l->time_bits;
	if (above) {
		memset(p, 'S', l->sequence_bits);
		p += l->sequence_bits;
	}
	memset(p, 'D', l->datacenter_bits);
	memset(p + l->datacenter_bits, 'W',
	    (size_t)(l->worker_bits - l->datacenter_bits));
	p += l->worker_bits;
	if (!above)
		memset(p, 'S', l->sequence_bits);
	bar[BAR_BITS] = '\0';
}

static void
print_bits(const struct plan *p)
{
	const struct firn_layout *l = &p->layout;
	char bits[LAYOUT_TEXT_MAX], bar[BAR_BITS + 1];

	layout_format_bits(l, bits);
	draw_bar(l, bar);
	printf("layout      %s: %s bits of time, worker, sequence; ticks of "
	       "%" PRIu32 " ms; %s\n",
	    l->name, bits, l->tick_ms,
	    p->budget.has_sign ? "unsigned" : "signed");
	printf("            63%*s0\n            %s\n", BAR_BITS - 3, "", bar);
	printf("            T time %u, ", l->time_bits);
	if (l->datacenter_bits > 0)
		printf("D datacenter %u, W worker %u, ", l->datacenter_bits,
		    (unsigned)(l->worker_bits - l->datacenter_bits));
	else
		printf("W worker %u, ", l->worker_bits);
	printf("S sequence %u%s\n", l->sequence_bits,
	    total_bits(l) < BAR_BITS ? ", - always 0" : "");
}

static void
print_tenths(uint64_t tenths)
{
	char group[BUDGET_NUMBER_MAX];

	budget_group(tenths / 10, group);
	printf("%s.%" PRIu64, group, tenths % 10);
}

static void
print_times(const struct plan *p)
{
	const struct budget *b = &p->budget;
	int64_t left_ms = b->last_ms - p->now_ms;
	char at[RFC3339_TEXT_MAX];

	printf("epoch       %s\n", instant(p->layout.epoch_ms, at));
	printf("last        %s: ", instant(b->last_ms, at));
	print_tenths((uint64_t)b->span_tenths);
	if (left_ms > 0) {
		printf(" years, ");
		print_tenths((uint64_t)budget_year_tenths(left_ms));
		printf(" of them left\n");
	} else {
		printf(" years; it has ended\n");
	}
	if (b->has_sign)
		printf("sign bit    set from %s on: negative in a signed "
		       "column\n",
		    instant(b->sign_ms, at));
	else
		printf("sign bit    never set: IDs fit a signed column\n");
	if (b->has_unsafe)
		printf("2^53        passed from %s on: strings in JSON\n",
		    instant(b->unsafe_ms, at));
	else
		printf("2^53        never passed: exact in JavaScript until "
		       "%.10s\n",
		    instant(b->last_ms, at));
}

static void
print_numbers(const struct plan *p)
{
	const struct budget *b = &p->budget;
	char one[BUDGET_NUMBER_MAX], two[BUDGET_NUMBER_MAX];
	unsigned datacenter = p->layout.datacenter_bits;

	budget_group(b->workers, one);
	budget_group(b->agents, two);
	printf(
	    "workers     %s; %s agents leave a quarter to spare\n", one, two);
	if (datacenter > 0) {
		budget_group(UINT64_C(1) << datacenter, one);
		budget_group(b->workers >> datacenter, two);
		printf("            %s datacenters of %s\n", one, two);
	}
	if (p->agents != b->agents) {
		budget_group(b->workers - p->agents, one);
		budget_group(p->agents, two);
		printf("            %s to spare beside %s agents\n", one, two);
	}
	budget_group(b->worker_rate, one);
	budget_group(b->fleet_rate, two);
	printf("rate        %s IDs a second each, %s all together\n", one, two);
	budget_group(p->agents, one);
	printf("ensemble    %s agents: ", one);
	print_tenths(p->load.write_tenths);
	printf(" writes and ");
	print_tenths(p->load.read_tenths);
	printf(" reads a second,\n            ");
	print_tenths(p->load.log_bytes / 100000000);
	printf(" GB of ZooKeeper's log a day; one connection each\n");
}

static void
print_moves(const struct plan *p)
{
	char words[40], years[BUDGET_NUMBER_MAX], workers[BUDGET_NUMBER_MAX];
	char rate[BUDGET_NUMBER_MAX];
	struct firn_layout l;
	struct budget b;

	printf("\n%-22s %10s %16s %20s\n", "a bit moved", "years", "workers",
	    "IDs/s a worker");
	for (int from = 0; from < BUDGET_FIELDS; from++) {
		for (int to = 0; to < BUDGET_FIELDS; to++) {
			if (!budget_move_bit(&p->layout,
				(enum budget_field)from, (enum budget_field)to,
				&l))
				continue;
			budget_of(&l, &b);
			(void)snprintf(words, sizeof(words), "%s to %s",
			    fields[from].name, fields[to].name);
			budget_group((uint64_t)b.span_tenths / 10, years);
			budget_group(b.workers, workers);
			budget_group(b.worker_rate, rate);
			printf("%-22s %8s.%" PRId64 " %16s %20s\n", words,
			    years, b.span_tenths % 10, workers, rate);
		}
	}
}

/* "about 1 in 77,000,000", "about 12 of them" */
static void
print_odds(double collisions)
{
	char text[64];

	budget_round(collisions < 0.5 ? 1 / collisions : collisions, true, text,
	    sizeof(text));
	if (collisions < 0.5)
		printf("about 1 in %s", text);
	else
		printf("about %s collisions", text);
}

static void
print_kinds(const struct plan *p)
{
	char rate[BUDGET_NUMBER_MAX];

	budget_group(p->rate, rate);
	printf("\nodds of any collision, %s IDs a second for %s, evenly "
	       "spread\n",
	    rate, p->lasts);
	printf("%-12snone: no two agents have one worker ID\n", "this layout");
	for (int i = 0; i < BUDGET_KINDS; i++) {
		const struct budget_kind *k = &budget_kinds[i];

		printf("%-12s", k->name);
		print_odds(budget_collisions(k, p->rate, p->lasts_ms));
		printf(
		    " (%u random bits, with %s)\n", k->random_bits, k->within);
	}
}

/* ---- for programs ---- */

static void
put_instant(struct json_out *o, const char *key, bool known, int64_t unix_ms)
{
	char at[RFC3339_TEXT_MAX] = "";

	if (known && !rfc3339_format(unix_ms, at))
		at[0] = '\0';
	json_put_text_or_null(o, key, at);
}

static void
put_tenths(struct json_out *o, const char *key, uint64_t tenths)
{
	char text[BUDGET_NUMBER_MAX];

	(void)snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu64, tenths / 10,
	    tenths % 10);
	json_put_text(o, key, text);
}

static void
put_layout(struct json_out *o, const struct firn_layout *l)
{
	char bits[LAYOUT_TEXT_MAX], bar[BAR_BITS + 1];

	layout_format_bits(l, bits);
	draw_bar(l, bar);
	json_put_text(o, "layout", l->name);
	json_put_text(o, "bits", bits);
	json_put_text(o, "bar", bar);
	json_put_number(o, "time_bits", l->time_bits);
	json_put_number(o, "worker_bits", l->worker_bits);
	json_put_number(o, "datacenter_bits", l->datacenter_bits);
	json_put_number(o, "sequence_bits", l->sequence_bits);
	json_put_bool(o, "sequence_above_worker",
	    (l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0);
	json_put_number(o, "tick_ms", l->tick_ms);
	json_put_i64(o, "epoch_ms", l->epoch_ms);
}

static void
put_budget(struct json_out *o, const struct budget *b)
{
	json_put_bool(o, "signed", !b->has_sign);
	json_put_i64(o, "last_ms", b->last_ms);
	put_instant(o, "last", true, b->last_ms);
	put_tenths(o, "years", (uint64_t)b->span_tenths);
	put_instant(o, "sign_bit", b->has_sign, b->sign_ms);
	put_instant(o, "passes_2_53", b->has_unsafe, b->unsafe_ms);
	json_put_u64(o, "workers", b->workers);
	json_put_u64(o, "agents_with_a_quarter_to_spare", b->agents);
	json_put_u64(o, "ids_per_second_worker", b->worker_rate);
	json_put_u64(o, "ids_per_second_fleet", b->fleet_rate);
}

static void
put_moves(struct json_out *o, const struct plan *p)
{
	struct firn_layout l;
	struct budget b;

	json_open(o, "moves", '[');
	for (int from = 0; from < BUDGET_FIELDS; from++) {
		for (int to = 0; to < BUDGET_FIELDS; to++) {
			if (!budget_move_bit(&p->layout,
				(enum budget_field)from, (enum budget_field)to,
				&l))
				continue;
			budget_of(&l, &b);
			json_open(o, NULL, '{');
			json_put_text(o, "from", fields[from].name);
			json_put_text(o, "to", fields[to].name);
			put_tenths(o, "years", (uint64_t)b.span_tenths);
			json_put_u64(o, "workers", b.workers);
			json_put_u64(o, "ids_per_second_worker", b.worker_rate);
			json_close(o, '}');
		}
	}
	json_close(o, ']');
}

static void
put_kinds(struct json_out *o, const struct plan *p)
{
	char text[64];

	json_open(o, "odds", '{');
	json_put_u64(o, "ids_per_second", p->rate);
	json_put_i64(o, "for_ms", p->lasts_ms);
	json_open(o, "kinds", '[');
	for (int i = 0; i < BUDGET_KINDS; i++) {
		const struct budget_kind *k = &budget_kinds[i];
		double c = budget_collisions(k, p->rate, p->lasts_ms);

		json_open(o, NULL, '{');
		json_put_text(o, "kind", k->name);
		json_put_number(o, "random_bits", k->random_bits);
		json_put_text(o, "collides_within", k->within);
		budget_round(c < 0.5 ? 1 / c : c, false, text, sizeof(text));
		json_put_text_or_null(o, "one_in", c < 0.5 ? text : "");
		json_put_text(o, "collisions", c < 0.5 ? "0" : text);
		json_close(o, '}');
	}
	json_close(o, ']');
	json_close(o, '}');
}

static int
print_json(const struct plan *p)
{
	struct json_out o;

	json_out_file(&o, stdout);
	json_open(&o, NULL, '{');
	put_layout(&o, &p->layout);
	put_budget(&o, &p->budget);
	put_moves(&o, p);
	json_open(&o, "ensemble", '{');
	json_put_u64(&o, "agents", p->agents);
	put_tenths(&o, "writes_per_second", p->load.write_tenths);
	put_tenths(&o, "reads_per_second", p->load.read_tenths);
	json_put_u64(&o, "log_bytes_per_day", p->load.log_bytes);
	json_close(&o, '}');
	put_kinds(&o, p);
	json_close(&o, '}');
	(void)!json_out_end(&o); /* cmd_end() sees it */
	printf("\n");
	return (cmd_end(spec.name, CMD_DONE));
}

/* ---- what is asked for ---- */

static int
read_layout(const struct plan_options *o, struct plan *p)
{
	struct cmd_layout given = o->layout;
	char bits[LAYOUT_TEXT_MAX];
	size_t where = 0;
	int status;

	if ((o->agents != CMD_UNSET) + (given.layout != NULL) +
		(o->bits != NULL) >
	    1)
		return (cmd_fail(CMD_USAGE, spec.name,
		    "only one of --agents, --layout and --bits"));
	if (o->agents != CMD_UNSET) {
		if (!reckon_layout((uint64_t)o->agents, &p->layout))
			return (cmd_fail(CMD_USAGE, spec.name,
			    "--agents: at most %" PRIu64
			    " leave a quarter of %" PRIu64 " worker IDs",
			    WORKERS_MAX / 4 * 3, WORKERS_MAX));
		layout_format_bits(&p->layout, bits);
		given.layout = bits;
	}
	if (o->bits != NULL) {
		if (layout_parse_bits(o->bits, &p->layout, &where) != 0)
			return (
			    cmd_bad_bits(spec.name, "bits", o->bits, where));
		given.layout = o->bits;
	}
	if (!cmd_layout_given(spec.name, &given, &p->layout, &status))
		return (status);
	if (p->layout.epoch_ms > p->now_ms)
		return (cmd_fail(
		    CMD_USAGE, spec.name, "--epoch: lies in the future"));
	return (CMD_DONE);
}

static int
make(const struct plan_options *o, struct plan *p)
{
	int rc;

	*p = (struct plan){
		.now_ms = cmd_wall_ms(),
		.rate = (uint64_t)o->rate,
		.lasts = o->lasts,
	};
	if (!budget_duration(o->lasts, &p->lasts_ms))
		return (cmd_fail(CMD_USAGE, spec.name,
		    "--for: \"%s\" is no time such as 12h, 90d or 10y",
		    o->lasts));
	rc = read_layout(o, p);
	if (rc != CMD_DONE)
		return (rc);
	budget_of(&p->layout, &p->budget);
	p->agents =
	    o->agents != CMD_UNSET ? (uint64_t)o->agents : p->budget.agents;
	budget_load(p->agents, &p->load);
	return (CMD_DONE);
}

int
plan_main(int argc, char **argv)
{
	struct plan_options o = {
		.layout = { .epoch_ms = CMD_UNSET },
		.agents = CMD_UNSET,
		.rate = RATE_DEFAULT,
		.lasts = FOR_DEFAULT,
	};
	struct plan p;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = make(&o, &p);
	if (rc != CMD_DONE)
		return (rc);
	if (o.json)
		return (print_json(&p));
	print_bits(&p);
	print_times(&p);
	print_numbers(&p);
	print_moves(&p);
	print_kinds(&p);
	return (cmd_end(spec.name, CMD_DONE));
}
