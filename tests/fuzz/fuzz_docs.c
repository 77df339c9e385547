/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes as each document that ZooKeeper may hold.  What is
 * accepted is written again and read again, and then says the same; what is
 * refused has its line, whose bytes can be printed.
 */
#include "audit.h"
#include "fuzz.h"
#include "mark.h"
#include "realm.h"
#include "summary.h"

/* Longer than any document that is written. */
#define OUT_MAX (2 * DOC_SIZE_MAX)

static char first[OUT_MAX], second[OUT_MAX];

static void
check_words(const struct doc_error *err)
{
	size_t n = strnlen(err->text, sizeof(err->text));

	check(n > 0 && n < sizeof(err->text));
	for (size_t i = 0; i < n; i++)
		check((unsigned char)err->text[i] >= 0x20 &&
		      err->text[i] != 0x7f);
}

static void
check_same(int n, int m)
{
	check(n > 0 && n == m && memcmp(first, second, (size_t)n) == 0);
}

static void
check_realm(const char *text, size_t size)
{
	struct doc_error err = { "" };
	struct contract k, again;
	int n;

	if (realm_parse(text, size, &k, &err) != 0) {
		check_words(&err);
		return;
	}
	check(k.worker_first <= k.worker_last);
	check(k.worker_last - k.worker_first < WORKERS_MAX);
	n = realm_format(&k, first, sizeof(first));
	check(n > 0 && realm_parse(first, (size_t)n, &again, NULL) == 0);
	check_same(n, realm_format(&again, second, sizeof(second)));
}

static void
check_mark(const char *text, size_t size)
{
	struct doc_error err = { "" };
	struct agent_status st, st_again;
	struct mark m, again;
	int n;

	if (mark_parse(text, size, &m, &st, &err) != 0) {
		check_words(&err);
		check(mark_parse(text, size, &m, NULL, &err) != 0);
		return;
	}
	n = mark_format(&m, &st, first, sizeof(first));
	if (n < 0) /* a status that an agent of today does not write */
		return;
	check(mark_parse(first, (size_t)n, &again, &st_again, NULL) == 0);
	check(again.ceiling == m.ceiling && strcmp(again.owner, m.owner) == 0);
	check_same(n, mark_format(&again, &st_again, second, sizeof(second)));
}

static void
check_claim(const char *text, size_t size)
{
	struct doc_error err = { "" };
	struct agent_status st, again;
	int n;

	if (claim_doc_parse(text, size, &st, &err) != 0) {
		check_words(&err);
		return;
	}
	n = claim_doc_format(&st, first, sizeof(first));
	if (n < 0)
		return;
	check(claim_doc_parse(first, (size_t)n, &again, NULL) == 0);
	check_same(n, claim_doc_format(&again, second, sizeof(second)));
}

static void
check_summary(const char *text, size_t size)
{
	static struct audit a, again;
	struct doc_error err = { "" };
	int n;

	if (summary_parse(text, size, &a, &err) != 0) {
		check_words(&err);
		return;
	}
	n = summary_format(&a, first, sizeof(first));
	if (n < 0)
		return;
	check(summary_parse(first, (size_t)n, &again, NULL) == 0);
	check_same(n, summary_format(&again, second, sizeof(second)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return (0);
	text = text_of(data + 1, size - 1);
	switch (data[0] % 4) {
	case 0:
		check_realm(text, size - 1);
		break;
	case 1:
		check_mark(text, size - 1);
		break;
	case 2:
		check_claim(text, size - 1);
		break;
	case 3:
		check_summary(text, size - 1);
		break;
	}
	free(text);
	return (0);
}
