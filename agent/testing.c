/* SPDX-License-Identifier: Apache-2.0 */
/* testing - the doors of firnd-test.  Not part of firnd. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "testing.h"

/* What a copy of the machine's memory would have copied. */
struct memory {
	struct window own;
	char own_generation[GENERATION_MAX];
	char node[CLAIM_NAME_MAX];
	uint64_t node_worker;
};

void
testing_conf(struct claim_conf *conf)
{
	const char *worker = getenv("FIRN_TEST_WORKER");

	if (worker != NULL)
		conf->force_worker = strtoull(worker, NULL, 10);
}

void
testing_boot_id(uint8_t boot_id[UUID_BYTES])
{
	const char *text = getenv("FIRN_TEST_BOOT_ID");

	if (text != NULL && !uuid_parse(text, boot_id))
		log_warnx("testing: \"%s\" is no boot ID", text);
}

static void
save(const struct claim *c, const char *path)
{
	struct memory m = { .own = c->own, .node_worker = c->node_worker };
	char temporary[300];
	int fd;

	memcpy(m.own_generation, c->own_generation, sizeof(m.own_generation));
	memcpy(m.node, c->node, sizeof(m.node));
	(void)snprintf(temporary, sizeof(temporary), "%s.new", path);
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &m, sizeof(m)) != (ssize_t)sizeof(m) ||
	    close(fd) != 0 || rename(temporary, path) != 0)
		log_warn("testing: %s", path);
}

static void
load(struct claim *c, const char *path)
{
	struct memory m;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &m, sizeof(m)) != (ssize_t)sizeof(m)) {
		log_warn("testing: %s", path);
		return;
	}
	(void)close(fd);
	c->own = m.own;
	c->has_own = true;
	memcpy(c->own_generation, m.own_generation, sizeof(m.own_generation));
	memcpy(c->node, m.node, sizeof(m.node));
	memcpy(c->node_generation, m.own_generation, sizeof(m.own_generation));
	c->node_worker = m.node_worker;
	c->had_window = c->long_window = true;
	log_warnx("testing: goes on as worker %llu of claim %s",
	    (unsigned long long)m.own.worker, m.node);
}

void
testing_step(struct claim *c)
{
	static bool saved, loaded;
	const char *to = getenv("FIRN_TEST_TWIN");
	const char *from = getenv("FIRN_TEST_TWIN_OF");

	if (to != NULL && !saved && c->has_own && c->own.owned &&
	    c->own.ndoubts == 0 && c->long_window && c->node[0] != '\0') {
		saved = true;
		save(c, to);
	}
	if (from != NULL && !loaded && c->realm_known) {
		loaded = true;
		load(c, from);
	}
}
