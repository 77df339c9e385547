/* SPDX-License-Identifier: Apache-2.0 */
/* histogram - merging, and quantiles read off the buckets. */
#include "histogram.h"

uint64_t
histogram_upper(size_t bucket)
{
	size_t shift;
	uint64_t lead;

	if (bucket < HISTOGRAM_FINE)
		return (bucket);
	shift = bucket / HISTOGRAM_FINE - 1;
	lead = bucket - shift * HISTOGRAM_FINE;
	/* of the very last bucket the shift gives 2^64, which is 0 */
	return (((lead + 1) << shift) - 1);
}

void
histogram_merge(struct histogram *to, const struct histogram *from)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	to->total += from->total;
	if (from->max > to->max)
		to->max = from->max;
}

uint64_t
histogram_quantile(const struct histogram *h, uint32_t parts, uint32_t whole)
{
	uint64_t seen = 0, need, upper;

	/* rounded up, and without a product that overflows */
	need = h->total / whole * parts +
	       (h->total % whole * parts + whole - 1) / whole;
	if (need == 0)
		need = 1;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen < need)
			continue;
		upper = histogram_upper(i);
		return (upper < h->max ? upper : h->max);
	}
	return (0);
}
