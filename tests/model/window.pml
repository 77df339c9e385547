/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.pml - what the safety models share: one mark, written by
 * compare-and-set, and the rules by which a process goes from a look at it to
 * a window, as agent/core/window.c has them.  Needs AGENTS, TICKS and SLOTS:
 * how many processes exist at a time, how many ticks there are, and how many
 * writes of one process may be in doubt.
 *
 * There are no clocks: who may issue does so at any moment, who renews asks
 * for any ceiling.  There are no claims and no sessions: whoever likes takes
 * the mark over.  Of versions only the difference matters, so that the number
 * of writes has no bound.
 */

#define GONE 3 /* of .behind: the node was deleted */

#define AWAY 0 /* knows nothing of the mark; has crashed, or begins */
#define TAKING 1 /* has read it: may write its name */
#define OWNER 2 /* a write of its own stands: may issue and renew */
#define STOPPING 3 /* issues no more: may lower */
#define VERIFYING 5 /* has made the mark: may ask whether any was deleted */
#define FROZEN 4 /* the mark is another's: may issue to its old ceiling */

typedef mark_t {
	unsigned ceil : 3;
	unsigned tag : 4 /* of the write that stands; 0: of no consequence */
#ifdef FILES
	; unsigned name : 3
#endif
}

typedef slot_t {
	bit flying; /* on its way: may land, whoever still waits for it */
	bit doubt; /* no clear reply so far */
	bit lowers;
	unsigned ceil : 3;
	unsigned tag : 4
#ifdef FILES
	; unsigned name : 3
#endif
}

/*
 * Ticks in (low, ceil] may be issued.  A process issues each tick in its turn:
 * one that leaves out ticks issues less, and is no other afterwards.
 */
typedef window_t {
	unsigned st : 3;
	unsigned low : 3; /* as taken over, or the last tick issued */
	unsigned ceil : 3;
	unsigned behind : 2; /* the mark's version - the expected; 2: or more */
	bit reread; /* look before the next write */
	unsigned busy : 2; /* 1 + the slot whose reply is waited for */
	bit used; /* has issued */
	bit making; /* expects no mark */
	bit raising; /* has made it too low */
	slot_t s[SLOTS]
}

#ifdef DELETED
bit there, deleted;
unsigned top : 3; /* no window that was ever asked for ends above */
#ifdef MISSING_STARTS_AT_NOW
#define MADE_AT_ONCE true
#else
#define MADE_AT_ONCE false
#endif
#endif
mark_t m;
window_t w[AGENTS];
unsigned issued : 8; /* a bit a tick */

/* Which tags belong to whom; the twins of mark.pml have one name. */
#define TAG(i, k) (1 + SLOTS * (i) + (k))
#ifdef TWINS
bit copied;
unsigned spared : 3; /* copied with the memory: up to it twice is no fault */
#define SPARED(t) ((t) <= spared)
#define NAMED_SO(i) copied
#else
#define SPARED(t) false
#define NAMED_SO(i) (m.tag >= TAG(i, 0) && m.tag < TAG(i + 1, 0))
#endif

#define BIT(t) (1 << (t))

#if AGENTS == 2
#define EACH_AGENT(x) x(0); x(1)
#elif AGENTS == 3
#define EACH_AGENT(x) x(0); x(1); x(2)
#else
#define EACH_AGENT(x) x(0); x(1); x(2); x(3)
#endif
#if SLOTS == 1
#define EACH_SLOT(x, i) x(i, 0)
#define NO_DOUBT(i) (!w[i].s[0].doubt)
#define NO_FLIGHT(i) (!w[i].s[0].flying)
#define FREE_SLOT(i) 0
#define HAS_FREE_SLOT(i) IS_FREE(i, 0)
#else
#define EACH_SLOT(x, i) x(i, 0); x(i, 1)
#define NO_DOUBT(i) (!w[i].s[0].doubt && !w[i].s[1].doubt)
#define NO_FLIGHT(i) (!w[i].s[0].flying && !w[i].s[1].flying)
#define FREE_SLOT(i) (IS_FREE(i, 0) -> 0 : 1)
#define HAS_FREE_SLOT(i) (IS_FREE(i, 0) || IS_FREE(i, 1))
#endif
#define IS_FREE(i, k) (!w[i].s[k].doubt && !w[i].s[k].flying)
#define IS_DOUBT(i, k) (w[i].s[k].doubt && w[i].s[k].tag == m.tag)

#define WRITES(i) \
	(w[i].st == TAKING || w[i].st == VERIFYING || w[i].st == OWNER || w[i].st == STOPPING)
#define MAY_SEND(i) \
	(WRITES(i) && w[i].st != VERIFYING && w[i].busy == 0 && \
	!w[i].reread && HAS_FREE_SLOT(i))

inline issue(i)
{
	w[i].low++;
	assert((issued & BIT(w[i].low)) == 0 || SPARED(w[i].low)); /* twice */
	issued = issued | BIT(w[i].low);
#ifdef STOP_WRITES_ZERO
	w[i].used = 1
#endif
}

inline clear_slot(i, k)
{
	w[i].s[k].flying = 0; w[i].s[k].doubt = 0; w[i].s[k].lowers = 0;
	w[i].s[k].ceil = 0; w[i].s[k].tag = 0
#ifdef FILES
	; w[i].s[k].name = 0
#endif
}

inline clear_writes(i)
{
	EACH_SLOT(clear_slot, i);
	w[i].reread = 0; w[i].busy = 0
}

inline end(i)
{
	clear_writes(i);
	w[i].st = AWAY; w[i].low = 0; w[i].ceil = 0; w[i].behind = 0;
	w[i].used = 0; w[i].making = 0; w[i].raising = 0
}

/* Issues on in the window it has, and writes no more. */
inline freeze(i)
{
	if
#ifdef FILES
	:: IS_HOST(i) -> keep_old(i); end(i)
#endif
	:: w[i].ceil > w[i].low ->
		clear_writes(i);
		w[i].st = FROZEN; w[i].behind = 0; w[i].used = 0
	:: else -> end(i)
	fi
}

/* window_begin() */
inline begin(i)
{
#ifdef DELETED
	/* claim_on_count(): none that was issued before lies higher */
	w[i].making = !there;
	w[i].ceil = (there -> m.ceil : (deleted && !MADE_AT_ONCE -> top : 0));
	w[i].low = w[i].ceil;
#else
	w[i].low = m.ceil;
	w[i].ceil = m.ceil;
#endif
	w[i].behind = 0;
	w[i].st = TAKING
}

/* window_write() and window_write_lower() */
inline send(i, k, ceiling, lower, called)
{
#ifdef FILES
	w[i].s[k].name = called;
#endif
	w[i].s[k].flying = 1;
	w[i].s[k].doubt = 1;
	w[i].s[k].ceil = ceiling;
	w[i].s[k].lowers = lower;
	w[i].s[k].tag = TAG(i, k);
#ifdef REPLIES_ARE_LOOKS
	w[i].reread = 1 /* a reply is a look that comes soon */
#else
	w[i].busy = k + 1
#endif
}

/* There is nothing left to lower. */
inline end_stop(i)
{
#ifdef FILES
	ended(i);
#endif
	end(i)
}

/* confirm(): the write in slot k stands. */
inline confirm(i, k)
{
	w[i].behind = 0;
	w[i].ceil = w[i].s[k].ceil;
#ifndef TWINS
	m.tag = 0;
#endif
	if
	:: w[i].s[k].lowers -> end_stop(i)
	:: else ->
#ifdef DELETED
		w[i].st = (w[i].making -> VERIFYING : w[i].st);
		w[i].making = 0; w[i].raising = 0;
#endif
		w[i].st = (w[i].st == TAKING -> OWNER : w[i].st);
		clear_writes(i) /* the others expected a version that is gone */
	fi
}

/* WINDOW_OTHER: the mark is another's. */
inline lose(i)
{
	if
	:: w[i].st == OWNER -> freeze(i)
	:: w[i].st == STOPPING -> end_stop(i)
	:: else -> end(i)
	fi
}

/* WINDOW_TWIN: it has our name, and is none of our writes. */
inline twin(i)
{
#ifdef ADOPTS_BY_NAME
	if
	:: NAMED_SO(i) ->
		clear_writes(i); w[i].behind = 0;
		w[i].ceil = MAX(w[i].ceil, m.ceil)
	:: else -> lose(i)
	fi
#else
	end(i)
#endif
}

/* The version has moved on; what expects an older one can never land. */
inline outdate_slot(j, k)
{
	if
	:: w[j].s[k].flying && w[j].busy != k + 1 -> w[j].s[k].flying = 0
	:: else
	fi
}

inline outdate(j)
{
#ifndef BLIND_WRITE
	EACH_SLOT(outdate_slot, j);
#endif
	if
	:: WRITES(j) -> w[j].behind = (w[j].behind == 0 -> 1 : (w[j].behind == 1 -> 2 : w[j].behind))
	:: else
	fi
}

/* The write reaches the mark; ok says whether it was done. */
inline land(i, k, ok)
{
	w[i].s[k].flying = 0;
#ifdef BLIND_WRITE
	ok = 1;
#else
	ok = (w[i].behind == 0);
#endif
#ifdef DELETED
	/* another node is another version, for all that expected this one */
	ok = (w[i].making -> !there : ok && there);
	there = there || ok;
#endif
	if
	:: ok ->
		m.ceil = w[i].s[k].ceil;
		m.tag = w[i].s[k].tag;
#ifdef FILES
		m.name = w[i].s[k].name;
#endif
		EACH_AGENT(outdate);
#ifdef FILES
		landed()
#endif
	:: else
	fi
}

/* window_wrote() with a reply; ok is what it says. */
inline hear(i, k, ok)
{
	w[i].busy = 0;
	if
	:: ok -> confirm(i, k)
	:: else ->
		clear_slot(i, k);
		if
#ifdef DELETED
		:: w[i].behind == GONE || !there -> lose(i)
#endif
		:: NO_DOUBT(i) && w[i].st != TAKING -> twin(i)
		:: else -> w[i].reread = 1
		fi
	fi
}

/* ... and without one.  The write may have landed, or may still. */
inline hear_nothing(i, k)
{
#ifdef LOST_IS_SUCCESS
	confirm(i, k)
#else
	w[i].busy = 0;
	w[i].reread = 1
#endif
}

/* window_read(): a look, after a write in doubt. */
inline look(i)
{
	if
#ifdef DELETED
	:: w[i].behind == GONE || (!there && !w[i].making) -> lose(i)
#endif
	:: w[i].behind == 0 -> w[i].reread = 0 /* none has landed so far */
	:: w[i].behind == 1 && IS_DOUBT(i, 0) -> confirm(i, 0)
#if SLOTS > 1
	:: w[i].behind == 1 && IS_DOUBT(i, 1) -> confirm(i, 1)
#endif
	:: else ->
		if
		:: w[i].st != TAKING && NAMED_SO(i) -> twin(i)
		:: else -> lose(i)
		fi
	fi
}
