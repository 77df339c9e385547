/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark - a worker ID's high-water mark with its owner's status as JSON and
 * back; the same without a ceiling for a claim that owns no mark yet.
 * 64-bit numbers are decimal strings: cJSON's doubles carry none of them.
 */
#ifndef MARK_H
#define MARK_H

#include "doc.h"
#include "records.h"

#define MARK_DOC_MAX 1024

/* Unknown keys are ignored; a status that is missing or odd leaves *st
 * empty (state ""), a mark that is odd is an error. st may be NULL. */
int mark_parse(const char *text, size_t length, struct mark *out,
    struct agent_status *st, struct doc_error *err);
int mark_format(const struct mark *m, const struct agent_status *st, char *buf,
    size_t n);

int claim_doc_parse(const char *text, size_t length, struct agent_status *st,
    struct doc_error *err);
int claim_doc_format(const struct agent_status *st, char *buf, size_t n);

#endif
