/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json - the strict reading of JSON: each fault with its place; comments,
 * decimal numbers, and the writer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doc.h"
#include "json_out.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A copy that ends where it ends: a byte read past it is one that the
 * address sanitizer sees.
 */
static char *
exact_copy(const char *text, size_t length)
{
	char *copy = malloc(length > 0 ? length : 1);

	assert_non_null(copy);
	memcpy(copy, text, length);
	return (copy);
}

/* ---- the strict reading ------------------------------------------------------ */

struct fault_case {
	const char *text;
	const char *fault; /* NULL: nothing is wrong */
	const char *why;
};

static const struct fault_case json_cases[] = {
	{ "{}", NULL, "the smallest object" },
	{ " \t\r\n{ } \n", NULL, "blanks around it" },
	{ "[1,-2,0,0.5,1e5,-1.5E-3]", NULL, "numbers of each kind" },
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", NULL, "every escape" },
	{ "\"\\ud83d\\ude00\"", NULL, "a surrogate pair" },
	{ "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", NULL, "UTF-8" },
	{ "[true,false,null]", NULL, "words" },
	{ "1e400", NULL, "JSON it is; a value for nothing" },
	{ "", "it is empty", "nothing" },
	{ "  \n ", "it is empty", "blanks only" },
	{ "{", "line 1, column 2: it ends too early", "cut" },
	{ "{\"a\"", "line 1, column 5: it ends too early", "cut" },
	{ "{\"a\":1,}",
	    "line 1, column 8: a string in double quotes "
	    "should stand here",
	    "comma too many" },
	{ "{\n  \"a\": 1\n  \"b\": 2\n}",
	    "line 3, column 3: a comma or } should stand here",
	    "comma forgotten" },
	{ "[1 2]", "line 1, column 4: a comma or ] should stand here",
	    "comma forgotten in a list" },
	{ "{a:1}",
	    "line 1, column 2: a string in double quotes should "
	    "stand here",
	    "key without quotes" },
	{ "{'a':1}",
	    "line 1, column 2: a string in double quotes should "
	    "stand here",
	    "wrong quotes" },
	{ "{\"a\" 1}", "line 1, column 6: a colon should stand here",
	    "no colon" },
	{ "{\"a\":}", "line 1, column 6: a value should stand here",
	    "no value" },
	{ "{} {}", "line 1, column 4: nothing should follow here",
	    "two documents" },
	{ "{}x", "line 1, column 3: nothing should follow here",
	    "something after it" },
	{ "0x10", "line 1, column 2: nothing should follow here",
	    "hexadecimal" },
	{ "010", "line 1, column 2: nothing should follow here",
	    "leading zero" },
	{ "+1", "line 1, column 1: a value should stand here", "plus" },
	{ "1.", "line 1, column 3: it ends too early", "no fraction" },
	{ "[.5]", "line 1, column 2: a value should stand here",
	    "no whole part" },
	{ "[-]", "line 1, column 3: a digit should stand here", "no digits" },
	{ "[1e]", "line 1, column 4: a digit should stand here",
	    "no exponent" },
	{ "NaN", "line 1, column 1: a value should stand here", "NaN" },
	{ "tru", "line 1, column 1: a value should stand here", "cut word" },
	{ "[1234567890123456789012345678901234567890123456789012345678901]",
	    "line 1, column 2: this number is too long", "61 digits" },
	{ "\"a\tb\"",
	    "line 1, column 3: a string must not hold a control "
	    "character",
	    "raw tab" },
	{ "\"\\x41\"", "line 1, column 3: no such escape in a string",
	    "C's escape" },
	{ "\"\\u00g0\"",
	    "line 1, column 6: \\u wants four hexadecimal "
	    "digits",
	    "bad digits" },
	{ "\"\\u0000\"", "line 1, column 8: a string must not hold NUL",
	    "it would end the string early" },
	{ "\"\\ud800\"", "line 1, column 8: half a surrogate pair",
	    "upper half alone" },
	{ "\"\\udc00\"", "line 1, column 8: half a surrogate pair",
	    "lower half alone" },
	{ "\"\\ud800\\u0041\"", "line 1, column 14: half a surrogate pair",
	    "upper half and no lower" },
	{ "\"\xc3\xa9\xff\"", "line 1, column 3: this is not UTF-8",
	    "a byte that never is; columns are characters" },
	{ "\"\xc0\xaf\"", "line 1, column 2: this is not UTF-8", "overlong" },
	{ "\"\xe0\x9f\xbf\"", "line 1, column 2: this is not UTF-8",
	    "overlong in three" },
	{ "\"\xf0\x8f\xbf\xbf\"", "line 1, column 2: this is not UTF-8",
	    "overlong in four" },
	{ "\"\xed\xa0\x80\"", "line 1, column 2: this is not UTF-8",
	    "surrogate" },
	{ "\"\xf4\x90\x80\x80\"", "line 1, column 2: this is not UTF-8",
	    "above U+10FFFF" },
	{ "\"\xe2\x82", "line 1, column 2: this is not UTF-8", "cut" },
	{ "\xef\xbb\xbf{}", "line 1, column 1: a value should stand here",
	    "byte order mark" },
	{ "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", NULL, "16 deep" },
	{ "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
	    "line 1, column 17: it is nested too deep", "17 deep" },
	{ "{\"a\":1 /* no */}",
	    "line 1, column 8: a comma or } should stand here",
	    "comments are for the configuration only" },
};

static void
test_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(json_cases); i++) {
		const struct fault_case *c = &json_cases[i];
		size_t length = strlen(c->text);
		char *copy = exact_copy(c->text, length);
		struct doc_error err = { "" };
		int rc = doc_check(copy, length, &err);

		free(copy);
		if (rc != (c->fault == NULL ? 0 : -1) ||
		    strcmp(err.text, c->fault != NULL ? c->fault : "") != 0)
			fail_msg("%s: %d \"%s\"", c->why, rc, err.text);
	}
}

static void
test_json_nul_and_size(void **state)
{
	char *big = calloc(1, 10 << 20);
	struct doc_error err;

	(void)state;
	assert_non_null(big);
	assert_int_equal(doc_check("{\"a\":\"b\0c\"}", 11, &err), -1);
	assert_string_equal(err.text, "line 1, column 8: a string must not "
				      "hold a control character");
	assert_int_equal(doc_check("{}\0", 3, &err), -1);
	/* Ten megabytes are not looked at. */
	memset(big, '[', 10 << 20);
	assert_int_equal(doc_check(big, 10 << 20, &err), -1);
	assert_string_equal(
	    err.text, "10485760 bytes are too many: at most 65536");
	/* Just within: depth stops it. */
	assert_int_equal(doc_check(big, DOC_SIZE_MAX, &err), -1);
	assert_string_equal(
	    err.text, "line 1, column 17: it is nested too deep");
	memset(big, ' ', DOC_SIZE_MAX);
	big[DOC_SIZE_MAX - 1] = '1';
	assert_int_equal(doc_check(big, DOC_SIZE_MAX, &err), 0);
	free(big);
}

static void
test_error_line(void **state)
{
	char long_text[1000];
	struct doc_error err;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	doc_error_set(&err, "%s", long_text);
	assert_int_equal(strlen(err.text), DOC_ERROR_MAX - 1);
	doc_error_set(&err, "%s", "a\033[31m\nb\x7f");
	assert_string_equal(err.text, "a?[31m?b?");
	doc_error_set(NULL, "nobody listens");
}

struct number_case {
	const char *text;
	bool good;
	int64_t value;
};

static void
test_decimal(void **state)
{
	static const struct number_case cases[] = {
		{ "0", true, 0 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "-1", true, -1 },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "18446744073709551616", false, 0 },
		{ "99999999999999999999999", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "-0", false, 0 },
		{ "01", false, 0 },
		{ "-01", false, 0 },
		{ "+1", false, 0 },
		{ " 1", false, 0 },
		{ "1 ", false, 0 },
		{ "0x10", false, 0 },
		{ "1.5", false, 0 },
		{ "1e3", false, 0 },
	};
	uint64_t u = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t v = 77;

		if (doc_parse_i64(cases[i].text, &v) != cases[i].good ||
		    v != (cases[i].good ? cases[i].value : 77))
			fail_msg("\"%s\"", cases[i].text);
	}
	assert_true(doc_parse_u64("18446744073709551615", &u));
	assert_true(u == UINT64_MAX);
	assert_false(doc_parse_u64("18446744073709551616", &u));
	assert_false(doc_parse_u64("-1", &u));
}

/* ---- writing ------------------------------------------------------------------- */

static void
test_writer(void **state)
{
	char buf[200], small[10];
	struct json_out o;

	(void)state;
	json_out_buffer(&o, buf, sizeof(buf));
	json_open(&o, NULL, '{');
	json_put_text(&o, "t", "a\"b\\c\n\x7f\xff\xc3\xa9");
	json_put_i64(&o, "i", INT64_MIN);
	json_put_u64(&o, "u", UINT64_MAX);
	json_put_number(&o, "n", INT64_C(9007199254740991));
	json_put_number(&o, "b", INT64_C(9007199254740992));
	json_open(&o, "l", '[');
	json_put_null(&o, NULL);
	json_put_bool(&o, NULL, true);
	json_close(&o, ']');
	json_close(&o, '}');
	assert_int_equal(json_out_end(&o), (int)strlen(buf));
	assert_string_equal(buf,
	    "{\"t\":\"a\\\"b\\\\c???\xc3\xa9\",\"i\":\"-9223372036854775808\","
	    "\"u\":\"18446744073709551615\",\"n\":9007199254740991,"
	    "\"b\":\"9007199254740992\",\"l\":[null,true]}");
	/* Too small is an error, not half a document. */
	json_out_buffer(&o, small, sizeof(small));
	json_put_text(&o, NULL, "12345678");
	assert_int_equal(json_out_end(&o), -1);
	json_out_buffer(&o, small, sizeof(small));
	json_put_text(&o, NULL, "1234567");
	assert_int_equal(json_out_end(&o), 9);
	json_out_buffer(&o, small, 0);
	json_put_null(&o, NULL);
	assert_int_equal(json_out_end(&o), -1);
}

/* ---- comments ------------------------------------------------------------------ */

struct comment_case {
	const char *text;
	const char *blanked; /* NULL: refused */
	const char *why;
};

static void
test_comments(void **state)
{
	static const struct comment_case cases[] = {
		{ "{} // a", "{}     ", "to the end" },
		{ "{ // a\n}", "{     \n}", "to the end of the line" },
		{ "{/* a\n b */}", "{    \n     }", "lines stay lines" },
		{ "{/**/}", "{    }", "the shortest" },
		{ "/* // */1", "        1", "one in the other" },
		{ "// /*\n1", "     \n1", "the reverse" },
		{ "\"a//b/*c*/\"", "\"a//b/*c*/\"", "in a string" },
		{ "\"a\\\"//b\"", "\"a\\\"//b\"", "after an escaped quote" },
		{ "\"a\\\\\"//b", "\"a\\\\\"   ",
		    "after a string that ends in a backslash" },
		{ "\"a\n//b", "\"a\n   ", "a string does not cross lines" },
		{ "1 / 2", "1 / 2", "a slash is no comment" },
		{ "1 /", "1 /", "at the end" },
		{ "1 /* a *", NULL, "no end" },
		{ "1 /*/", NULL, "one star is not two" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct comment_case *c = &cases[i];
		size_t length = strlen(c->text);
		char *copy = exact_copy(c->text, length);
		struct doc_error err = { "" };
		int rc = doc_blank_comments(copy, length, &err);

		if (rc != (c->blanked != NULL ? 0 : -1) ||
		    (rc == 0 && memcmp(copy, c->blanked, length) != 0))
			fail_msg("%s: %.*s", c->why, (int)length, copy);
		if (rc != 0)
			assert_string_equal(err.text,
			    "line 1, column 3: this comment has no end");
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_nul_and_size),
		cmocka_unit_test(test_error_line),
		cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_comments),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
