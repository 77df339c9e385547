/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes as firnd.json.  What is accepted lies within the limits
 * of the table, and written as a file of its own it is read as the same.
 * Each run goes through a file in memory and two or three system calls, and an
 * accepted one twice: so it is the slowest target.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf_key.h"
#include "fuzz.h"

static char path[64];
static int file = -1;

static void
put_file(const void *bytes, size_t n)
{
	if (file == -1) {
		file = memfd_create("firnd.json", MFD_CLOEXEC);
		check(file != -1);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	check(ftruncate(file, 0) == 0);
	check(pwrite(file, bytes, n, 0) == (ssize_t)n);
}

/* A text as JSON: no control character has passed. */
static size_t
put_text(char *out, const char *text)
{
	size_t n = 0;

	out[n++] = '"';
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			out[n++] = '\\';
		out[n++] = *text;
	}
	out[n++] = '"';
	return (n);
}

/* Lists are read from text alone on the command line; left out here. */
static size_t
write_conf(const struct conf *c, char *out, size_t room)
{
	size_t n = 0;

	out[n++] = '{';
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->list)
			continue;
		n += (size_t)snprintf(
		    out + n, room - n, "%s\"%s\":", n > 1 ? "," : "", k->name);
		if (k->size > 0)
			n += put_text(out + n, conf_text(c, k));
		else
			n += (size_t)snprintf(
			    out + n, room - n, "%" PRId64, conf_number(c, k));
	}
	out[n++] = '}';
	return (n);
}

static void
check_again(const struct conf *c)
{
	static char text[32768];
	static struct conf again;
	struct doc_error err;

	put_file(text, write_conf(c, text, sizeof(text)));
	memset(&again, 0, sizeof(again));
	check(conf_read_file(&again, path, false, &err) == 0);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->size == 0)
			check(conf_number(&again, k) == conf_number(c, k));
		else if (!k->list)
			check(
			    strcmp(conf_text(&again, k), conf_text(c, k)) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf c;
	struct doc_error err = { "" };

	memset(&c, 0, sizeof(c));
	for (size_t i = 0; i < conf_nkeys; i++)
		check(conf_set(&c, &conf_keys[i], conf_keys[i].fallback,
			  CONF_DEFAULT, "it", &err) == 0);
	put_file(data, size);
	if (conf_read_file(&c, path, false, &err) != 0) {
		check(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
		return (0);
	}
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->size == 0)
			check(conf_number(&c, k) >= k->min &&
			      conf_number(&c, k) <= k->max);
		else
			check(strnlen(conf_text(&c, k), k->size) < k->size);
	}
	check_again(&c);
	return (0);
}
