/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_check - a strict reading of JSON, before a parser that is lenient and
 * recursive is let near it: strangers wrote these bytes.
 *
 * Invariant: the scan never reads at or past `length`, and goes no deeper
 * than DOC_DEPTH_MAX.
 */
#include <string.h>

#include "doc.h"

/* cJSON copies a number into 64 bytes and takes what is left for a fault. */
#define NUMBER_LENGTH_MAX 60

struct scan {
	const char *text;
	size_t length;
	size_t at; /* next byte; at a failure, the fault */
	int depth;
	const char *fault; /* what is wrong there */
};

/* The next byte; 0 at the end, which no JSON has inside. */
static char
peek(const struct scan *s)
{
	return ((char)(s->at < s->length ? s->text[s->at] : '\0'));
}

static bool
fail(struct scan *s, const char *fault)
{
	s->fault = s->at >= s->length ? "it ends too early" : fault;
	return (false);
}

static bool
is_digit(char c)
{
	return (c >= '0' && c <= '9');
}

static void
skip_blanks(struct scan *s)
{
	char c = peek(s);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		s->at++;
		c = peek(s);
	}
}

static bool
scan_hex4(struct scan *s, unsigned *out)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		char c = peek(s);

		if (is_digit(c))
			v = v * 16 + (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (unsigned)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			v = v * 16 + (unsigned)(c - 'A') + 10;
		else
			return (fail(s, "\\u wants four hexadecimal digits"));
		s->at++;
	}
	*out = v;
	return (true);
}

/* After "\u". */
static bool
scan_code_unit(struct scan *s)
{
	unsigned unit, low;

	if (!scan_hex4(s, &unit))
		return (false);
	if (unit == 0)
		return (fail(s, "a string must not hold NUL"));
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return (fail(s, "half a surrogate pair"));
	if (unit < 0xd800 || unit > 0xdbff)
		return (true);
	if (peek(s) != '\\')
		return (fail(s, "half a surrogate pair"));
	s->at++;
	if (peek(s) != 'u')
		return (fail(s, "half a surrogate pair"));
	s->at++;
	if (!scan_hex4(s, &low))
		return (false);
	if (low < 0xdc00 || low > 0xdfff)
		return (fail(s, "half a surrogate pair"));
	return (true);
}

static bool
scan_escape(struct scan *s)
{
	char c;

	s->at++;
	c = peek(s);
	if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
		return (fail(s, "no such escape in a string"));
	s->at++;
	return (c == 'u' ? scan_code_unit(s) : true);
}

static bool
scan_string(struct scan *s)
{
	if (peek(s) != '"')
		return (fail(s, "a string in double quotes should stand here"));
	s->at++;
	for (;;) {
		char c = peek(s);
		size_t n;

		if (c == '"') {
			s->at++;
			return (true);
		}
		if (c == '\\') {
			if (!scan_escape(s))
				return (false);
			continue;
		}
		if ((unsigned char)c < 0x20)
			return (fail(s, "a string must not hold a control "
					"character"));
		n = doc_utf8_length(s->text + s->at, s->length - s->at);
		if (n == 0)
			return (fail(s, "this is not UTF-8"));
		s->at += n;
	}
}

static bool
scan_digits(struct scan *s)
{
	if (!is_digit(peek(s)))
		return (fail(s, "a digit should stand here"));
	while (is_digit(peek(s)))
		s->at++;
	return (true);
}

static bool
scan_number(struct scan *s)
{
	size_t start = s->at;

	if (peek(s) == '-')
		s->at++;
	if (peek(s) == '0')
		s->at++; /* a leading zero is alone: what follows is a fault */
	else if (!scan_digits(s))
		return (false);
	if (peek(s) == '.') {
		s->at++;
		if (!scan_digits(s))
			return (false);
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->at++;
		if (peek(s) == '+' || peek(s) == '-')
			s->at++;
		if (!scan_digits(s))
			return (false);
	}
	if (s->at - start > NUMBER_LENGTH_MAX) {
		s->at = start;
		return (fail(s, "this number is too long"));
	}
	return (true);
}

static bool
scan_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if (s->length - s->at < n || memcmp(s->text + s->at, word, n) != 0)
		return (fail(s, "a value should stand here"));
	s->at += n;
	return (true);
}

static bool scan_value(struct scan *s);

/* The rest of an object or a list, after its first bracket. */
static bool
scan_members(struct scan *s, bool keys, char end)
{
	skip_blanks(s);
	if (peek(s) == end) {
		s->at++;
		return (true);
	}
	for (;;) {
		skip_blanks(s);
		if (keys) {
			if (!scan_string(s))
				return (false);
			skip_blanks(s);
			if (peek(s) != ':')
				return (fail(s, "a colon should stand here"));
			s->at++;
		}
		if (!scan_value(s))
			return (false);
		skip_blanks(s);
		if (peek(s) != ',')
			break;
		s->at++;
	}
	if (peek(s) != end)
		return (fail(s, keys ? "a comma or } should stand here"
				     : "a comma or ] should stand here"));
	s->at++;
	return (true);
}

static bool
scan_container(struct scan *s)
{
	bool keys = peek(s) == '{', good;

	if (s->depth == DOC_DEPTH_MAX)
		return (fail(s, "it is nested too deep"));
	s->at++;
	s->depth++;
	good = scan_members(s, keys, keys ? '}' : ']');
	s->depth--;
	return (good);
}

static bool
scan_value(struct scan *s)
{
	skip_blanks(s);
	switch (peek(s)) {
	case '{':
	case '[':
		return (scan_container(s));
	case '"':
		return (scan_string(s));
	case 't':
		return (scan_word(s, "true"));
	case 'f':
		return (scan_word(s, "false"));
	case 'n':
		return (scan_word(s, "null"));
	default:
		if (peek(s) == '-' || is_digit(peek(s)))
			return (scan_number(s));
		return (fail(s, "a value should stand here"));
	}
}

int
doc_check(const char *text, size_t length, struct doc_error *err)
{
	struct scan s = { .text = text, .length = length };

	if (length > DOC_SIZE_MAX) {
		doc_error_set(err, "%zu bytes are too many: at most %d", length,
		    DOC_SIZE_MAX);
		return (-1);
	}
	skip_blanks(&s);
	if (s.at == length) {
		doc_error_set(err, "it is empty");
		return (-1);
	}
	if (scan_value(&s)) {
		skip_blanks(&s);
		if (s.at == length)
			return (0);
		(void)fail(&s, "nothing should follow here");
	}
	doc_error_at(err, text, s.at, s.fault);
	return (-1);
}
