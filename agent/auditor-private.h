/* SPDX-License-Identifier: Apache-2.0 */
/* auditor-private - what the parts of auditor share; for nobody else. */
#ifndef AUDITOR_PRIVATE_H
#define AUDITOR_PRIVATE_H

#include "auditor.h"
#include "survey.h"

#define FLEET_PATH_MAX 256

enum auditor_step {
	STEP_IDLE,
	STEP_READING,
	STEP_SWEEPING,
	STEP_WRITING,
};

struct auditor {
	const struct conf *conf;
	enum auditor_step step;
	uint64_t op; /* of reading and writing */
	bool poked; /* read the node */
	bool sweeps_next; /* it is read because a sweep is due */
	bool known; /* what follows is known of the node */
	bool missing; /* there is none */
	int32_t version;
	mono_t seen; /* when it was written, as far as can be told */
	mono_t due; /* to sweep, unless the node changes */
	bool has_summary; /* it made sense */
	bool other_realm, other_told;
	struct audit *stands; /* as read or written last */
	struct audit *next; /* being written, or ... */
	bool in_doubt; /* ... whether it was is not known */
	struct audit *spare; /* for reading */
	char *text;
	struct survey *survey;
	struct survey_memory memory;
	bool asks_size; /* the node was too large the last time */
	/* as of the last run; paths are copies */
	char path[FLEET_PATH_MAX], workers[FLEET_PATH_MAX];
	char marks[FLEET_PATH_MAX];
	struct auditor_where where;
	struct contract k;
	char own_claim[CLAIM_NAME_MAX];
	int64_t swept_ms;
	mono_t started, now;
	struct auditor_figures figures;
	auditor_alert_fn *on_alert; /* or NULL */
	void *on_alert_arg;
};

/* ZooKeeper's clock, by the last measurement of it. */
static inline int64_t
auditor_zookeeper_ms(const struct auditor *a)
{
	const struct skew_sample *own = &a->where.skew->own;

	return (add_sat(own->stamp_ms, mono_diff_ms(a->now, own->when)));
}

/* ---- auditor-node.c: the node, read and written ---- */

/* What stood before the sweep, if it was this realm's. */
const struct audit *auditor_standing(const struct auditor *a);

void auditor_read_node(struct auditor *a);
void auditor_take_node(struct auditor *a, const struct zk_event *ev);
void auditor_write_node(struct auditor *a);
void auditor_written(struct auditor *a, const struct zk_event *ev);

/* A sweep or a write has no result: the next one in an audit_ms. */
void auditor_fail(struct auditor *a, const char *what);

/* ---- auditor-sweep.c ---- */

void auditor_start_sweep(struct auditor *a);

#endif
