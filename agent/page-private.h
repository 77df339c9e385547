/* SPDX-License-Identifier: Apache-2.0 */
/* page-private - what the page says in words, in HTML and in JSON alike. */
#ifndef PAGE_PRIVATE_H
#define PAGE_PRIVATE_H

#include "page.h"
#include "rfc3339.h"
#include "summary.h"

#define PAGE_FIGURES 4
#define PAGE_ALERTS_MAX (AUDIT_ALERTS_MAX + ROWS_ALERTS_MAX)
#define PAGE_TEXT_MAX 256

struct page_figure {
	const char *name;
	char value[32], note[128];
};

struct page_alert {
	bool critical;
	char kind[24];
	char text[PAGE_TEXT_MAX];
	char since[RFC3339_TEXT_MAX]; /* "": now, as rows say */
};

/* "-" where nothing is known. */
void page_figures(
    const struct page_view *v, struct page_figure out[PAGE_FIGURES]);

/* Critical ones first; how many. */
size_t page_alerts(
    const struct page_view *v, struct page_alert out[PAGE_ALERTS_MAX]);

/* From when and from whom what is shown comes. */
void page_note(const struct page_view *v, char out[PAGE_TEXT_MAX]);

/* This agent, in a line. */
void page_self(const struct page_view *v, char out[2 * PAGE_TEXT_MAX]);

#endif
