/* SPDX-License-Identifier: Apache-2.0 */
/* hosts - takes a connect string apart; strict, since the client is not. */
#include <arpa/inet.h>
#include <string.h>

#include "hosts.h"

#define DEFAULT_PORT 2181

static bool
name_byte(char c)
{
	return ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_');
}

/* With or without %SCOPE. */
static bool
is_ipv6(const char *name)
{
	char bare[INET6_ADDRSTRLEN];
	size_t n = strcspn(name, "%");
	struct in6_addr address;

	if (n >= sizeof(bare))
		return (false);
	memcpy(bare, name, n);
	bare[n] = '\0';
	if (inet_pton(AF_INET6, bare, &address) != 1)
		return (false);
	if (name[n] == '\0')
		return (true);
	for (n++; name[n] != '\0'; n++) {
		if (!name_byte(name[n]))
			return (false);
	}
	return (name[n - 1] != '%');
}

static const char *
parse_port(const char *text, size_t n, uint16_t *out)
{
	unsigned port = 0;

	if (n == 0 || n > 5)
		return ("the port is not a number from 1 to 65535");
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return ("the port is not a number from 1 to 65535");
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (port < 1 || port > UINT16_MAX)
		return ("the port is not a number from 1 to 65535");
	*out = (uint16_t)port;
	return (NULL);
}

/* *at is where in text the trouble is. */
static const char *
parse_name(const char *text, size_t n, struct host *h, size_t *at)
{
	struct in_addr dotted;

	*at = 0;
	if (n == 0)
		return ("a host is missing");
	if (n >= sizeof(h->name))
		return ("the host's name is too long");
	for (*at = 0; *at < n; (*at)++) {
		if (!name_byte(text[*at]))
			return ("this byte cannot stand in a host's name");
	}
	*at = 0;
	memcpy(h->name, text, n);
	h->name[n] = '\0';
	h->literal = h->name[strspn(h->name, "0123456789.")] == '\0';
	/* getaddrinfo knows 127.1 and 010.0.0.1, people do not. */
	if (h->literal && inet_pton(AF_INET, h->name, &dotted) != 1)
		return ("not an IPv4 address");
	return (NULL);
}

static const char *
parse_bracketed(const char *text, size_t n, struct host *h, size_t *at)
{
	const char *end = memchr(text, ']', n);
	size_t length;

	*at = 0;
	if (end == NULL)
		return ("] is missing");
	*at = 1;
	length = (size_t)(end - text) - 1;
	if (length == 0 || length >= sizeof(h->name))
		return ("not an IPv6 address");
	memcpy(h->name, text + 1, length);
	h->name[length] = '\0';
	h->literal = true;
	if (!is_ipv6(h->name))
		return ("not an IPv6 address");
	*at = length + 2;
	if (*at == n)
		return (NULL);
	if (text[*at] != ':')
		return ("only :PORT may follow ]");
	(*at)++;
	return (parse_port(text + *at, n - *at, &h->port));
}

/* text is one host, up to a comma, a slash or the end. */
static const char *
parse_host(const char *text, size_t n, struct host *h, size_t *at)
{
	const char *colon = memchr(text, ':', n), *wrong;
	size_t length = colon != NULL ? (size_t)(colon - text) : n;

	h->port = DEFAULT_PORT;
	if (n > 0 && text[0] == '[')
		return (parse_bracketed(text, n, h, at));
	if (colon != NULL && memchr(colon + 1, ':', n - length - 1) != NULL) {
		*at = length;
		return ("an IPv6 address stands in brackets: [::1]:2181");
	}
	wrong = parse_name(text, length, h, at);
	if (wrong != NULL || colon == NULL)
		return (wrong);
	*at = length + 1;
	return (parse_port(colon + 1, n - length - 1, &h->port));
}

static const char *
check_element(const char *text, size_t n)
{
	if (n == 0)
		return ("an empty name in the chroot");
	if ((n == 1 && text[0] == '.') ||
	    (n == 2 && memcmp(text, "..", 2) == 0))
		return ("the chroot cannot have . or ..");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x21 || c > 0x7e || c == ',')
			return ("this name cannot stand in the chroot");
	}
	return (NULL);
}

/* text begins with the slash. */
static const char *
parse_chroot(const char *text, char *out, size_t *at)
{
	size_t n = strlen(text);

	*at = 0;
	if (n >= CHROOT_MAX_BYTES)
		return ("the chroot is too long");
	if (n > 1) {
		for (size_t i = 1; i <= n;) {
			size_t length = strcspn(text + i, "/");
			const char *wrong = check_element(text + i, length);

			*at = i;
			if (wrong != NULL)
				return (wrong);
			i += length + 1;
		}
		memcpy(out, text, n + 1);
	}
	return (NULL);
}

const char *
hosts_parse(const char *text, struct hosts *out, size_t *where)
{
	const char *wrong = NULL, *p = text;
	size_t at = 0;

	memset(out, 0, sizeof(*out));
	for (;;) {
		size_t n = strcspn(p, ",/");

		at = 0;
		if (out->n == HOSTS_MAX)
			wrong = "more hosts than anyone needs";
		else
			wrong = parse_host(p, n, &out->host[out->n++], &at);
		if (wrong != NULL || p[n] != ',')
			break;
		p += n + 1;
	}
	if (wrong == NULL) {
		p += strcspn(p, "/");
		wrong = *p == '/' ? parse_chroot(p, out->chroot, &at) : NULL;
	}
	if (wrong != NULL && where != NULL)
		*where = (size_t)(p - text) + at;
	return (wrong);
}
