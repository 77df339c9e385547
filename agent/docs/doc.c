/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc - the one line of an error, UTF-8, comments, and decimal numbers that
 * never become doubles.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"

void
doc_error_set(struct doc_error *err, const char *format, ...)
{
	int saved = errno;
	va_list ap;

	if (err == NULL)
		return;
	va_start(ap, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	for (char *p = err->text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	errno = saved;
}

size_t
doc_utf8_length(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;
	unsigned low = 0x80, high = 0xbf;
	size_t length;

	if (u[0] < 0x80)
		return (1);
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return (0);
	length = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (n < length)
		return (0);
	/* Overlong forms, surrogates, and what is above U+10FFFF. */
	if (u[0] == 0xe0)
		low = 0xa0;
	else if (u[0] == 0xed)
		high = 0x9f;
	else if (u[0] == 0xf0)
		low = 0x90;
	else if (u[0] == 0xf4)
		high = 0x8f;
	if (u[1] < low || u[1] > high)
		return (0);
	for (size_t i = 2; i < length; i++)
		if (u[i] < 0x80 || u[i] > 0xbf)
			return (0);
	return (length);
}

void
doc_error_at(
    struct doc_error *err, const char *text, size_t at, const char *fault)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)text[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	doc_error_set(err, "line %zu, column %zu: %s", line, column, fault);
}

/* Blanks text[from..to), but for line breaks. */
static void
blank(char *text, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (text[i] != '\n' && text[i] != '\r')
			text[i] = ' ';
}

/* One past the comment that starts at `at`; 0 if it has no end. */
static size_t
comment_end(const char *text, size_t length, size_t at)
{
	const char *p;

	if (text[at + 1] == '/') {
		p = memchr(text + at, '\n', length - at);
		return (p != NULL ? (size_t)(p - text) : length);
	}
	p = memmem(text + at + 2, length - at - 2, "*/", 2);
	return (p != NULL ? (size_t)(p - text) + 2 : 0);
}

int
doc_blank_comments(char *text, size_t length, struct doc_error *err)
{
	bool quoted = false;
	size_t end;

	for (size_t i = 0; i < length; i++) {
		if (quoted) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == '"' || text[i] == '\n')
				quoted = false;
			continue;
		}
		if (text[i] == '"') {
			quoted = true;
			continue;
		}
		if (text[i] != '/' || i + 1 >= length ||
		    (text[i + 1] != '/' && text[i + 1] != '*'))
			continue;
		end = comment_end(text, length, i);
		if (end == 0) {
			doc_error_at(err, text, i, "this comment has no end");
			return (-1);
		}
		blank(text, i, end);
		i = end - 1;
	}
	return (0);
}

static bool
is_digit(char c)
{
	return (c >= '0' && c <= '9');
}

bool
doc_parse_u64(const char *text, uint64_t *out)
{
	uint64_t v = 0;
	const char *p = text;

	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return (false);
	if (*p != '\0' || p == text || (text[0] == '0' && p - text > 1))
		return (false);
	*out = v;
	return (true);
}

bool
doc_parse_i64(const char *text, int64_t *out)
{
	bool negative = text[0] == '-';
	uint64_t v;

	if (!doc_parse_u64(negative ? text + 1 : text, &v))
		return (false);
	if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return (false);
	if (negative && v == 0)
		return (false);
	*out = negative ? -(int64_t)(v - 1) - 1 : (int64_t)v;
	return (true);
}
