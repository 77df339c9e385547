/* SPDX-License-Identifier: Apache-2.0 */
/* status - how the agent on this host is, in words or as its document. */
#include <inttypes.h>
#include <string.h>

#include "ask.h"
#include "cmd.h"
#include "rfc3339.h"

struct status_options {
	const char *socket;
	bool json;
	int64_t timeout_ms;
};

static const struct cmd_option options[] = {
	CMD_OPT_SOCKET(struct status_options),
	CMD_OPT_JSON(struct status_options, "the agent's document"),
	CMD_OPT_TIMEOUT(
	    struct status_options, "how long to wait for it; default 2000"),
};

static const struct cmd_spec spec = {
	.name = "status",
	.usage = "[--socket PATH] [--json] [--timeout MS]",
	.text = "Shows how the agent on this host is.",
	.statuses =
	    "  0   it serves (serving or isolated)\n"
	    "  1   standard output, or bytes that are not the protocol\n"
	    "  64  usage\n"
	    "  69  no answer\n"
	    "  75  it answers but refuses (claiming, refusing, "
	    "draining)\n"
	    "  77  not allowed to use the socket",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

/* As it is, but nothing in it steers a terminal. */
static void
print_document(const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		unsigned char next = (unsigned char)text[1];

		if (c == 0x7f) {
			printf("\\u007f");
		} else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
			printf("\\u%04x", next);
			text++;
		} else {
			(void)putchar(c);
		}
	}
	(void)putchar('\n');
}

static void
print_realm(const struct status_doc *d)
{
	if (d->realm[0] == '\0') {
		printf("realm       not known yet\n");
		return;
	}
	printf("realm       %s", d->realm);
	if (d->generation[0] != '\0')
		printf(", generation %s", d->generation);
	if (d->bits[0] != '\0')
		printf(", layout %s (%s)", d->layout, d->bits);
	printf("\n");
}

/* An agent of an older version says nothing: it knows ZooKeeper alone. */
static bool
is_alone(const struct status_doc *d)
{
	return (d->source[0] != '\0' && strcmp(d->source, "zookeeper") != 0);
}

static void
print_worker(const struct status_doc *d)
{
	const char *how = "";

	if (is_alone(d))
		how = ", without ZooKeeper";
	else if (!d->connected)
		how = ", ZooKeeper away";
	if (d->worker == NO_WORKER)
		printf("worker      none%s\n", how);
	else
		printf("worker      %" PRIu64 "%s%s%s\n", d->worker,
		    d->claim[0] == '\0' ? "" : ", claim ", d->claim, how);
}

static void
print_left(const struct status_doc *d)
{
	int64_t ms = d->window_left_ms < 0 ? 0 : d->window_left_ms;

	printf("%" PRId64 ".%03" PRId64 " s left", ms / 1000, ms % 1000);
}

static void
print_window(const struct status_doc *d)
{
	char until[RFC3339_TEXT_MAX];

	if (is_alone(d))
		return; /* no window: the state file is the mark */
	printf("window      ");
	if (d->mark_ms == 0 || !rfc3339_format(d->mark_ms, until)) {
		printf("none\n");
		return;
	}
	print_left(d);
	printf(", until %s\n", until);
}

static void
print_clock(const struct status_doc *d)
{
	if (d->has_skew)
		printf("clock       skew %+" PRId64 " ms, offset %+" PRId64
		       " ms against ZooKeeper, give or take %" PRId64
		       " ms, %" PRId64 " peers\n",
		    d->skew_ms, d->offset_ms, d->error_ms, d->peers);
	else if (d->has_offset)
		printf("clock       offset %+" PRId64
		       " ms against ZooKeeper, give or take %" PRId64
		       " ms, not compared with peers\n",
		    d->offset_ms, d->error_ms);
}

/* What is as it should be takes no line. */
static void
print_count(const char *name, uint64_t n, const char *words)
{
	if (n > 0)
		printf("%-11s %" PRIu64 " %s\n", name, n, words);
}

/* The texts are printable ASCII: status_parse() sees to it. */
static void
print_human(const struct status_doc *d)
{
	printf("state       %s", d->state);
	if (d->reason[0] != '\0')
		printf(" (%s)", d->reason);
	if (strcmp(d->state, "isolated") == 0) {
		printf(", ");
		print_left(d);
	}
	printf("\n");
	if (d->words[0] != '\0')
		printf("why         %s\n", d->words);
	print_realm(d);
	print_worker(d);
	print_window(d);
	print_clock(d);
	printf("granted     %" PRIu64 " IDs to clients' caches, in %" PRIu64
	       " batches; %" PRIu64 " refusals, %" PRIu64 " clients now\n",
	    d->issued, d->batches, d->refusals, d->clients);
	print_count("denied", d->denied, "connections of users not let in");
	print_count("limited", d->limited,
	    "requests over max_ids_per_second, in part or whole");
	print_count("reloads", d->config_reload_failures,
	    "of the configuration failed, see the log");
	printf("agent       pid %" PRId64 ", version %s\n", d->pid,
	    d->version[0] == '\0' ? "unknown" : d->version);
}

int
status_main(int argc, char **argv)
{
	struct status_options o = { .timeout_ms = 2000 };
	static struct ask_answer answer;
	struct ask a;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	ask_open(&a, cmd_socket(o.socket));
	rc = ask_status(&a, cmd_boot_ms() + o.timeout_ms, &answer);
	ask_close(&a);
	if (rc != CMD_DONE)
		return (cmd_fail(rc, spec.name, "%s", answer.why));
	if (o.json)
		print_document(answer.text);
	else
		print_human(&answer.doc);
	rc = cmd_end(spec.name, CMD_DONE);
	if (rc != CMD_DONE || ask_serves(&answer.doc))
		return (rc);
	/* why stands in what was printed */
	return (cmd_fail(
	    CMD_AGAIN, spec.name, "%s: the agent does not serve", a.socket));
}
