/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notice - one alert, raised or cleared, as the JSON that alert_command reads.
 *
 * Invariant: it fits NOTICE_DOC_MAX, whatever the texts hold.
 */
#include "notice.h"

#include <stdio.h>

#include "json_out.h"

#define RUNBOOK "contrib/RUNBOOK.md"

static void
put_figure(struct json_out *o, const char *key, bool known, int64_t v)
{
	if (known)
		json_put_i64(o, key, v);
	else
		json_put_null(o, key);
}

static void
put(struct json_out *o, const struct notice *x)
{
	char text[NOTICE_TEXT_MAX], anchor[128];

	(void)snprintf(text, sizeof(text), "%s", x->text);
	(void)snprintf(anchor, sizeof(anchor), RUNBOOK "#%s", x->kind);
	json_open(o, NULL, '{');
	json_put_text(o, "kind", x->kind);
	json_put_text(o, "severity", x->severity);
	json_put_text(o, "state", x->raised ? "raised" : "cleared");
	json_put_text(o, "realm", x->realm);
	json_put_text_or_null(o, "host", x->host);
	if (x->worker != NO_WORKER)
		json_put_u64(o, "worker", x->worker);
	else
		json_put_null(o, "worker");
	json_put_i64(o, "since", x->since_ms);
	json_open(o, "figures", '{');
	put_figure(o, "value", x->has_value, x->value);
	put_figure(o, "limit", x->has_limit, x->limit);
	json_close(o, '}');
	json_put_text(o, "text", text);
	json_put_text(o, "runbook", anchor);
	json_close(o, '}');
}

int
notice_format(const struct notice *x, char *buf, size_t n)
{
	struct json_out o;
	int length;

	json_out_buffer(&o, buf, n);
	put(&o, x);
	length = json_out_end(&o);
	if (length < 0 || (size_t)length + 1 >= n)
		return (-1);
	buf[length] = '\n';
	buf[length + 1] = '\0';
	return (length + 1);
}
