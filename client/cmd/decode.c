/* SPDX-License-Identifier: Apache-2.0 */
/* decode - takes IDs apart: from the arguments, or one a line, streamed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json_out.h"
#include "reckon.h"
#include "rfc3339.h"

struct decode_options {
	struct cmd_layout layout;
	enum cmd_format format;
	bool json;
	const char *socket;
};

static const struct cmd_option options[] = {
	CMD_OPT_LAYOUT(struct decode_options),
	{ "format", 'f', CMD_FORMAT, offsetof(struct decode_options, format),
	    "FORMAT",
	    "dec, hex, base62 or crockford: the IDs' form;\n"
	    "without it each ID's form is found out",
	    0, 0 },
	CMD_OPT_JSON(struct decode_options,
	    "one document: an object, or a list of them if there\n"
	    "are several IDs"),
	CMD_OPT_SOCKET(struct decode_options),
};

static const struct cmd_spec spec = {
	.name = "decode",
	.usage = "[--layout PRESET|T/W/S] [--epoch MS|RFC3339] [-f FORMAT] "
		 "[--json] [ID...]",
	.text =
	    "Takes IDs apart into time, worker and sequence.  Without IDs it "
	    "reads one a line\nfrom standard input; a line that is no ID is "
	    "named on standard error and left out.\n\n"
	    "The form of an ID is found out: 0x and hex digits; digits alone "
	    "(at most 20, no\nleading zero) are decimal, also if there are 11, "
	    "13 or 16 of them; else 16\ncharacters are hex, 13 Crockford's "
	    "Base32, 11 Base62.  -f says it instead.",
	.statuses = "  0   all were taken apart\n"
		    "  1   standard output or input; a line of it is no ID; an "
		    "ID has more bits\n      than the layout\n"
		    "  64  usage, or an argument that is no ID",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = -1,
};

/* What one run goes by, and how far it has come. */
struct decoding {
	struct firn_layout layout;
	enum cmd_format format;
	bool json;
	uint64_t printed;
	struct firn_parts held; /* of JSON: the first, until a second comes */
	uint64_t held_id;
	struct json_out out;
};

/* ---- reading ---- */

static bool
parse(
    const struct decoding *d, const char *where, const char *text, uint64_t *id)
{
	enum firn_format format;
	size_t skip = 0, at = 0;
	int err;

	if (d->format != CMD_ANY) {
		format = (enum firn_format)d->format;
		if (format == FIRN_HEX && strncmp(text, "0x", 2) == 0)
			skip = 2;
	} else if (!reckon_format(text, &format, &skip)) {
		cmd_say(spec.name,
		    "%s: \"%.64s\" is no ID: %zu characters are no known form",
		    where, text, strlen(text));
		return (false);
	}
	err = firn_parse_id(text + skip, format, id, &at);
	if (err == 0)
		return (true);
	if (err == FIRN_ERANGE)
		cmd_say(spec.name, "%s: \"%.64s\" is no ID: over 64 bits",
		    where, text);
	else
		cmd_say(spec.name,
		    "%s: \"%.64s\" is no ID: as %s, it is wrong at character "
		    "%zu",
		    where, text, cmd_format_name((enum cmd_format)format),
		    at + skip + 1);
	return (false);
}

/* ---- printing ---- */

static void
print_object(struct decoding *d, const char *kind, uint64_t id,
    const struct firn_parts *p)
{
	char time[RFC3339_TEXT_MAX];

	if (!rfc3339_format(p->unix_ms, time))
		time[0] = '\0';
	json_open(&d->out, NULL, '{');
	json_put_u64(&d->out, "id", id);
	json_put_text(&d->out, "kind", kind);
	json_put_text_or_null(&d->out, "time", time);
	json_put_i64(&d->out, "unix_ms", p->unix_ms);
	json_put_number(&d->out, "worker", (int64_t)p->worker);
	json_put_number(&d->out, "sequence", (int64_t)p->sequence);
	json_close(&d->out, '}');
}

static void
print_row(uint64_t id, const struct firn_parts *p)
{
	char time[RFC3339_TEXT_MAX];

	if (!rfc3339_format(p->unix_ms, time))
		(void)snprintf(time, sizeof(time), "%" PRId64, p->unix_ms);
	printf("%-20" PRIu64 "  %-24s  %10" PRIu64 "  %10" PRIu64 "\n", id,
	    time, p->worker, p->sequence);
}

static void
print(struct decoding *d, uint64_t id, const struct firn_parts *p)
{
	const char *kind = d->layout.name;

	d->printed++;
	if (!d->json) {
		if (d->printed == 1)
			printf("%-20s  %-24s  %10s  %10s\n", "id", "time",
			    "worker", "sequence");
		print_row(id, p);
		return;
	}
	/* one is an object, several are a list */
	if (d->printed == 1) {
		d->held = *p;
		d->held_id = id;
		return;
	}
	if (d->printed == 2) {
		json_open(&d->out, NULL, '[');
		print_object(d, kind, d->held_id, &d->held);
	}
	print_object(d, kind, id, p);
}

static int
finish(struct decoding *d, int status)
{
	if (d->json) {
		if (d->printed == 0)
			json_open(&d->out, NULL, '[');
		if (d->printed == 1)
			print_object(d, d->layout.name, d->held_id, &d->held);
		else
			json_close(&d->out, ']');
		printf("\n");
	}
	return (cmd_end(spec.name, status));
}

/* ---- one ID ---- */

static bool
decode(struct decoding *d, const char *where, const char *text, uint64_t id)
{
	struct firn_parts parts = { .size = (uint32_t)sizeof(parts) };

	if (firn_decode(&d->layout, id, &parts) != 0) {
		cmd_say(spec.name,
		    "%s: \"%.64s\" has more bits than the layout %s (%u/%u/%u)",
		    where, text, d->layout.name, d->layout.time_bits,
		    d->layout.worker_bits, d->layout.sequence_bits);
		return (false);
	}
	print(d, id, &parts);
	return (true);
}

/* Nothing is printed unless all of them are IDs. */
static int
decode_arguments(struct decoding *d, int n, char **texts)
{
	uint64_t *ids = calloc((size_t)n, sizeof(*ids));
	int status = CMD_DONE;
	char where[32];

	if (ids == NULL)
		return (cmd_fail(CMD_FAILED, spec.name, "out of memory"));
	for (int i = 0; i < n && status == CMD_DONE; i++) {
		(void)snprintf(where, sizeof(where), "argument %d", i + 1);
		if (!parse(d, where, texts[i], &ids[i]))
			status = CMD_USAGE;
	}
	if (status == CMD_USAGE) {
		free(ids);
		return (status);
	}
	for (int i = 0; i < n; i++) {
		(void)snprintf(where, sizeof(where), "argument %d", i + 1);
		if (!decode(d, where, texts[i], ids[i]))
			status = CMD_FAILED;
	}
	free(ids);
	return (finish(d, status));
}

/* Blanks after it, and a carriage return, are no part of the ID. */
static ssize_t
trim_end(char *line, ssize_t n)
{
	while (n > 0 && memchr(" \t\r\n", line[n - 1], 4) != NULL)
		line[--n] = '\0';
	return (n);
}

static int
decode_lines(struct decoding *d)
{
	int status = CMD_DONE;
	uint64_t number = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, stdin)) != -1) {
		char where[40], *text;
		uint64_t id;

		number++;
		n = trim_end(line, n);
		text = line + strspn(line, " \t");
		if (n == text - line)
			continue;
		(void)snprintf(where, sizeof(where), "line %" PRIu64, number);
		if (memchr(line, '\0', (size_t)n) != NULL)
			status = cmd_fail(CMD_FAILED, spec.name,
			    "%s: a NUL byte is in it", where);
		else if (!parse(d, where, text, &id) ||
			 !decode(d, where, text, id))
			status = CMD_FAILED;
		if (ferror(stdout) != 0)
			break;
	}
	if (ferror(stdin) != 0)
		status = cmd_fail(CMD_FAILED, spec.name, "standard input: %s",
		    strerror(errno));
	free(line);
	return (finish(d, status));
}

int
decode_main(int argc, char **argv)
{
	struct decode_options o = {
		.layout = { .epoch_ms = CMD_UNSET },
		.format = CMD_ANY,
	};
	struct decoding d = { .printed = 0 };
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	if (!cmd_layout_find(spec.name, &o.layout, o.socket, &d.layout, &rc))
		return (rc);
	d.format = o.format;
	d.json = o.json;
	json_out_file(&d.out, stdout);
	if (first < argc)
		return (decode_arguments(&d, argc - first, argv + first));
	return (decode_lines(&d));
}
