/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposition - Prometheus' text format, version 0.0.4, into a buffer.
 *
 * Invariant: what does not fit is not cut short: then there is no text at all.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include "doc.h"
#include "types.h"

#define EXPO_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define EXPO_BUCKETS 12 /* and one without an end */

enum expo_type { EXPO_COUNTER, EXPO_GAUGE, EXPO_HISTOGRAM };

struct expo {
	char *buf;
	size_t size, used;
	bool full; /* something did not fit */
	const char *family; /* that the next samples are of */
};

/* A list ends with a name that is NULL; NULL instead of a list is none. */
struct expo_label {
	const char *name;
	const char *value; /* any text in UTF-8 */
};

/* How long something took; zeroes are a good start. */
struct expo_durations {
	uint64_t counts[EXPO_BUCKETS + 1]; /* not cumulative */
	uint64_t n;
	int64_t sum_us;
};

void expo_open(struct expo *e, char *buf, size_t size);

/* HELP and TYPE; samples follow, or none if the value is not known. */
void expo_family(
    struct expo *e, const char *name, enum expo_type type, const char *help);

void expo_put_u64(
    struct expo *e, const struct expo_label *labels, uint64_t value);
void expo_put_bool(struct expo *e, const struct expo_label *labels, bool value);
/* As seconds, exactly. */
void expo_put_us(
    struct expo *e, const struct expo_label *labels, int64_t value_us);
void expo_put_ms(
    struct expo *e, const struct expo_label *labels, int64_t value_ms);

void expo_take_duration(struct expo_durations *d, int64_t us);
void expo_put_durations(struct expo *e, const struct expo_durations *d);

/* The length of the text, -1: it does not fit. */
FIRN_CHECK_RESULT int expo_end(const struct expo *e);

#endif
