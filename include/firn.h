/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn.h - the whole public interface of libfirn.
 *
 * libfirn takes 64-bit, roughly time-ordered IDs in batches from the agent
 * (firnd) on this host and gives them out one by one from memory.
 *
 * Conventions, true for every function unless its comment says otherwise:
 *
 *   result     0 is success, errors are negative (FIRN_E...).  Output
 *              parameters are written on success only.
 *   IDs        uint64_t, compared unsigned: some layouts use all 64 bits.
 *   time       milliseconds; unix_ms counts from 1970-01-01T00:00:00Z without
 *              leap seconds.
 *   ownership  the caller owns every buffer it passes; the library keeps no
 *              pointer to it.  Returned strings are static, never freed.
 *   blocking   pure functions never block.  Those that do say how long.
 *   threads    any number of threads may use one handle at the same time;
 *              firn_close() is the last call to begin on it.
 *   fork       a handle may be used in parent and child after fork(), _Fork()
 *              or clone(): the child starts with an empty cache and makes a
 *              connection of its own.  A child that shares memory (vfork,
 *              CLONE_VM) shares the handle as a thread does, and like one
 *              needs thread-local storage of its own to run beside its
 *              parent.  After exec and posix_spawn there is no handle and
 *              no descriptor of one.
 *   signals    no function raises or swallows one; EINTR is handled inside.
 *              No function is async-signal-safe, none is a useful point for
 *              siglongjmp().  A handler that forks in the middle of a call
 *              must not return in the child.
 *   state      no hidden threads, no stdio, no abort(), no global state but
 *              a per-thread pool of random bytes and the counters of UUIDs,
 *              ULIDs and KSUIDs.
 */
#ifndef FIRN_H
#define FIRN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FIRN_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define FIRN_CHECK_RESULT
#endif

/* ---- errors ---------------------------------------------------------- */

#define FIRN_OK 0
#define FIRN_EINVAL (-1) /* an argument is wrong, or the handle closed */
#define FIRN_ENOMEM (-2) /* out of memory */
#define FIRN_EAGAIN (-3) /* nothing cached; a request is on its way */
#define FIRN_ETIMEDOUT (-4) /* the agent did not answer by the deadline */
#define FIRN_EAWAY (-5) /* no agent on the socket until the deadline */
#define FIRN_EACCES (-6) /* not allowed; said at once, never retried */
#define FIRN_EREFUSED (-7) /* the agent refused; firn_why() has the words */
#define FIRN_EREALM (-8) /* the agent serves another realm */
#define FIRN_EPROTO (-9) /* bytes that are not the protocol */
#define FIRN_ERANGE (-10) /* a value that its field or text cannot hold */
#define FIRN_ERANDOM (-11) /* the kernel gives no random bytes (a sandbox) */
#define FIRN_ESEAL (-12) /* sealed by none of the keys; firn-seal.h */

/*
 * firn_strerror() gives a short sentence, firn_errname() the name of the
 * constant ("FIRN_EAGAIN").  An unknown number gets a string too, never NULL.
 */
const char *firn_strerror(int err);
const char *firn_errname(int err);

/* Version of the library that runs, such as "0.1.0". */
const char *firn_version(void);

/* ---- layouts: how an ID is divided ----------------------------------- */

#define FIRN_LAYOUT_NAME_MAX 16

/* flags of struct firn_layout */
#define FIRN_SEQUENCE_ABOVE_WORKER 1u /* sonyflake's order of the fields */

/*
 * size: whoever fills the struct sets it.  A caller must where it passes a
 * layout of its own making, and need set nothing where the library writes: a
 * layout or parts.
 *
 * From the most significant bit down: (unused) | time | worker | sequence,
 * or time | sequence | worker with FIRN_SEQUENCE_ABOVE_WORKER.  The bits add
 * up to at most 64; time and sequence have at least one.  The time field
 * counts ticks of tick_ms since epoch_ms.  datacenter_bits are the upper part
 * of the worker bits (they are included in worker_bits).
 */
struct firn_layout {
	uint32_t size; /* sizeof(struct firn_layout) */
	uint8_t time_bits;
	uint8_t worker_bits;
	uint8_t sequence_bits;
	uint8_t datacenter_bits;
	uint32_t flags;
	uint32_t tick_ms;
	int64_t epoch_ms;
	char name[FIRN_LAYOUT_NAME_MAX]; /* preset's name, or "custom" */
};

struct firn_parts {
	uint32_t size; /* sizeof(struct firn_parts) */
	uint32_t reserved;
	int64_t unix_ms; /* start of the ID's tick */
	uint64_t tick; /* ticks since the epoch */
	uint64_t worker; /* all worker bits, the datacenter's included */
	uint64_t datacenter; /* 0 where the layout has no such bits */
	uint64_t sequence;
};

/*
 * Fills *out with a preset (bits of time, worker, sequence; epoch): "firn"
 * (41/10/12; 2025-01-01T00:00:00Z), "twitter" (41/5+5/12; 1288834974657, as
 * Snowflake), "discord" (42/5+5/12; 1420070400000), "instagram" (41/13/10;
 * 1314220021721), "sonyflake" (39 of 10 ms/16/8, sequence above worker;
 * 1409529600000), "js53" (38 of 10 ms/7/8, below 2^53; as firn).  Pure.
 * FIRN_EINVAL: unknown name.
 */
FIRN_CHECK_RESULT int firn_layout_preset(
    const char *name, struct firn_layout *out);

/*
 * Takes an ID apart.  Pure.
 * FIRN_EINVAL: *l is no valid layout.  FIRN_ERANGE: id has bits above the
 * layout's.
 */
FIRN_CHECK_RESULT int firn_decode(
    const struct firn_layout *l, uint64_t id, struct firn_parts *out);

/*
 * The smallest ID that an instant can have: every ID of that tick or later is
 * >= *id, every earlier one below.  For range queries.  Pure.
 * FIRN_EINVAL: *l is no valid layout.  FIRN_ERANGE: before the epoch or past
 * the last tick.
 */
FIRN_CHECK_RESULT int firn_id_floor(
    const struct firn_layout *l, int64_t unix_ms, uint64_t *id);

/* ---- shards ------------------------------------------------------------ */

/*
 * The shard of an ID, 0 to n - 1: even over n shards whatever the layout, the
 * rate and the sequence do (`id % n` is not: at low rates the low bits are all
 * alike).  The same for ever, and easy to have in another language, in 64-bit
 * unsigned arithmetic that wraps:
 *
 *   x = (id ^ id >> 30) * 0xbf58476d1ce4e5b9   SplitMix64's finalizer
 *   x = (x ^ x >> 27) * 0x94d049bb133111eb
 *   x = x ^ x >> 31
 *   shard = the upper 64 of the 128 bits of x * n
 *
 * With k times as many shards each one is cut in k: firn_shard(id, k * n) / k
 * is firn_shard(id, n).  Any other n moves most IDs.  Pure.
 * FIRN_EINVAL: n is 0 or over 2147483647.
 */
FIRN_CHECK_RESULT int firn_shard(uint64_t id, uint32_t n);

/* ---- text forms of 64-bit IDs ---------------------------------------- */

enum firn_format {
	FIRN_DECIMAL = 0, /* no leading zeros */
	FIRN_HEX = 1, /* 16 lower-case digits */
	FIRN_BASE62 = 2, /* 11 characters, 0-9A-Za-z, order kept */
	FIRN_CROCKFORD = 3, /* 13 characters, Crockford's Base32, order kept */
};

#define FIRN_TEXT_MAX 24 /* room for any form and its NUL */

/*
 * Writes the ID's text and a NUL to buf.  Pure.
 * FIRN_EINVAL: unknown format.  FIRN_ERANGE: n is too small.
 */
FIRN_CHECK_RESULT int firn_format_id(
    uint64_t id, enum firn_format format, char *buf, size_t n);

/*
 * Reads exactly one text form: strict alphabet and width (decimal: 1 to 20
 * digits, no leading zero; hex: 1 to 16 digits of either case; Crockford:
 * upper case), nothing before or after.  On error *where (if not NULL) is the offset of the first
 * character that is wrong (the length, where something is missing).  Pure.
 * FIRN_EINVAL: not this form.  FIRN_ERANGE: over 64 bits.
 */
FIRN_CHECK_RESULT int firn_parse_id(
    const char *text, enum firn_format format, uint64_t *id, size_t *where);

/* ---- UUIDs, ULIDs, KSUIDs: made here, without the agent --------------- */

/*
 * An ID is 16 bytes (a KSUID 20) in the order in which it sorts: most
 * significant first.  Every pointer below must be there but *where; the
 * functions that return an error say FIRN_EINVAL for one that is NULL.
 *
 * Those that make an ID (firn_uuid4(), firn_uuid7(), firn_ulid(),
 * firn_ksuid()) work on a state of their thread's:
 *
 *   threads  no lock, nothing is shared.
 *   fork     the state is wiped in the child, random bytes and counters; so
 *            also after _Fork() and clone() without CLONE_VM.  Where the
 *            kernel does not wipe (before Linux 4.14) each call asks for the
 *            process's number, and a vfork() child may only exec.
 *   random   from getrandom(2), 2 KiB at a time; each byte is erased as it is
 *            used.  Blocks until the kernel is seeded, early in boot, and
 *            never after that.
 *   order    the UUIDv7s of one thread only go up, likewise its ULIDs and its
 *            KSUIDs, also if the clock stands or goes back: then the timestamp
 *            stays that of the last one, and the random part, which begins
 *            anew with each tick, goes on as a counter (RFC 9562, section 6.2,
 *            method 2; its topmost bit begins as 0, the guard).  Threads and
 *            processes are ordered by the clock alone, to its tick.
 *   clock    the kernel's coarse one (CLOCK_REALTIME_COARSE): a timestamp is
 *            late by up to a tick of the kernel's, 1 to 10 ms.
 *   errors   FIRN_ENOMEM (a thread's first), FIRN_ERANDOM; FIRN_ERANGE: the
 *            clock shows a time that the kind cannot hold.
 *
 * A machine put back to a snapshot may repeat itself: nothing inside can tell.
 */
#define FIRN_UUID_TEXT_MAX 37 /* 36 characters and a NUL */
#define FIRN_ULID_TEXT_MAX 27
#define FIRN_KSUID_TEXT_MAX 28

/* A UUIDv4: 122 random bits (RFC 9562, section 5.4).  No order, no time. */
FIRN_CHECK_RESULT int firn_uuid4(unsigned char out[16]);

/*
 * A UUIDv7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, then 73
 * random bits below the guard.  Within a millisecond the next is higher by 1
 * to 2^32, at random.  After 2^41 or more of them (never, in practice) the
 * timestamp goes one millisecond ahead of the clock.
 */
FIRN_CHECK_RESULT int firn_uuid7(unsigned char out[16]);

/*
 * A ULID as its specification has it (github.com/ulid/spec): 48 bits of Unix
 * milliseconds, then 79 random bits below the guard; within a millisecond the
 * next is higher by 1, so whoever sees one can name its neighbour.
 * FIRN_ERANGE, after 2^79 of them: none is left in this millisecond.
 */
FIRN_CHECK_RESULT int firn_ulid(unsigned char out[16]);

/*
 * A KSUID (github.com/segmentio/ksuid): 32 bits of seconds since 1400000000,
 * then 127 random bits below the guard; within a second the next is higher by
 * 1 to 2^62, at random.  After 2^65 or more of them the timestamp goes one
 * second ahead of the clock.  Holds 2014-05-13 to 2150-06-19.
 */
FIRN_CHECK_RESULT int firn_ksuid(unsigned char out[20]);

/*
 * Writes 36 characters in lower case and a NUL (RFC 9562, section 4).  Pure.
 * FIRN_ERANGE: n is below FIRN_UUID_TEXT_MAX.
 */
FIRN_CHECK_RESULT int firn_uuid_format(
    const unsigned char uuid[16], char *buf, size_t n);

/*
 * Reads a UUID of any version, 8-4-4-4-12 hexadecimal digits of either case,
 * as they are, after "urn:uuid:" or in braces (RFC 9562, section 4); nothing
 * before or after, no digits without hyphens.  On error *where (if not NULL)
 * is the offset of the first character that is wrong (the length, where
 * something is missing).  Pure.  FIRN_EINVAL: no UUID.
 */
FIRN_CHECK_RESULT int firn_uuid_parse(
    const char *text, unsigned char out[16], size_t *where);

/* Below, at or above 0 as a sorts before, with or after b.  Pure. */
int firn_uuid_compare(const unsigned char a[16], const unsigned char b[16]);

/*
 * The version, 0 to 15.  Pure.  FIRN_EINVAL: the variant is not that of
 * RFC 9562, section 4.1 (as in the nil and the max UUID, and most ULIDs).
 */
FIRN_CHECK_RESULT int firn_uuid_version(const unsigned char uuid[16]);

/* The time of a UUIDv7.  Pure.  FIRN_EINVAL: no version 7. */
FIRN_CHECK_RESULT int firn_uuid_time(
    const unsigned char uuid[16], int64_t *unix_ms);

/*
 * The smallest and the largest UUIDv7 of a millisecond, for range queries.
 * Pure.  FIRN_ERANGE: before 1970, or over 48 bits (the year 10889).
 */
FIRN_CHECK_RESULT int firn_uuid7_floor(int64_t unix_ms, unsigned char out[16]);
FIRN_CHECK_RESULT int firn_uuid7_ceiling(
    int64_t unix_ms, unsigned char out[16]);

/*
 * Writes 26 characters of Crockford's Base32 and a NUL; they sort as the
 * bytes do.  Pure.  FIRN_ERANGE: n is below FIRN_ULID_TEXT_MAX.
 */
FIRN_CHECK_RESULT int firn_ulid_format(
    const unsigned char ulid[16], char *buf, size_t n);

/*
 * Reads exactly 26 characters, upper case without I, L, O and U.  *where as
 * firn_uuid_parse().  Pure.  FIRN_EINVAL: no ULID.  FIRN_ERANGE: over 128
 * bits (the first character is above 7).
 */
FIRN_CHECK_RESULT int firn_ulid_parse(
    const char *text, unsigned char out[16], size_t *where);

/*
 * The same for text that people typed: either case, o as 0, i and l as 1,
 * hyphens left out.  *where is an offset in the text as given.
 */
FIRN_CHECK_RESULT int firn_ulid_parse_lenient(
    const char *text, unsigned char out[16], size_t *where);

int firn_ulid_compare(const unsigned char a[16], const unsigned char b[16]);

/* As the functions of a UUIDv7; every ULID has a time.  Pure. */
FIRN_CHECK_RESULT int firn_ulid_time(
    const unsigned char ulid[16], int64_t *unix_ms);
FIRN_CHECK_RESULT int firn_ulid_floor(int64_t unix_ms, unsigned char out[16]);
FIRN_CHECK_RESULT int firn_ulid_ceiling(
    int64_t unix_ms, unsigned char out[16]);

/*
 * The one after, in the same millisecond; both may be the same memory.  Pure.
 * FIRN_ERANGE: it is the millisecond's last.
 */
FIRN_CHECK_RESULT int firn_ulid_next(
    const unsigned char before[16], unsigned char out[16]);

/*
 * A ULID as a UUID and back: the same 128 bits, for columns of that type.
 * What comes out sorts the same but bears no version of its own; a UUIDv7 as
 * a ULID keeps its time.  Pure.
 */
FIRN_CHECK_RESULT int firn_ulid_to_uuid(
    const unsigned char ulid[16], unsigned char uuid[16]);
FIRN_CHECK_RESULT int firn_ulid_from_uuid(
    const unsigned char uuid[16], unsigned char ulid[16]);

/*
 * Writes 27 characters, 0-9A-Za-z, and a NUL; they sort as the bytes do.
 * Pure.  FIRN_ERANGE: n is below FIRN_KSUID_TEXT_MAX.
 */
FIRN_CHECK_RESULT int firn_ksuid_format(
    const unsigned char ksuid[20], char *buf, size_t n);

/*
 * Reads exactly 27 characters.  *where as firn_uuid_parse().  Pure.
 * FIRN_EINVAL: no KSUID.  FIRN_ERANGE: over 160 bits.
 */
FIRN_CHECK_RESULT int firn_ksuid_parse(
    const char *text, unsigned char out[20], size_t *where);

int firn_ksuid_compare(const unsigned char a[20], const unsigned char b[20]);

/*
 * The time, whole seconds; the smallest and the largest KSUID of the second
 * that holds an instant.  Pure.  FIRN_ERANGE: not between 1400000000 and 2^32
 * seconds later.
 */
FIRN_CHECK_RESULT int firn_ksuid_time(
    const unsigned char ksuid[20], int64_t *unix_ms);
FIRN_CHECK_RESULT int firn_ksuid_floor(int64_t unix_ms, unsigned char out[20]);
FIRN_CHECK_RESULT int firn_ksuid_ceiling(
    int64_t unix_ms, unsigned char out[20]);

/* ---- the handle ------------------------------------------------------ */

struct firn;

/* Zero means "default" in every field; set size to sizeof the struct. */
struct firn_options {
	uint32_t size;
	uint32_t timeout_ms; /* deadline of one call; default 1000 */
	const char *socket; /* default $FIRN_SOCKET, else /run/firn/firn.sock;
	                      * at most 107 bytes; "@name" is not special */
	const char *realm; /* refuse an agent of another realm; default
	                      * $FIRN_REALM, else any */
	uint32_t max_batch; /* most IDs in one request; default and limit
	                      * 1048576 */
	uint32_t ttl_ms; /* older cached IDs are dropped; default 1000 */
};

/*
 * Makes a handle.  Lazy: the socket is not touched, the agent need not run.
 * opt may be NULL.  Strings of opt are copied.  Release with firn_close().
 * FIRN_EINVAL: a bad option (size too small, path too long).  FIRN_ENOMEM.
 */
FIRN_CHECK_RESULT int firn_open(
    struct firn **out, const struct firn_options *opt);

/*
 * Frees the handle and its connection.  NULL is fine.  Never blocks.
 *
 * Other threads may be inside, waiting for the agent: their calls are ended.
 * Each returns at once, with success if it has an ID by then, otherwise with
 * FIRN_EINVAL; the last one out frees the memory.  What may not be is a call
 * that begins now or later, or one that is being served from memory, which
 * nobody can see: threads that take IDs in a loop are told to stop first.
 */
void firn_close(struct firn *f);

/*
 * Takes the next ID.  The IDs that one thread takes from one handle only go
 * up.  From the cache it takes nanoseconds and no lock; otherwise it blocks
 * for at most timeout_ms.  Cancellation: a thread cancelled inside loses at
 * most IDs nobody has seen.
 * Errors: FIRN_ETIMEDOUT, FIRN_EAWAY, FIRN_EACCES, FIRN_EREFUSED,
 * FIRN_EREALM, FIRN_EPROTO, FIRN_ENOMEM, FIRN_EINVAL (NULL, or closed).
 */
FIRN_CHECK_RESULT int firn_next(struct firn *f, uint64_t *id);

/*
 * Takes n IDs into ids[].  Blocks for at most timeout_ms.  *got is always
 * written: so many IDs are valid and used up, also on error.  Success means
 * that *got > 0 (or n was 0); fewer than n come with success when a refusal
 * or the deadline cut the call short.  Errors as firn_next().
 */
FIRN_CHECK_RESULT int firn_next_many(
    struct firn *f, uint64_t *ids, size_t n, size_t *got);

/*
 * As firn_next(), for event loops: waits at most 200 microseconds for a
 * reply that is under way, never for anything else.
 * FIRN_EAGAIN: a request is on its way; wait on firn_poll_fd(), try again.
 * Where there is no agent it says so at once (FIRN_EAWAY): a loop tries again
 * after a pause of its own.
 */
FIRN_CHECK_RESULT int firn_try_next(struct firn *f, uint64_t *id);

/*
 * The descriptor to wait on after FIRN_EAGAIN, and in *events what to wait
 * for (POLLIN, POLLOUT).  It stays the handle's: never close or read it, and
 * ask again after every FIRN_EAGAIN, since a new connection has a new one.
 * Returns the descriptor (>= 0), or FIRN_EAWAY while there is none (try
 * again after a pause of your own).  If other threads use the handle too, one
 * of them may take the reply: then wait for 100 ms, say, and not for ever.
 */
FIRN_CHECK_RESULT int firn_poll_fd(struct firn *f, short *events);

/*
 * The realm's layout, as the agent says.  Blocks for at most timeout_ms
 * unless the handle knows it already.  Errors as firn_next().
 */
FIRN_CHECK_RESULT int firn_get_layout(struct firn *f, struct firn_layout *out);

/*
 * The last failure of this handle in words, with its figures, as one line:
 * "clock_skew: this host's clock is 12.4 s ahead of its peers ...".  Writes at
 * most n bytes including the NUL; a longer text is cut.  Returns the length
 * of the whole text, 0 if nothing has failed yet.  Never blocks.
 */
int firn_why(struct firn *f, char *buf, size_t n);

/*
 * What a handle did in this process: a child begins at zero, as with its
 * cache.  The numbers only go up.  A later version may add some at the end.
 */
struct firn_stats {
	uint32_t size; /* sizeof(struct firn_stats); the caller sets it */
	uint32_t reserved; /* 0 */
	uint64_t hits; /* IDs given out from memory, without a wait */
	uint64_t waits; /* calls that memory had too few IDs for */
	uint64_t refills; /* batches that came and were young enough */
	uint64_t dropped; /* IDs never given out: older than ttl_ms, or left
	                   * by a thread that ended */
	uint64_t reconnects; /* connections made after the first one */
};

/*
 * Fills *out.  Costs the calls that take IDs nothing.  Never blocks.
 * FIRN_EINVAL: NULL, or out->size is smaller than the struct above.
 */
FIRN_CHECK_RESULT int firn_get_stats(struct firn *f, struct firn_stats *out);

#ifdef __cplusplus
}
#endif
#endif
