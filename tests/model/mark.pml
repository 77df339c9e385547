/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.pml - processes without a memory of the one before: whatever they do to
 * one mark, no tick is issued twice.  Who takes no more steps has been stopped,
 * or is cut off, or sleeps; its writes may still land.
 */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#include "window.pml"

#ifdef ISSUES_AFTER_LOWERING
#define MAY_ISSUE(i) \
	(w[i].st == OWNER || w[i].st == FROZEN || w[i].st == STOPPING)
#else
#define MAY_ISSUE(i) (w[i].st == OWNER || w[i].st == FROZEN)
#endif

#ifdef TWINS
#define MAY_BEGIN(i) (i == 0 && !copied)

inline copy_slot(i, k)
{
	w[1].s[k].doubt = w[0].s[k].doubt; w[1].s[k].lowers = w[0].s[k].lowers;
	w[1].s[k].ceil = w[0].s[k].ceil; w[1].s[k].tag = w[0].s[k].tag;
	spared = MAX(spared, w[0].s[k].ceil)
}

inline copy()
{
	copied = 1;
	w[1].st = w[0].st; w[1].low = w[0].low; w[1].ceil = w[0].ceil;
	w[1].behind = w[0].behind;
	spared = w[0].ceil;
	EACH_SLOT(copy_slot, 0);
	w[1].reread = !NO_DOUBT(0)
}
#elif defined(DELETED)
#define MAY_BEGIN(i) (!MAKES(1 - i))
#else
#define MAY_BEGIN(i) true
#endif
#ifdef DELETED
/* Nobody takes a mark over that is just being made: the maker's claim stands. */
#define MAKES(i) (w[i].st == VERIFYING || w[i].raising || w[i].making)
#define MAY_DIE(i) (!MAKES(i))
#else
#define MAY_DIE(i) true
#endif

proctype Agent(byte i)
{
	byte c, k;
	bit ok;
	do
	/* The first of those that are all alike.  What it reads here may be
	 * old when it is used. */
	:: d_step { w[i].st == AWAY && (i == 0 || w[i - 1].st != AWAY) &&
	    (i < 2 || w[i - 2].st != AWAY) && MAY_BEGIN(i) -> begin(i) }
#ifdef TWINS
	/* memory and all; what was sent is not sent twice */
	:: d_step { i == 0 && w[0].st != AWAY && !copied -> copy() }
#endif
#ifdef DELETED
	/* claim_on_count() again: deleted between the look and the creation? */
	:: d_step { w[i].st == VERIFYING ->
		w[i].st = OWNER;
		if
		:: deleted && !MADE_AT_ONCE && w[i].ceil < top ->
			w[i].st = TAKING; w[i].raising = 1;
			w[i].ceil = top; w[i].low = top
		:: else
		fi }
	/* an operator, once */
	:: d_step { i == 0 && there && !deleted ->
		there = 0; deleted = 1; m.ceil = 0; m.tag = 0;
		w[0].behind = (WRITES(0) -> GONE : 0);
		w[1].behind = (WRITES(1) -> GONE : 0);
		outdate_slot(0, 0); outdate_slot(1, 0) }
#endif
	:: atomic { MAY_SEND(i) -> k = FREE_SLOT(i);
		if
		:: w[i].st == TAKING -> send(i, k, w[i].ceil, 0, i)
		:: w[i].st == OWNER ->
			c = w[i].ceil;
			do
			:: c < TICKS -> c++
			:: break
			od;
#ifdef DELETED
			top = MAX(top, c);
#endif
			send(i, k, c, 0, i)
		:: w[i].st == STOPPING ->
#ifdef STOP_WRITES_ZERO
			c = (w[i].used -> w[i].low : 0);
#else
			c = w[i].low;
#endif
			send(i, k, c, 1, i)
		fi; c = 0; k = 0 }
	/* Lands; who still waits hears of it. */
	:: atomic { !NO_FLIGHT(i) ->
		if
		:: w[i].s[0].flying -> k = 0
#if SLOTS > 1
		:: w[i].s[1].flying -> k = 1
#endif
		fi;
		land(i, k, ok);
		if
		:: w[i].busy == k + 1 -> hear(i, k, ok)
		:: else
		fi; k = 0; ok = 0 }
	/* No reply: it was lost, or is late, or the connection was. */
	:: d_step { w[i].busy != 0 -> k = w[i].busy - 1;
		hear_nothing(i, k); k = 0 }
	:: d_step { w[i].reread && w[i].busy == 0 -> look(i) }
	:: d_step { MAY_ISSUE(i) && w[i].ceil > w[i].low -> issue(i);
		if
		:: w[i].st == FROZEN && w[i].low == w[i].ceil -> end(i)
		:: else
		fi }
	:: d_step { w[i].st == OWNER -> w[i].st = STOPPING }
	/* Dies; another one takes its place. */
	:: d_step { w[i].st != AWAY && NO_FLIGHT(i) && MAY_DIE(i) -> end(i) }
	od
}

init {
	atomic {
		run Agent(0);
		run Agent(1);
#if AGENTS > 2
		run Agent(2);
#endif
#if AGENTS > 3
		run Agent(3);
#endif
	}
}
