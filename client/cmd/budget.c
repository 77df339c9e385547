/* SPDX-License-Identifier: Apache-2.0 */
/* budget - what a layout gives and costs; odds of random IDs.  No I/O. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "budget.h"
#include "layout.h"
#include "records.h"

#define YEAR_TENTH_MS INT64_C(3155695200) /* of 365.2425 days */
#define DAY_S 86400
#define DAY_MS (INT64_C(1000) * DAY_S)
/* firnd.json(5)'s defaults; bytes of a renewal in ZooKeeper's log, measured */
#define RENEW_MS 3000
#define AUDIT_MS 10000
#define LOG_BYTES 430
#define DURATION_MS_MAX (INT64_C(10000) * 366 * DAY_MS)

/* ---- of a layout ---- */

static uint64_t
product(uint64_t a, uint64_t b)
{
	uint64_t v;

	return (__builtin_mul_overflow(a, b, &v) ? UINT64_MAX : v);
}

int64_t
budget_year_tenths(int64_t ms)
{
	return (ms / YEAR_TENTH_MS + (ms % YEAR_TENTH_MS >= YEAR_TENTH_MS / 2));
}

/*
 * Below this tick all IDs are below 2^53, from it on none is.  With more than
 * 53 bits under the time the first tick has both: then it is 0.
 */
static bool
unsafe_tick(const struct firn_layout *l, int64_t *tick)
{
	unsigned under = (unsigned)l->worker_bits + l->sequence_bits;

	if (l->time_bits + under <= BUDGET_SAFE_BITS)
		return (false);
	*tick = under > BUDGET_SAFE_BITS
		    ? 0
		    : INT64_C(1) << (BUDGET_SAFE_BITS - under);
	return (true);
}

void
budget_of(const struct firn_layout *l, struct budget *out)
{
	int64_t end_ms = layout_end_ms(l), tick;

	memset(out, 0, sizeof(*out));
	out->last_ms = end_ms - 1;
	out->span_tenths = budget_year_tenths(end_ms - l->epoch_ms);
	out->has_sign = layout_sign_ms(l, &out->sign_ms);
	out->has_unsafe = unsafe_tick(l, &tick);
	if (out->has_unsafe)
		out->unsafe_ms = layout_tick_start_ms(l, tick);
	out->workers = layout_worker_max(l) + 1;
	out->agents = out->workers - (out->workers + 3) / 4;
	if (out->agents > WORKERS_MAX)
		out->agents = WORKERS_MAX;
	out->worker_rate = product(layout_sequence_max(l) + 1, 1000);
	if (out->worker_rate == UINT64_MAX)
		out->worker_rate =
		    product((layout_sequence_max(l) + 1) / l->tick_ms, 1000);
	else
		out->worker_rate /= l->tick_ms;
	out->fleet_rate = product(out->worker_rate, out->workers);
}

static uint8_t *
field_of(struct firn_layout *l, enum budget_field field)
{
	switch (field) {
	case BUDGET_TIME:
		return (&l->time_bits);
	case BUDGET_WORKER:
		return (&l->worker_bits);
	case BUDGET_SEQUENCE:
		break;
	}
	return (&l->sequence_bits);
}

bool
budget_move_bit(const struct firn_layout *l, enum budget_field from,
    enum budget_field to, struct firn_layout *out)
{
	struct firn_layout moved = *l;

	if (from == to || *field_of(&moved, from) == 0)
		return (false);
	(*field_of(&moved, from))--;
	(*field_of(&moved, to))++;
	if (moved.datacenter_bits > moved.worker_bits)
		moved.datacenter_bits = moved.worker_bits;
	if (!layout_valid(&moved))
		return (false);
	*out = moved;
	return (true);
}

/* ---- of a fleet ---- */

/*
 * Each agent writes its mark and reads the summary every renew_ms; the
 * auditor lists the claims, reads each mark and writes the summary every
 * audit_ms.
 */
void
budget_load(uint64_t agents, struct budget_load *out)
{
	uint64_t audits = 10 * 1000 / AUDIT_MS; /* in ten seconds */
	uint64_t renewals = agents * 10 * 1000 / RENEW_MS;

	out->write_tenths = renewals + audits;
	out->read_tenths = renewals + audits * (agents + 2);
	out->log_bytes = out->write_tenths * DAY_S / 10 * LOG_BYTES;
}

bool
budget_duration(const char *text, int64_t *ms)
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 },
		{ 'd', DAY_MS }, { 'y', 365 * DAY_MS } };
	size_t n = strspn(text, "0123456789");
	int64_t v = 0;

	if (n < 1 || n > 15 || text[n] == '\0' || text[n + 1] != '\0')
		return (false);
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (text[i] - '0');
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (text[n] != units[i].unit)
			continue;
		*ms = v;
		return (v > 0 && v <= DURATION_MS_MAX / units[i].ms &&
			!__builtin_mul_overflow(v, units[i].ms, ms));
	}
	return (false);
}

/* ---- of random IDs ---- */

const struct budget_kind budget_kinds[BUDGET_KINDS] = {
	{ "UUIDv4", 122, 0, "any other" },
	{ "KSUID", 128, 1000, "the same second" },
	{ "ULID", 80, 1, "the same millisecond" },
	{ "UUIDv7", 74, 1, "the same millisecond" },
};

double
budget_collisions(const struct budget_kind *kind, uint64_t rate, int64_t ms)
{
	double unit_ms = (double)(kind->unit_ms > 0 ? kind->unit_ms : ms);
	double group = (double)rate * unit_ms / 1000;
	double pairs = group * group / 2 * ((double)ms / unit_ms);

	for (unsigned i = 0; i < kind->random_bits; i++)
		pairs /= 2;
	return (pairs);
}

void
budget_group(uint64_t v, char buf[BUDGET_NUMBER_MAX])
{
	char digits[BUDGET_NUMBER_MAX];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);

	for (int i = 0; i < n; i++) {
		*buf++ = digits[i];
		if ((n - i) % 3 == 1 && i + 1 < n)
			*buf++ = ',';
	}
	*buf = '\0';
}

/* Two digits and how many follow them; small numbers are whole. */
static unsigned
two_digits(double v, unsigned *zeros)
{
	*zeros = 0;
	while (v >= 99.5) {
		v /= 10;
		(*zeros)++;
	}
	return ((unsigned)(v + 0.5));
}

void
budget_round(double v, bool marks, char *buf, size_t n)
{
	unsigned zeros, two = two_digits(v, &zeros);
	char group[BUDGET_NUMBER_MAX];
	uint64_t whole = two;
	int used;

	if (marks && zeros + 2 > 15) {
		(void)snprintf(
		    buf, n, "%u.%u x 10^%u", two / 10, two % 10, zeros + 1);
		return;
	}
	if (marks) {
		for (unsigned i = 0; i < zeros; i++)
			whole *= 10;
		budget_group(whole, group);
		(void)snprintf(buf, n, "%s", group);
		return;
	}
	used = snprintf(buf, n, "%u", two);
	for (unsigned i = 0; i < zeros && used > 0 && (size_t)used + 1 < n; i++)
		buf[used++] = '0';
	if (n > 0)
		buf[used] = '\0';
}
