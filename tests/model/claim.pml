/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.pml - claimants that choose among worker IDs: each of them gets one if
 * there is one for each, unclaimed and with a mark that is not ahead.  That is
 * all that claims are for; what may be issued is the mark's (mark.pml).
 *
 * IDs from CLAIMANTS on are of no use: claimed by others, or their marks are
 * ahead; IDs below are free, and some marks are ahead until time has passed.
 */
#ifndef CLAIMANTS
#define CLAIMANTS 3
#endif
#define IDS (CLAIMANTS + 2)
#define TAKEN CLAIMANTS /* claimed by another, for ever */
#define AHEAD (CLAIMANTS + 1) /* its mark is ahead, for ever */
#define NONE IDS
#define WALK 2 /* IDs given up before a sweep; CLAIM_WALK_MAX is 8 */

byte counter; /* ZooKeeper's, modulo the IDs */
byte node[CLAIMANTS]; /* ID of the own node */
byte age[CLAIMANTS]; /* 0: the youngest */
byte stand; /* how many stand */
bit stands[CLAIMANTS]; /* its mark is ahead for the others */
byte losses; /* sessions lost so far */
bit ahead0; /* the mark of ID 0 is ahead, for a while */

#define MARK_AHEAD(n) ((n) == AHEAD || ((n) == 0 && ahead0))
#define HAS(j, n) ((j) < CLAIMANTS && node[j] == (n))
#define IS_TAKEN(n) ((n) == TAKEN || node[0] == (n) || node[1] == (n) || \
	node[CLAIMANTS - 1] == (n))
#define OLDER(i, j) ((j) != i && node[j] == node[i] && age[j] > age[i])
#define SAME(i, j) ((j) != i && node[j] == node[i])
#ifdef BOTH_WITHDRAW
#define MUST_YIELD(i) (node[i] == TAKEN || SAME(i, 0) || SAME(i, 1) || \
	SAME(i, CLAIMANTS - 1))
#else
#define MUST_YIELD(i) (node[i] == TAKEN || OLDER(i, 0) || OLDER(i, 1) || \
	OLDER(i, CLAIMANTS - 1))
#endif

inline create(i, n)
{
	j = 0;
	do
	:: j < CLAIMANTS ->
		if
		:: node[j] != NONE -> age[j]++
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0;
	age[i] = 0;
	node[i] = n
}

inline delete(i)
{
	j = 0;
	do
	:: j < CLAIMANTS ->
		if
		:: node[j] != NONE && age[j] > age[i] -> age[j]--
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0;
	age[i] = 0;
	node[i] = NONE
}

proctype Claimant(byte i)
{
	byte j, n, given_up;

creating:
	if
	:: given_up < WALK ->
		d_step {
			n = counter;
			counter = (counter + 1) % IDS;
			create(i, n);
			n = 0
		}
	:: given_up >= WALK ->
		/* what the sweep has seen may be old when the node is made */
		atomic {
			if
			:: !IS_TAKEN(0) && !MARK_AHEAD(0) -> n = 0
			:: !IS_TAKEN(1) && !MARK_AHEAD(1) -> n = 1
			:: !IS_TAKEN(CLAIMANTS - 1) &&
			    !MARK_AHEAD(CLAIMANTS - 1) -> n = CLAIMANTS - 1
			:: else -> n = NONE /* all are ahead, or none is free */
			fi
		};
		if
		:: n == NONE -> n = 0; goto creating /* with a back-off */
		:: else
		fi;
		d_step { create(i, n); n = 0 }
	fi;
	/* listed after the creation: sees every older one */
	if
	:: atomic { node[i] != NONE && MUST_YIELD(i) -> goto walk }
	:: atomic { node[i] != NONE && !MUST_YIELD(i) -> skip }
	:: atomic { node[i] == NONE -> goto creating } /* session lost */
	fi;
	if
	:: atomic { node[i] != NONE && MARK_AHEAD(node[i]) -> goto walk }
	:: atomic { node[i] != NONE && !MARK_AHEAD(node[i]) ->
		stand++; stands[i] = 1 }
	:: atomic { node[i] == NONE -> goto creating }
	fi;
	goto standing;
walk:
	skip;
	d_step {
		if
		:: node[i] != NONE -> delete(i)
		:: else
		fi;
		given_up = (given_up < WALK -> given_up + 1 : WALK)
	};
	goto creating;
standing:
	skip
}

proctype World()
{
	byte j;
	do
	:: d_step { ahead0 -> ahead0 = 0 }
	:: atomic { losses < LOSSES ->
		losses++;
		if
		:: node[0] != NONE && !stands[0] -> delete(0)
		:: node[1] != NONE && !stands[1] -> delete(1)
		:: else
		fi }
	od
}

init {
	atomic {
		ahead0 = 1;
		node[0] = NONE; node[1] = NONE; node[CLAIMANTS - 1] = NONE;
		if
		:: counter = 0
		:: counter = 1
		:: counter = IDS - 1
		fi;
		run World();
		run Claimant(0);
		run Claimant(1);
#if CLAIMANTS > 2
		run Claimant(2);
#endif
	}
}

ltl served { <> (stand == CLAIMANTS) }
