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
	    "Base32, 11 Base62, 26 a ULID, 27 a KSUID,\nand text with hyphens "
	    "a UUID.  -f says it instead.",
	.statuses = "  0   all were taken apart\n"
		    "  1   standard output or input; a line of it is no ID; an "
		    "ID has more bits\n      than the layout\n"
		    "  64  usage, or an argument that is no ID",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = -1,
};

/* An ID as it was read: 64 bits, or else `kind` is there. */
struct item {
	uint64_t id;
	char kind[8]; /* "uuid7", "ulid"; "": 64 bits of the layout */
	char text[FIRN_UUID_TEXT_MAX];
	bool timed; /* of a kind: unix_ms tells its time */
	int64_t unix_ms;
	struct firn_parts parts;
};

/* What one run goes by, and how far it has come. */
struct decoding {
	struct firn_layout layout;
	enum cmd_format format;
	bool json;
	uint64_t printed;
	struct item held; /* of JSON: the first, until a second comes */
	struct json_out out;
};

/* ---- reading ---- */

/* The kinds that their length tells. */
static const struct kind {
	size_t width;
	const char *name;
	int (*parse)(const char *text, unsigned char *out, size_t *where);
	int (*format)(const unsigned char *id, char *buf, size_t n);
	int (*time)(const unsigned char *id, int64_t *unix_ms);
} kinds[] = {
	{ 26, "ulid", firn_ulid_parse, firn_ulid_format, firn_ulid_time },
	{ 27, "ksuid", firn_ksuid_parse, firn_ksuid_format, firn_ksuid_time },
};

static int
parse_by_width(
    const struct kind *k, const char *text, struct item *it, size_t *at)
{
	unsigned char raw[20];
	int err = k->parse(text, raw, at);

	(void)snprintf(it->kind, sizeof(it->kind), "%s", k->name);
	it->timed = true;
	if (err == 0)
		err = k->format(raw, it->text, sizeof(it->text));
	if (err == 0)
		err = k->time(raw, &it->unix_ms);
	return (err);
}

/* Only some versions tell a time. */
static int
parse_uuid(const char *text, struct item *it, size_t *at)
{
	unsigned char raw[16];
	int err = firn_uuid_parse(text, raw, at);

	(void)snprintf(it->kind, sizeof(it->kind), "uuid");
	if (err == 0)
		err = firn_uuid_format(raw, it->text, sizeof(it->text));
	if (err != 0)
		return (err);
	if (firn_uuid_version(raw) >= 0)
		(void)snprintf(it->kind, sizeof(it->kind), "uuid%d",
		    firn_uuid_version(raw) & 15);
	it->timed = firn_uuid_time(raw, &it->unix_ms) == 0;
	return (0);
}

/*
 * A UUID, ULID or KSUID, by its length or its hyphens.  False: it looks like
 * none; else *err is 0 or the error.
 */
static bool
parse_kind(const char *text, struct item *it, int *err, size_t *at)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (n == kinds[i].width) {
			*err = parse_by_width(&kinds[i], text, it, at);
			return (true);
		}
	}
	if (strchr(text, '-') == NULL && text[0] != '{')
		return (false);
	*err = parse_uuid(text, it, at);
	return (true);
}

static bool
parse(const struct decoding *d, const char *where, const char *text,
    struct item *it)
{
	uint64_t *id = &it->id;
	enum firn_format format;
	size_t skip = 0, at = 0;
	int err;

	*it = (struct item){ .id = 0 };
	if (d->format == CMD_ANY && parse_kind(text, it, &err, &at)) {
		if (err == FIRN_ERANGE)
			cmd_say(spec.name,
			    "%s: \"%.64s\" is no ID: over the %s's bits", where,
			    text, it->kind);
		else if (err != 0)
			cmd_say(spec.name,
			    "%s: \"%.64s\" is no ID: as %s, it is wrong at "
			    "character %zu",
			    where, text, it->kind, at + 1);
		return (err == 0);
	}
	it->kind[0] = '\0';
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
print_object(struct decoding *d, const struct item *it)
{
	bool is_kind = it->kind[0] != '\0', timed = !is_kind || it->timed;
	char time[RFC3339_TEXT_MAX];

	if (!timed || !rfc3339_format(it->unix_ms, time))
		time[0] = '\0';
	json_open(&d->out, NULL, '{');
	if (is_kind)
		json_put_text(&d->out, "id", it->text);
	else
		json_put_u64(&d->out, "id", it->id);
	json_put_text(&d->out, "kind", is_kind ? it->kind : d->layout.name);
	json_put_text_or_null(&d->out, "time", time);
	if (timed)
		json_put_i64(&d->out, "unix_ms", it->unix_ms);
	else
		json_put_text_or_null(&d->out, "unix_ms", "");
	if (is_kind) {
		json_put_text_or_null(&d->out, "worker", "");
		json_put_text_or_null(&d->out, "sequence", "");
	} else {
		json_put_number(&d->out, "worker", (int64_t)it->parts.worker);
		json_put_number(
		    &d->out, "sequence", (int64_t)it->parts.sequence);
	}
	json_close(&d->out, '}');
}

static void
print_row(const struct item *it)
{
	bool is_kind = it->kind[0] != '\0';
	char time[RFC3339_TEXT_MAX];

	if (is_kind && !it->timed)
		time[0] = '\0';
	else if (!rfc3339_format(it->unix_ms, time))
		(void)snprintf(time, sizeof(time), "%" PRId64, it->unix_ms);
	if (is_kind)
		printf("%-36s  %-24s  %s\n", it->text, time, it->kind);
	else
		printf("%-20" PRIu64 "  %-24s  %10" PRIu64 "  %10" PRIu64 "\n",
		    it->id, time, it->parts.worker, it->parts.sequence);
}

static void
print(struct decoding *d, const struct item *it)
{
	d->printed++;
	if (!d->json) {
		if (d->printed == 1 && it->kind[0] == '\0')
			printf("%-20s  %-24s  %10s  %10s\n", "id", "time",
			    "worker", "sequence");
		print_row(it);
		return;
	}
	/* one is an object, several are a list */
	if (d->printed == 1) {
		d->held = *it;
		return;
	}
	if (d->printed == 2) {
		json_open(&d->out, NULL, '[');
		print_object(d, &d->held);
	}
	print_object(d, it);
}

static int
finish(struct decoding *d, int status)
{
	if (d->json) {
		if (d->printed == 0)
			json_open(&d->out, NULL, '[');
		if (d->printed == 1)
			print_object(d, &d->held);
		else
			json_close(&d->out, ']');
		printf("\n");
	}
	return (cmd_end(spec.name, status));
}

/* ---- one ID ---- */

static bool
decode(struct decoding *d, const char *where, const char *text, struct item *it)
{
	if (it->kind[0] != '\0') {
		print(d, it);
		return (true);
	}
	it->parts.size = (uint32_t)sizeof(it->parts);
	if (firn_decode(&d->layout, it->id, &it->parts) != 0) {
		cmd_say(spec.name,
		    "%s: \"%.64s\" has more bits than the layout %s (%u/%u/%u)",
		    where, text, d->layout.name, d->layout.time_bits,
		    d->layout.worker_bits, d->layout.sequence_bits);
		return (false);
	}
	it->unix_ms = it->parts.unix_ms;
	print(d, it);
	return (true);
}

/* Nothing is printed unless all of them are IDs. */
static int
decode_arguments(struct decoding *d, int n, char **texts)
{
	struct item *ids = calloc((size_t)n, sizeof(*ids));
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
		if (!decode(d, where, texts[i], &ids[i]))
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
		struct item it;

		number++;
		n = trim_end(line, n);
		text = line + strspn(line, " \t");
		if (n == text - line)
			continue;
		(void)snprintf(where, sizeof(where), "line %" PRIu64, number);
		if (memchr(line, '\0', (size_t)n) != NULL)
			status = cmd_fail(CMD_FAILED, spec.name,
			    "%s: a NUL byte is in it", where);
		else if (!parse(d, where, text, &it) ||
			 !decode(d, where, text, &it))
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
