# SPDX-License-Identifier: Apache-2.0
"""The machine, the table in Markdown, the JSON document, the chart."""
import datetime
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from xml.sax.saxutils import escape

from firnlab.build import BUILD, SOURCE, firn

BARS = [  # name of the figure, what the bar says, whose it is
    ('next_many_4096', 'firn_next_many, 4096 a call', 'firn'),
    ('next_1_thread', 'firn_next, from the cache', 'firn'),
    ('uuid', 'libuuid time UUID, uuidd running', 'peer'),
    ('generator', 'in the process: mutex and clock', 'peer'),
    ('echo_p50', 'a process that only echoes (p50)', 'peer'),
    ('uncached_p50', 'firn, a round trip for each ID (p50)', 'firn'),
    ('redis_p50', 'Redis INCR (p50)', 'peer'),
    ('postgres_p50', 'PostgreSQL nextval (p50)', 'peer'),
]
BEGIN, END = '<!-- make bench: begin -->', '<!-- make bench: end -->'


# ---- the machine -------------------------------------------------------------

def first_line(path, pattern, fallback='unknown'):
    try:
        with open(path) as f:
            found = re.search(pattern, f.read())
    except OSError:
        return fallback
    return found.group(1).strip() if found else fallback


def commit():
    done = subprocess.run(
        ['git', '-C', SOURCE, 'rev-parse', '--short=10', 'HEAD'],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode == 0:
        return done.stdout.strip()
    return firn('--version').out.strip()


def machine(quick):
    load = os.getloadavg()[0]
    found = dict(
        date=datetime.datetime.now(datetime.timezone.utc).strftime(
            '%Y-%m-%dT%H:%M:%SZ'),
        commit=commit(), quick=quick, load_at_start=round(load, 2),
        cpu=first_line('/proc/cpuinfo', r'model name\s*:\s*(.*)'),
        cpus=os.cpu_count(), kernel=platform.release(),
        compiler=os.environ.get('FIRN_CC', 'unknown'))
    if load > 0.5:
        print('# the machine is busy (load %.1f): these are no figures to '
              'quote' % load, file=sys.stderr)
    return found


def machine_words(m):
    words = '%s × %d, Linux %s, %s, commit %s, %s' % (
        m['cpu'], m['cpus'], m['kernel'], m['compiler'], m['commit'],
        m['date'][:10])
    if m['quick'] or m['load_at_start'] > 0.5:
        words += '; **a try on a busy machine, not to be quoted** (load %g)' \
            % m['load_at_start']
    return words


# ---- Markdown ----------------------------------------------------------------

def number(value):
    """Three digits that count, and as many as there are before the point."""
    if value is None:
        return ''
    if value == 0 or abs(value) >= 100:
        return '{:,.0f}'.format(value)
    return '{:.3g}'.format(value)


def quantity(value, unit):
    if value is None:
        return ''
    if unit == '%':  # 99.9 and 99.99 are not the same
        return '{:.4g} %'.format(value)
    if unit == 'ns' and value >= 1e6:
        return number(value / 1e6) + ' ms'
    if unit == 'ns' and value >= 1e4:
        return number(value / 1e3) + ' µs'
    return (number(value) + ' ' + unit).strip()


def table(rows):
    lines = ['| what | figure | target | beside | ratio | |',
             '|---|---|---|---|---|---|']
    for r in rows:
        beside = r['peer_name']
        if r['peer'] is not None:
            beside += ': ' + quantity(r['peer'], r['unit'])
        lines.append('| %s | %s | %s | %s | %s | %s |' % (
            r['what'], quantity(r['figure'], r['unit']), r['target'], beside,
            number(r['ratio']), r['verdict']))
    return '\n'.join(lines)


# ---- the chart ---------------------------------------------------------------

STYLE = '''<style>
text{font:13px sans-serif;fill:#1f2328}
.axis{font-size:11px;fill:#59636e}
line{stroke:#d1d9e0}
.firn{fill:#0969da}
.peer{fill:#8c959f}
@media(prefers-color-scheme:dark){
text{fill:#f0f6fc}.axis{fill:#9198a1}line{stroke:#3d444d}
.firn{fill:#4493f8}.peer{fill:#6e7681}}
</style>'''
LEFT, WIDTH, STEP, TOP = 250, 400, 28, 30


def chart(medians, words):
    bars = [(label, whose, medians[name]) for name, label, whose in BARS
            if name in medians]
    low = 10 ** math.floor(math.log10(min(b[2] for b in bars)) - 0.01)
    high = 10 ** math.ceil(math.log10(max(b[2] for b in bars)))
    scale = WIDTH / math.log10(high / low)
    bottom = TOP + STEP * len(bars)
    lines = words.replace('**', '').split('; ')
    out = ['<!-- SPDX-License-Identifier: Apache-2.0 -->',
           '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
           'viewBox="0 0 %d %d" role="img">' % (
               (LEFT + WIDTH + 90, bottom + 28 + 16 * len(lines)) * 2),
           '<title>What one ID costs, logarithmic</title>', STYLE,
           '<text x="8" y="18">What one ID costs (shorter is better, '
           'logarithmic)</text>']
    value = low
    while value <= high * 1.001:
        x = LEFT + scale * math.log10(value / low)
        out.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>' % (
            x, TOP, x, bottom))
        out.append('<text class="axis" x="%.1f" y="%d" '
                   'text-anchor="middle">%s</text>' % (
                       x, bottom + 14, quantity(value, 'ns')))
        value *= 10
    for i, (label, whose, value) in enumerate(bars):
        y, width = TOP + STEP * i, scale * math.log10(value / low)
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (
            LEFT - 8, y + 19, escape(label)))
        out.append('<rect class="%s" x="%d" y="%d" width="%.1f" '
                   'height="18"/>' % (whose, LEFT, y + 5, width))
        out.append('<text x="%.1f" y="%d">%s</text>' % (
            LEFT + width + 6, y + 19, quantity(value, 'ns')))
    for i, line in enumerate(lines):
        out.append('<text class="axis" x="8" y="%d">%s</text>' % (
            bottom + 36 + 16 * i, escape(line)))
    out.append('</svg>')
    return '\n'.join(out) + '\n'


# ---- files -------------------------------------------------------------------

def publish(directory, text):
    """contrib/bench, and the part of README.md between the two marks."""
    target = SOURCE + '/contrib/bench'
    os.makedirs(target, exist_ok=True)
    for name in ('bench.json', 'bench.svg'):
        shutil.copy(directory + '/' + name, target)
    with open(SOURCE + '/README.md') as f:
        readme = f.read()
    head, rest = readme.split(BEGIN, 1)
    _, tail = rest.split(END, 1)
    with open(SOURCE + '/README.md', 'w') as f:
        f.write(head + BEGIN + '\n\n' + text + '\n\n' + END + tail)


def write(document, published):
    words = machine_words(document['machine'])
    medians = {name: statistics.median(v)
               for name, v in document['values'].items()}
    text = '%s\n\n%s' % (table(document['rows']), words)
    with open(BUILD + '/bench.json', 'w') as f:
        json.dump(document, f, indent=1)
        f.write('\n')
    with open(BUILD + '/bench.svg', 'w') as f:
        f.write(chart(medians, words))
    print(text)
    print('\nwritten: %s/bench.json, bench.svg' % BUILD)
    if published:
        publish(BUILD, text)
