/* SPDX-License-Identifier: Apache-2.0 */
/* world-private - what the files of world share; for nobody else. */
#ifndef WORLD_PRIVATE_H
#define WORLD_PRIVATE_H

#include "keeper.h"
#include "ledger.h"
#include "localmark.h"
#include "world.h"

#define CLIENTS 3
#define FILE_AHEAD 100 /* ticks */
#define COPIES 8
#define COPY_NS (20 * NS_PER_S)

#define START_MS INT64_C(1767225600000) /* 2026-01-01 */

enum kind {
	EV_WAKE, /* a claim's timer */
	EV_ARRIVE, /* a request reaches the server */
	EV_REPLY, /* a reply reaches its host */
	EV_DEADLINE, /* the host's own deadline of an operation */
	EV_ISSUE, /* a client asks for IDs */
	EV_TROUBLE, /* chaos */
	EV_HEAL, /* the link is up again */
	EV_DOWN, /* the client library notices that it is down */
	EV_UP, /* ... and that it is up */
	EV_GIVE_UP, /* three session timeouts without a connection */
	EV_EXPIRE, /* the server's session timer */
	EV_RESUME, /* a paused host goes on */
	EV_QUIT, /* a stop has taken too long: the process ends */
	EV_BOOT, /* a crashed or stopped agent starts again */
	EV_OPERATOR, /* deletes a mark */
	EV_WATCH, /* the realm's watch has fired */
	EV_RENEW, /* renews the realm */
	EV_TWIN, /* a process is copied, memory and all, to another host */
	EV_ACCEPT, /* its peers no longer refuse a host */
	EV_COPY, /* ZooKeeper's data is backed up */
	EV_ROLL_BACK, /* ... and goes back to such a copy */
	EV_WIPE, /* ... or is lost */
};

struct event {
	int64_t at;
	uint64_t order;
	enum kind kind;
	unsigned host;
	unsigned life; /* of the process; 0: any */
	unsigned link; /* of the connection */
	int64_t session;
	struct claim_op *op;
	struct keeper_reply *reply;
	uint32_t id;
};

/* What the disk does to a state file. */
enum disk {
	DISK_GOOD,
	DISK_FULL, /* no write succeeds, and one may tear what was there */
	DISK_STUCK, /* nor can it be removed */
};

/* A state file. */
struct paper {
	bool there, torn;
	bool home; /* written here, in this boot */
	bool open;
	bool refused; /* by the peers */
	struct contract contract;
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	int64_t ceiling, local_mark, zxid, base_ns;
};

/* What a process knows of its state file. */
struct hold {
	struct paper record; /* as last written */
	struct localmark mark;
	int64_t floor; /* of the window in the record */
	bool begun, failed, absent;
	mono_t retry_at;
};

struct host {
	bool running, paused, link_up, deaf; /* deaf: replies are lost */
	bool connected, missed_watch;
	unsigned life, link;
	int64_t session, unfed_at; /* server's view; -1: fed */
	int64_t last_arrival, last_reply;
	int64_t down_at;
	int64_t wall_offset, drift_ppm, boot_offset;
	struct claim claim;
	struct clock clock;
	struct serve serve;
	bool served;
	uint64_t *scratch;
	uint64_t after[CLIENTS]; /* kept across restarts */
	bool filed; /* keeps a state file */
	bool still; /* refused by its peers */
	enum disk disk;
	unsigned tears;
	struct paper file;
	struct hold hold;
	uint32_t open_ids[2];
	int64_t wake_at;
	unsigned twin; /* 1 + the host that runs a copy of this process */
	uint64_t twin_settled; /* renewals and twins that settle nothing */
	struct event *inbox; /* while paused */
	size_t ninbox, inbox_size;
};

struct world {
	struct weather w;
	struct keeper z;
	struct ledger *ledger;
	struct host *hosts;
	struct event *heap;
	size_t nheap, heap_size;
	int64_t now;
	uint64_t order, dice;
	int64_t next_session;
	struct keeper copies[COPIES]; /* of ZooKeeper's data, by age */
	unsigned ncopies;
	bool went_back; /* and the realm was not renewed since */
	int64_t known_zxid; /* who knows less would not notice */
	struct tally t;
};

/* ---- world-queue.c ------------------------------------------------------- */

/* An allocation, or the end. */
void *world_must(void *p);

/* The next of the dice; all that is random follows from them. */
uint64_t world_roll(struct world *w);

/* Within low .. high. */
int64_t world_between(struct world *w, int64_t low, int64_t high);

/* Out of 1000. */
bool world_odds(struct world *w, unsigned per_mille);

/* What the kernel would give. */
struct entropy world_fresh(struct world *w);

/* Sets e.order. */
void world_push(struct world *w, struct event e);

/* The next; there must be one. */
struct event world_pop(struct world *w);

/* An event of the world's own. */
void world_again(struct world *w, enum kind kind, unsigned ms);

/* An event of a host as it is now. */
void world_after_ms(struct world *w, enum kind kind, unsigned host, int64_t ms);

/* What a host's clocks show now. */
struct instant world_clock_of(const struct world *w, const struct host *h);

/* ... and what its agent makes of them. */
struct claim_now world_time_of(
    const struct world *w, struct host *h, struct instant *in);

/* ---- world-file.c -------------------------------------------------------- */

/* Issuing has ended.  False: the file does not say so. */
bool world_end_paper(struct host *h, int64_t last_tick, bool keep);

/* The gate's facts, and the file that stands before them. */
void world_update_facts(struct host *h, struct claim_now t);

/* Is the window on file good for the next process? */
bool world_may_resume(const struct host *h, int64_t unix_ms);

/* What the process before this one left; true: its window is gone on in. */
bool world_take_over_paper(struct host *h, const struct instant *in);

/* ---- world-agent.c ------------------------------------------------------- */

/* The process starts. */
void world_boot_agent(struct world *w, unsigned i);

/* The server has not heard of this session since now, or hears it again. */
void world_mind_session(struct world *w, unsigned i);

/* A dead process leaves its session to the server's timer. */
void world_abandon_session(struct world *w, unsigned i);

/* Sends what the claim asks for, sets its timer, notices its end. */
void world_pump(struct world *w, unsigned i);

/* ---- world-issue.c ------------------------------------------------------- */

/* A client asks. */
void world_issue(struct world *w, unsigned i);

/* ---- world-hear.c -------------------------------------------------------- */

/* Tells of the change that was missed, if it can be told. */
void world_tell_watch(struct world *w, unsigned i);

/* Frees what an event carries. */
void world_free_event(const struct event *e);

/* A paused host goes on. */
void world_resume(struct world *w, unsigned i);

/* To the process, now or when it goes on. */
void world_process_event(struct world *w, struct event *e);

/* ---- world-trouble.c ----------------------------------------------------- */

/* The link is down for so long. */
void world_cut_link(struct world *w, unsigned i, int64_t ms);

/* The process ends; it starts again. */
void world_crash(struct world *w, unsigned i);

/* The machine starts again: its clients too, and what lies in memory. */
void world_reboot(struct world *w, unsigned i);

/* The skew's verdict. */
void world_set_still(struct world *w, unsigned i, bool still);

/* Host i's process appears on host j too, which has its clock as well. */
void world_copy_process(struct world *w, unsigned i, unsigned j);

/* Ends of the process, and what becomes of its file. */
void world_file_trouble(struct world *w, unsigned i);

/* Something goes wrong with a host, and will again. */
void world_trouble(struct world *w, unsigned i);

/* ---- world-disaster.c ---------------------------------------------------- */

/* Keeps a copy of ZooKeeper's data. */
void world_copy_data(struct world *w);

/* May it start now?  Only with a record that remembers. */
bool world_may_boot(const struct world *w, const struct host *h);

/* ZooKeeper's data goes back to one of the copies. */
void world_roll_back(struct world *w);

/* ZooKeeper's data is lost; it is restored later. */
void world_wipe(struct world *w);

#endif
