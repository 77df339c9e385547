/* SPDX-License-Identifier: Apache-2.0 */
/* conf_http - where HTTP is served: the key `http` as an address. */
#include "conf_http.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"

#define HOST_MAX 64
#define PORT_MAX 65535
#define UNIX_PREFIX "unix:"

/* "1.2.3.4:80" and "[::1]:80" apart; an address of IPv6 needs its brackets. */
static bool
split(const char *text, char host[HOST_MAX], const char **port)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
	size_t n;

	if (text[0] == '[') {
		text++;
		if (end == NULL || end[1] != ':' || strchr(text, ':') > end)
			return (false);
		*port = end + 2;
	} else {
		end = strchr(text, ':');
		if (end == NULL)
			return (false);
		*port = end + 1;
	}
	n = (size_t)(end - text);
	if (n == 0 || n >= HOST_MAX)
		return (false);
	memcpy(host, text, n);
	host[n] = '\0';
	return (true);
}

static bool
parse_inet(const char *text, struct conf_http *out)
{
	const struct addrinfo hints = {
		.ai_family = text[0] == '[' ? AF_INET6 : AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	};
	struct addrinfo *found = NULL;
	char host[HOST_MAX];
	struct in_addr v4;
	const char *port;
	int64_t number;

	if (!split(text, host, &port) || !doc_parse_i64(port, &number) ||
	    number < 1 || number > PORT_MAX ||
	    /* getaddrinfo() takes "*" and "1", too */
	    (text[0] != '[' && inet_pton(AF_INET, host, &v4) != 1) ||
	    getaddrinfo(host, port, &hints, &found) != 0)
		return (false);
	memcpy(&out->addr, found->ai_addr, found->ai_addrlen);
	out->length = found->ai_addrlen;
	out->kind = CONF_HTTP_INET;
	freeaddrinfo(found);
	return (true);
}

bool
conf_http_parse(const char *text, struct conf_http *out)
{
	size_t n = strlen(UNIX_PREFIX);

	memset(out, 0, sizeof(*out));
	if (text[0] == '\0')
		return (true);
	if (strncmp(text, UNIX_PREFIX, n) != 0)
		return (parse_inet(text, out));
	out->kind = CONF_HTTP_UNIX;
	(void)snprintf(out->path, sizeof(out->path), "%s", text + n);
	return (text[n] != '\0' && strlen(text + n) < sizeof(out->path));
}
