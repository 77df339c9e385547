/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rfc3339 - instants as text and back, by arithmetic alone: no locale, no time
 * zone, no stdio.
 *
 * Invariant: whatever is parsed can be formatted, and the other way round.
 */
#include "rfc3339.h"

#define MS_PER_S INT64_C(1000)
#define MS_PER_MINUTE INT64_C(60000)
#define MS_PER_DAY INT64_C(86400000)
#define DAYS_PER_ERA INT64_C(146097) /* 400 Gregorian years */
#define DAYS_TO_1970 INT64_C(719468) /* from 0000-03-01 */
#define FRACTION_DIGITS_MAX 9

struct date {
	int64_t year;
	int64_t month;
	int64_t day;
};

static bool
is_leap(int64_t year)
{
	return (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static int64_t
days_in_month(int64_t year, int64_t month)
{
	static const int64_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31,
		30, 31 };

	return (days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0));
}

/*
 * Years are counted from March, so that the leap day is the last of its year
 * and (153 m + 2) / 5 is the day on which month m begins.
 */
static int64_t
days_from_date(const struct date *d)
{
	int64_t y = d->month <= 2 ? d->year - 1 : d->year;
	int64_t m = d->month <= 2 ? d->month + 9 : d->month - 3;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t year_of_era = y - era * 400;
	int64_t day_of_year = (153 * m + 2) / 5 + d->day - 1;

	return (era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 -
		year_of_era / 100 + day_of_year - DAYS_TO_1970);
}

static void
date_from_days(int64_t days, struct date *d)
{
	int64_t z = days + DAYS_TO_1970;
	int64_t era = (z >= 0 ? z : z - DAYS_PER_ERA + 1) / DAYS_PER_ERA;
	int64_t day = z - era * DAYS_PER_ERA;
	int64_t y = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t day_of_year = day - (365 * y + y / 4 - y / 100);
	int64_t m = (5 * day_of_year + 2) / 153;

	d->day = day_of_year - (153 * m + 2) / 5 + 1;
	d->month = m < 10 ? m + 3 : m - 9;
	d->year = era * 400 + y + (d->month <= 2 ? 1 : 0);
}

static char *
put_digits(char *p, int64_t v, int width)
{
	for (int i = width - 1; i >= 0; i--) {
		p[i] = (char)('0' + v % 10);
		v /= 10;
	}
	return (p + width);
}

static char *
put_mark(char *p, char c)
{
	*p = c;
	return (p + 1);
}

bool
rfc3339_format(int64_t unix_ms, char buf[RFC3339_TEXT_MAX])
{
	int64_t days, ms;
	struct date d;
	char *p = buf;

	buf[0] = '\0';
	if (unix_ms < RFC3339_MS_MIN || unix_ms > RFC3339_MS_MAX)
		return (false);
	days = unix_ms / MS_PER_DAY;
	ms = unix_ms % MS_PER_DAY;
	if (ms < 0) {
		ms += MS_PER_DAY;
		days--;
	}
	date_from_days(days, &d);
	p = put_mark(put_digits(p, d.year, 4), '-');
	p = put_mark(put_digits(p, d.month, 2), '-');
	p = put_mark(put_digits(p, d.day, 2), 'T');
	p = put_mark(put_digits(p, ms / (60 * MS_PER_MINUTE), 2), ':');
	p = put_mark(put_digits(p, ms / MS_PER_MINUTE % 60, 2), ':');
	p = put_mark(put_digits(p, ms / MS_PER_S % 60, 2), '.');
	p = put_mark(put_digits(p, ms % MS_PER_S, 3), 'Z');
	*p = '\0';
	return (true);
}

/* A text on its way through the reader. */
struct reader {
	const char *text;
	size_t at; /* next character; at a failure, the fault */
};

static bool
is_digit(char c)
{
	return (c >= '0' && c <= '9');
}

static bool
read_mark(struct reader *r, char mark)
{
	if (r->text[r->at] != mark)
		return (false);
	r->at++;
	return (true);
}

/* Exactly `width` digits, from min to max; the fault is where they start. */
static bool
read_number(
    struct reader *r, size_t width, int64_t min, int64_t max, int64_t *out)
{
	int64_t v = 0;

	for (size_t i = 0; i < width; i++) {
		char c = r->text[r->at + i];

		if (!is_digit(c)) {
			r->at += i;
			return (false);
		}
		v = v * 10 + (c - '0');
	}
	if (v < min || v > max)
		return (false);
	r->at += width;
	*out = v;
	return (true);
}

static bool
read_date(struct reader *r, int64_t *days)
{
	struct date d;

	if (!read_number(r, 4, 0, 9999, &d.year) || !read_mark(r, '-') ||
	    !read_number(r, 2, 1, 12, &d.month) || !read_mark(r, '-') ||
	    !read_number(r, 2, 1, days_in_month(d.year, d.month), &d.day))
		return (false);
	*days = days_from_date(&d);
	return (true);
}

/* ".5" is 500 ms; digits past the third are read and cut. */
static bool
read_fraction(struct reader *r, int64_t *ms)
{
	int64_t unit = MS_PER_S / 10;
	int digits = 0;

	*ms = 0;
	if (r->text[r->at] != '.')
		return (true);
	r->at++;
	for (; is_digit(r->text[r->at]); r->at++) {
		if (++digits > FRACTION_DIGITS_MAX)
			return (false);
		*ms += (r->text[r->at] - '0') * unit;
		unit /= 10;
	}
	return (digits > 0);
}

static bool
read_time(struct reader *r, int64_t *ms)
{
	int64_t hour, minute, second, fraction;

	if (!read_number(r, 2, 0, 23, &hour) || !read_mark(r, ':') ||
	    !read_number(r, 2, 0, 59, &minute) || !read_mark(r, ':') ||
	    !read_number(r, 2, 0, 59, &second) || !read_fraction(r, &fraction))
		return (false);
	*ms =
	    (hour * 60 + minute) * MS_PER_MINUTE + second * MS_PER_S + fraction;
	return (true);
}

static bool
read_zone(struct reader *r, int64_t *ms)
{
	int64_t hour, minute;
	bool west = r->text[r->at] == '-';

	*ms = 0;
	if (read_mark(r, 'Z'))
		return (true);
	if (!west && r->text[r->at] != '+')
		return (false);
	r->at++;
	if (!read_number(r, 2, 0, 23, &hour) || !read_mark(r, ':') ||
	    !read_number(r, 2, 0, 59, &minute))
		return (false);
	*ms = (hour * 60 + minute) * (west ? -MS_PER_MINUTE : MS_PER_MINUTE);
	return (true);
}

int
rfc3339_parse(const char *text, int64_t *unix_ms, size_t *where)
{
	struct reader r = { .text = text, .at = 0 };
	int64_t days, ms, zone_ms;

	if (!read_date(&r, &days) || !read_mark(&r, 'T') ||
	    !read_time(&r, &ms) || !read_zone(&r, &zone_ms) ||
	    !read_mark(&r, '\0')) {
		if (where != NULL)
			*where = r.at;
		return (FIRN_EINVAL);
	}
	ms += days * MS_PER_DAY - zone_ms;
	if (ms < RFC3339_MS_MIN || ms > RFC3339_MS_MAX) {
		if (where != NULL)
			*where = 0;
		return (FIRN_ERANGE);
	}
	*unix_ms = ms;
	return (0);
}

static int
parse_ms(const char *text, int64_t *unix_ms, size_t *where)
{
	bool negative = text[0] == '-';
	size_t at = negative ? 1 : 0;
	int64_t v = 0;

	if (text[at] == '0' && (negative || text[at + 1] != '\0')) {
		*where = at;
		return (FIRN_EINVAL);
	}
	for (; is_digit(text[at]); at++) {
		v = v * 10 + (text[at] - '0');
		if (v > RFC3339_MS_MAX || (negative && -v < RFC3339_MS_MIN)) {
			*where = 0;
			return (FIRN_ERANGE);
		}
	}
	*where = at;
	if (text[at] != '\0' || at == (negative ? 1 : 0))
		return (FIRN_EINVAL);
	*unix_ms = negative ? -v : v;
	return (0);
}

int
rfc3339_parse_or_ms(const char *text, int64_t *unix_ms, size_t *where)
{
	size_t digits = text[0] == '-' ? 1 : 0, fault;
	int rc;

	while (is_digit(text[digits]))
		digits++;
	if (text[digits] != '\0' && text[0] != '-')
		return (rfc3339_parse(text, unix_ms, where));
	rc = parse_ms(text, unix_ms, &fault);
	if (rc != 0 && where != NULL)
		*where = fault;
	return (rc);
}
