#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rules and dashboard ask for nothing that the agent does not say: metrics,
# kinds of alerts, headings of the runbook.  Each kind has a rule, each rule a
# test in which it fires and one in which it does not; promtool runs them.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
for tool in promtool python3; do
	command -v $tool >/dev/null || {
		echo "no $tool (Debian packages prometheus, python3): skipped"
		exit 77
	}
done
cd "$FIRN_SRCDIR" || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

# an older one calls every rule wrong for a key that it does not know
cat >"$dir/probe.yml" <<END_RULES
groups: [{name: a, rules: [{alert: A, expr: up, keep_firing_for: 1m}]}]
END_RULES
promtool check rules "$dir/probe.yml" >/dev/null 2>&1 || {
	echo "promtool does not know keep_firing_for (2.42): skipped"
	exit 77
}

python3 - "$dir/dashboard.yml" <<'END_PYTHON' || bad=1
import glob
import json
import re
import sys

HOME = 'contrib/prometheus/'
faults = []


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def names(text):
    """ Metrics and records that a query names; labels apart. """
    text = re.sub(r'"[^"]*"', '', text)
    return set(re.findall(r'\b[a-z_]*:?firn_[a-z0-9_]+(?::\w+)?', text))


def values(text):
    """ Values of the agent's own labels that a query picks. """
    return set(re.findall(r'\b(?:state|reason|event|result|cause|direction)'
                          r'="(\w+)"', text))


def hold(fault, what):
    faults.extend(f'{fault}: {w}' for w in sorted(what))


# ---- what the agent says
words = set()
for path in glob.glob('agent/metrics*.c'):
    words |= set(re.findall(r'"(\w+)"', read(path)))
said = {w for w in words if w.startswith('firn_')}
for m in re.findall(r'"(firn_\w+)", EXPO_HISTOGRAM', read('agent/metrics.c')):
    said |= {m + '_bucket', m + '_sum', m + '_count'}
kinds = set()
for path, name in (('agent/core/alarms.c', 'alarm_name'),
                   ('agent/core/audit-alerts.c', 'audit_kind_name')):
    body = re.search(name + r'\(.*?\n}', read(path), re.S)[0]
    kinds |= set(re.findall(r'case \w+:\s+return \("(\w+)"\)', body))
if len(said) < 35 or len(kinds) < 12:
    faults.append(f'the sources: {len(said)} metrics, {len(kinds)} kinds')

# ---- rules
rules = read(HOME + 'firn.rules.yml')
rules = re.sub(r'^\s*#.*', '', rules, flags=re.M)
records = set(re.findall(r'- record: (\S+)', rules))
alerts = re.findall(r'- alert: (\S+)', rules)
hold('rules: there is no metric', names(rules) - said - records)
hold('rules: there is no label', values(rules) - words)
asked = set(re.findall(r'kind="(\w+)"', rules))
hold('rules: no rule for the alert', kinds - asked)
hold('rules: no agent raises', asked - kinds)
headings = {re.sub(r'[^\w -]', '', h.lower()).replace(' ', '-')
            for h in re.findall(r'^#+ (.+)', read('contrib/RUNBOOK.md'), re.M)}
anchors = re.findall(r'runbook: contrib/RUNBOOK\.md#(\S+)', rules)
hold('rules: no heading of the runbook', set(anchors) - headings)
if len(anchors) != len(alerts) or len(alerts) < 15:
    faults.append(f'rules: {len(alerts)} alerts, {len(anchors)} anchors')
for kind, anchor in re.findall(r'kind="(\w+)".*?#(\S+)', rules, re.S):
    if kind != anchor:
        faults.append(f'rules: {kind} sends to the heading {anchor}')

# ---- their tests
tests = re.split(r'eval_time:', read(HOME + 'firn.test.yml'))
fires, silent = set(), set()
for t in tests:
    m = re.search(r'alertname: (\w+)', t)
    if m:
        (fires if 'exp_labels' in t else silent).add(m[1])
hold('tests: never fires', set(alerts) - fires)
hold('tests: is never silent', set(alerts) - silent)

# ---- dashboard: its queries as rules, for promtool
board = json.loads(read(HOME + 'firn-dashboard.json'))
queries = [t['expr'] for p in board['panels'] for t in p['targets']]
variables = [v['query'] for v in board['templating']['list']]
for q in queries + variables:
    hold(f'dashboard: {q}: there is no metric', names(q) - said - records)
    hold(f'dashboard: {q}: there is no label', values(q) - words)
if len(board['panels']) < 12:
    faults.append('dashboard: few panels')
with open(sys.argv[1], 'w', encoding='utf-8') as f:
    f.write('groups:\n  - name: dashboard\n    rules:\n')
    for i, q in enumerate(queries):
        q = q.replace('$__rate_interval', '5m').replace('$realm', '.*')
        f.write(f'      - {{record: "q{i}", expr: {json.dumps(q)}}}\n')

print('\n'.join(faults) or f'{len(said)} metrics, {len(alerts)} alerts, '
      f'{len(queries)} queries of {len(board["panels"])} panels')
sys.exit(bool(faults))
END_PYTHON

for f in contrib/prometheus/firn.rules.yml "$dir/dashboard.yml"; do
	promtool check rules "$f" >"$dir/out" 2>&1 ||
	    { cat "$dir/out"; bad=1; }
done
promtool test rules contrib/prometheus/firn.test.yml >"$dir/out" 2>&1 ||
    { cat "$dir/out"; bad=1; }
exit $bad
