/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kinds - what a UUID, ULID or KSUID costs in libfirn, and a random UUID
 * in libuuid, which is loaded when it is there; in turns, so that a busy
 * machine spoils both.
 */
#include <dlfcn.h>

#include "bench.h"
#include "firn.h"

static void (*uuid_generate_random)(unsigned char *uuid);

static void
take_random(void *arg)
{
	uuid_generate_random(arg);
}

#define TAKE(name, make)                            \
	static void name(void *arg)                 \
	{                                           \
		if (__builtin_expect(make(arg), 0)) \
			abort();                    \
	}
TAKE(take_uuid4, firn_uuid4)
TAKE(take_uuid7, firn_uuid7)
TAKE(take_ulid, firn_ulid)
TAKE(take_ksuid, firn_ksuid)

int
main(void)
{
	void *so = dlopen("libuuid.so.1", RTLD_NOW);
	void *symbol = so == NULL ? NULL : dlsym(so, "uuid_generate_random");
	unsigned char id[20];

	bench_loop("uuid4", take_uuid4, id);
	if (symbol != NULL) {
		memcpy(&uuid_generate_random, &symbol, sizeof(symbol));
		bench_loop("libuuid_random", take_random, id);
	}
	bench_loop("uuid7", take_uuid7, id);
	bench_loop("ulid", take_ulid, id);
	bench_loop("ksuid", take_ksuid, id);
	return (0);
}
