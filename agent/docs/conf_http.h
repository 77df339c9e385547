/* SPDX-License-Identifier: Apache-2.0 */
/* conf_http - where HTTP is served: the key `http` as an address. */
#ifndef CONF_HTTP_H
#define CONF_HTTP_H

#include <stdbool.h>
#include <sys/socket.h>

#define CONF_HTTP_PATH_MAX 103 /* as for the agent's socket */

enum conf_http_kind { CONF_HTTP_OFF, CONF_HTTP_UNIX, CONF_HTTP_INET };

struct conf_http {
	enum conf_http_kind kind;
	char path[CONF_HTTP_PATH_MAX + 1]; /* CONF_HTTP_UNIX */
	struct sockaddr_storage addr; /* CONF_HTTP_INET */
	socklen_t length;
};

/* "", "unix:PATH", "ADDR:PORT", "[ADDR]:PORT"; asks no name server. */
bool conf_http_parse(const char *text, struct conf_http *out);

#endif
