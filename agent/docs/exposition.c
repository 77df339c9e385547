/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposition - Prometheus' text format, version 0.0.4, into a buffer.
 *
 * Invariant: what does not fit is not cut short: then there is no text at all.
 */
#include "exposition.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define US_PER_S 1000000

/* From a quick reply to the default of op_deadline_ms. */
static const struct {
	int64_t us;
	const char *text;
} bounds[EXPO_BUCKETS] = {
	{ 500, "0.0005" },
	{ 1000, "0.001" },
	{ 2500, "0.0025" },
	{ 5000, "0.005" },
	{ 10000, "0.01" },
	{ 25000, "0.025" },
	{ 50000, "0.05" },
	{ 100000, "0.1" },
	{ 250000, "0.25" },
	{ 500000, "0.5" },
	{ 1000000, "1" },
	{ 2500000, "2.5" },
};

void
expo_open(struct expo *e, char *buf, size_t size)
{
	*e = (struct expo){ .buf = buf, .size = size, .family = "" };
}

__attribute__((format(printf, 2, 3))) static void
put(struct expo *e, const char *format, ...)
{
	va_list ap;
	int n;

	if (e->full)
		return;
	va_start(ap, format);
	n = vsnprintf(e->buf + e->used, e->size - e->used, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= e->size - e->used)
		e->full = true;
	else
		e->used += (size_t)n;
}

/* A quote needs an escape in a label's value only. */
static void
put_escaped(struct expo *e, const char *text, bool in_quotes)
{
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			put(e, "\\n");
		else if (*text == '\\' || (*text == '"' && in_quotes))
			put(e, "\\%c", *text);
		else
			put(e, "%c", *text);
	}
}

static const char *
type_name(enum expo_type type)
{
	switch (type) {
	case EXPO_COUNTER:
		return ("counter");
	case EXPO_GAUGE:
		return ("gauge");
	case EXPO_HISTOGRAM:
		return ("histogram");
	}
	return ("untyped");
}

void
expo_family(
    struct expo *e, const char *name, enum expo_type type, const char *help)
{
	e->family = name;
	put(e, "# HELP %s ", name);
	put_escaped(e, help, false);
	put(e, "\n# TYPE %s %s\n", name, type_name(type));
}

/* Name and labels; the value has to follow. */
static void
put_name(struct expo *e, const struct expo_label *labels)
{
	const char *before = "{";

	put(e, "%s", e->family);
	if (labels == NULL || labels->name == NULL)
		return;
	for (; labels->name != NULL; labels++, before = ",") {
		put(e, "%s%s=\"", before, labels->name);
		put_escaped(e, labels->value, true);
		put(e, "\"");
	}
	put(e, "}");
}

void
expo_put_u64(struct expo *e, const struct expo_label *labels, uint64_t value)
{
	put_name(e, labels);
	put(e, " %" PRIu64 "\n", value);
}

void
expo_put_bool(struct expo *e, const struct expo_label *labels, bool value)
{
	expo_put_u64(e, labels, value ? 1 : 0);
}

static void
put_us(struct expo *e, int64_t us)
{
	uint64_t size = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;

	put(e, " %s%" PRIu64 ".%06" PRIu64 "\n", us < 0 ? "-" : "",
	    size / US_PER_S, size % US_PER_S);
}

void
expo_put_us(struct expo *e, const struct expo_label *labels, int64_t value_us)
{
	put_name(e, labels);
	put_us(e, value_us);
}

/* An instant in milliseconds may have no room for microseconds. */
void
expo_put_ms(struct expo *e, const struct expo_label *labels, int64_t value_ms)
{
	uint64_t size =
	    value_ms < 0 ? 0 - (uint64_t)value_ms : (uint64_t)value_ms;

	put_name(e, labels);
	put(e, " %s%" PRIu64 ".%03" PRIu64 "\n", value_ms < 0 ? "-" : "",
	    size / 1000, size % 1000);
}

void
expo_take_duration(struct expo_durations *d, int64_t us)
{
	size_t i = 0;

	if (us < 0)
		us = 0;
	while (i < EXPO_BUCKETS && us > bounds[i].us)
		i++;
	d->counts[i]++;
	d->n++;
	d->sum_us = add_sat(d->sum_us, us);
}

void
expo_put_durations(struct expo *e, const struct expo_durations *d)
{
	uint64_t up_to = 0;

	for (size_t i = 0; i < EXPO_BUCKETS; i++) {
		up_to += d->counts[i];
		put(e, "%s_bucket{le=\"%s\"} %" PRIu64 "\n", e->family,
		    bounds[i].text, up_to);
	}
	put(e, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", e->family, d->n);
	put(e, "%s_sum", e->family);
	put_us(e, d->sum_us);
	put(e, "%s_count %" PRIu64 "\n", e->family, d->n);
}

int
expo_end(const struct expo *e)
{
	return (e->full || e->used > INT_MAX ? -1 : (int)e->used);
}
