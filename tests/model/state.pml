/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.pml - one host with a state file, whose processes end between any two
 * steps and begin again, and a rival on another host: no tick is issued twice.
 * Processes 0 and 1 are the host's, one at a time, as the lock wants it; what
 * the one before has sent may still land.
 */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define FILES
#define AGENTS 3
#define SLOTS 1
#define HOSTS 2
#define IS_HOST(i) ((i) < HOSTS)
#define RIVAL 2
#define STRANGER 0 /* a name that no file holds */

/* What a process may do, by its file. */
#define DOWN 0 /* there is no process */
#define FRESH 1 /* has written nothing: issue nothing */
#define FILED 2 /* issue up to the mark on file */
#define ABSENT 3 /* it could not be written and was removed: no limit */
/* Who can neither write nor remove it issues nothing: it takes no step. */

typedef file_t {
	bit there;
	bit open; /* the window may be resumed */
	unsigned name : 3; /* whom the mark names */
	unsigned ceil : 3;
	unsigned mark : 3 /* nothing was issued above it */
}

typedef host_t {
	unsigned file : 3;
	unsigned name : 3; /* that its last write carries */
	unsigned last : 3; /* tick issued */
	unsigned old_name : 3; /* the window of before: resumed, or lost */
	unsigned old_low : 3;
	unsigned old_ceil : 3; /* 0: none */
	unsigned past_name : 3; /* what the file said at the start */
	unsigned past_ceil : 3;
	unsigned past_mark : 3;
	unsigned floor : 3; /* of the window in the record */
	bit closed /* stopping, and nothing on file is to be resumed */
}

file_t f;
host_t h[HOSTS];
bit turn; /* whose life is next */

inline forget_old(i)
{
	if
	:: IS_HOST(i) ->
		h[i].old_name = 0; h[i].old_low = 0; h[i].old_ceil = 0
	:: else
	fi
}

/* claim_freeze_own() */
inline keep_old(i)
{
	if
	:: w[i].ceil > h[i].old_ceil && w[i].ceil > MAX(w[i].low, h[i].last) ->
		h[i].old_name = h[i].name; h[i].old_low = w[i].low;
		h[i].old_ceil = w[i].ceil
	:: else
	fi
}

/* There is no process any more. */
inline ended(i)
{
	if
	:: IS_HOST(i) ->
		forget_old(i);
		h[i].file = DOWN; h[i].name = 0; h[i].last = 0;
		h[i].past_name = 0; h[i].past_ceil = 0; h[i].past_mark = 0;
		h[i].floor = 0; h[i].closed = 0
	:: else
	fi
}

/* A name that the mark can never carry again is as good as none. */
inline forget_names(i)
{
	if
	:: h[i].past_name != m.name || h[i].past_name == 0 ->
		h[i].past_name = 0; h[i].past_ceil = 0; h[i].past_mark = 0
	:: else
	fi;
	if
	:: h[i].old_name != m.name && h[i].old_name != h[i].name ->
		h[i].old_name = 0
	:: else
	fi
}

inline landed()
{
	forget_names(0);
	forget_names(1);
	if
	:: f.name != m.name && f.name != h[0].name && f.name != h[1].name ->
		f.name = 0
	:: else
	fi
}

#define REPLIES_ARE_LOOKS
#include "window.pml"

#define OTHER(i) (1 - (i))
#define USED(n) (f.name == n || m.name == n || \
	w[0].s[0].name == n || w[1].s[0].name == n || \
	h[0].name == n || h[1].name == n || h[0].old_name == n || \
	h[1].old_name == n || h[0].past_name == n || h[1].past_name == n)

inline fresh_name(n)
{
	n = 1;
	do
	:: USED(n) -> n++
	:: else -> break
	od
}

inline no_file()
{
	f.there = 0; f.open = 0; f.name = 0; f.ceil = 0; f.mark = 0
}

/* hold_open(), take_over_state(), claim_resume() */
inline start(i, c)
{
#ifdef SERVES_UNDER_A_NAME_AGAIN
	fresh_name(c);
	h[i].name = c;
	c = 0;
#endif
	h[i].file = FRESH;
	h[i].past_name = f.name;
	h[i].past_ceil = f.ceil;
	h[i].past_mark = f.mark;
#ifdef RESUMES_BELOW
	h[i].past_mark = (f.mark > 0 -> f.mark - 1 : 0);
#endif
	if
	:: f.open && f.ceil > h[i].past_mark ->
		h[i].old_name = f.name;
		h[i].old_low = h[i].past_mark;
		h[i].old_ceil = f.ceil
	:: else
	fi;
	if
	:: NO_FLIGHT(0) && NO_FLIGHT(1) -> forget_names(i)
	:: else
	fi
}

/* Ends at once; what is under way may land. */
inline crash(i)
{
	ended(i);
	w[i].st = AWAY; w[i].low = 0; w[i].ceil = 0; w[i].reread = 0;
	w[i].busy = 0;
	if
	:: w[i].s[0].flying && w[i].behind == 0 ->
		w[i].s[0].doubt = 0; w[i].s[0].tag = 0; w[i].s[0].lowers = 0
	:: else -> clear_slot(i, 0)
	fi;
	w[i].behind = 0
}

/* claim_on_mark(): a mark that names the process before is its own. */
inline take(i, c)
{
	c = MAX(m.ceil, h[i].past_ceil);
	w[i].ceil = c;
	w[i].low = c;
	if
	:: h[i].past_name != 0 && m.name == h[i].past_name &&
	    h[i].past_mark < c -> w[i].low = h[i].past_mark
	:: else
	fi;
	w[i].behind = 0;
	w[i].st = TAKING;
	c = 0;
#ifndef SERVES_UNDER_A_NAME_AGAIN
	fresh_name(c);
	h[i].name = c;
	c = 0
#endif
}

#define HAS_OWN(i) (w[i].st == OWNER && w[i].ceil > w[i].low)
#define HAS_OLD(i) (h[i].old_ceil > 0 && w[i].st != STOPPING)
#define ALLOWS(i, t) \
	(h[i].file == ABSENT || (h[i].file == FILED && (t) <= f.mark))
#define NEXT(i, floor) (MAX(h[i].last, floor) + 1)

inline issue_tick(i, t)
{
	assert((issued & BIT(t)) == 0); /* twice */
	issued = issued | BIT(t);
	h[i].last = t
}

/* hold_update(): low, ceiling and name of the window that stands. */
inline write_file(i, low_, ceil_, name_, c)
{
	c = MAX(low_, h[i].last);
	if
	:: h[i].file == FILED && f.mark > c -> c = f.mark
	:: else
	fi;
	do
	:: c < ceil_ -> c++
	:: break
	od;
	if
	:: f.there = 1; f.open = 1; f.name = name_; f.ceil = ceil_; f.mark = c;
		h[i].file = FILED; h[i].floor = low_
	:: h[i].file = ABSENT; h[i].floor = 0;
#ifndef LOCAL_MARK_LAGS
		no_file()
#endif
	fi;
	c = 0
}

/* hold_end(), before the mark is lowered. */
inline close_file(i, c)
{
	c = MAX(h[i].last, h[i].floor);
	if
#ifndef SWITCHES_LATE
	:: h[i].file == FILED ->
		f.open = 0; f.mark = c; f.ceil = c; h[i].closed = 1
#endif
	/* it could not be written; or a change: it names another ID */
	:: h[i].file == FILED ->
		no_file(); h[i].closed = 1
	/* nor removed: the mark stays as it is */
	:: h[i].file == FILED -> crash(i)
	:: h[i].file == FRESH || h[i].file == ABSENT -> h[i].closed = 1
	fi;
	c = 0
}

/* hold_end(), when ZooKeeper is away. */
inline leave_file(i, c)
{
	c = MAX(h[i].last, h[i].floor);
	if
	:: h[i].file == FILED ->
		if
		:: f.mark = c
		:: no_file()
		:: skip
		fi
	:: else
	fi;
	crash(i);
	c = 0
}

#if defined(LOWERS_BEFORE_CLOSING) || defined(SWITCHES_LATE)
#define MAY_LOWER(i) true
#else
#define MAY_LOWER(i) h[i].closed
#endif

#if defined(LOCK_ON_RENAMED_FILE)
#define LOCK_IS_FREE(i) \
	(h[OTHER(i)].file == DOWN || h[OTHER(i)].file == FILED)
#else
#define LOCK_IS_FREE(i) (h[OTHER(i)].file == DOWN)
#endif

/* The own window goes on where the old one stands: the mark's name is its. */
#ifdef NAMES_ANOTHER_WINDOW
#define CONTINUES(i) true
#else
#define CONTINUES(i) (w[i].low <= h[i].old_low)
#endif

proctype Host(byte i)
{
	byte c;
	bit ok;
	do
	:: d_step { h[i].file == DOWN && LOCK_IS_FREE(i) && NO_FLIGHT(i) &&
	    turn == i ->
		turn = 1 - i;
		start(i, c) }
	:: d_step { h[i].file != DOWN -> crash(i) }
	:: atomic { h[i].file != DOWN && HAS_OWN(i) ->
		write_file(i, w[i].low, w[i].ceil, h[i].name, c) }
	:: atomic { h[i].file != DOWN && HAS_OLD(i) ->
		if
		:: w[i].st == OWNER && CONTINUES(i) ->
			write_file(i, h[i].old_low, h[i].old_ceil, h[i].name, c)
		:: else ->
			write_file(i, h[i].old_low, h[i].old_ceil,
			    h[i].old_name, c)
		fi }
	:: d_step { HAS_OWN(i) && NEXT(i, w[i].low) <= w[i].ceil &&
	    ALLOWS(i, NEXT(i, w[i].low)) ->
		c = NEXT(i, w[i].low);
		issue_tick(i, c);
		forget_old(i); c = 0 }
	:: d_step { HAS_OLD(i) && NEXT(i, h[i].old_low) <= h[i].old_ceil &&
	    ALLOWS(i, NEXT(i, h[i].old_low)) ->
		c = NEXT(i, h[i].old_low);
		issue_tick(i, c); c = 0 }
	:: d_step { h[i].file != DOWN && w[i].st == AWAY -> take(i, c) }
	:: atomic { w[i].st == TAKING && MAY_SEND(i) ->
		send(i, 0, w[i].ceil, 0, h[i].name) }
	:: atomic { w[i].st == OWNER && MAY_SEND(i) ->
		c = w[i].ceil;
		do
		:: c < TICKS -> c++
		:: break
		od;
		send(i, 0, c, 0, h[i].name); c = 0 }
	/* lease_update(): no window stands without a look at the file */
	:: d_step { w[i].st == OWNER &&
	    (h[i].file != FRESH || (!HAS_OWN(i) && !HAS_OLD(i))) ->
		w[i].st = STOPPING; forget_old(i) }
	:: atomic { w[i].st == STOPPING && !h[i].closed -> close_file(i, c) }
	:: d_step { w[i].st == STOPPING && MAY_LOWER(i) && MAY_SEND(i) ->
		c = MAX(h[i].last, w[i].low);
		send(i, 0, c, 1, h[i].name); c = 0 }
	:: atomic { h[i].file != DOWN && w[i].st != STOPPING -> leave_file(i, c) }
	:: d_step { w[i].s[0].flying -> land(i, 0, ok); ok = 0 }
	:: d_step { w[i].reread -> look(i) }
	od
}

/*
 * The rival's writes are done at once, or not at all: that they may be late
 * as well is for mark.pml.
 */
#define i RIVAL
proctype Rival()
{
	byte c;
	bit ok;
	do
	:: d_step { w[i].st == AWAY ->
		begin(i);
		send(i, 0, m.ceil, 0, STRANGER);
		land(i, 0, ok); ok = 0;
		confirm(i, 0) }
	:: atomic { w[i].st == OWNER && w[i].behind == 0 && w[i].ceil < TICKS ->
		c = w[i].ceil + 1;
		do
		:: c < TICKS -> c++
		:: break
		od;
		send(i, 0, c, 0, STRANGER); c = 0;
		land(i, 0, ok); ok = 0;
		confirm(i, 0) }
	:: d_step { w[i].ceil > w[i].low -> issue(i) }
	/* a clean stop */
	:: d_step { w[i].st == OWNER && w[i].behind == 0 ->
		c = w[i].low;
		send(i, 0, c, 1, STRANGER); c = 0;
		land(i, 0, ok); ok = 0;
		end(i) }
	:: d_step { w[i].st == OWNER -> end(i) }
	od
}
#undef i

init {
	atomic { run Host(0); run Host(1); run Rival() }
}
