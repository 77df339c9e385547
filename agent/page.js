// SPDX-License-Identifier: Apache-2.0
// The page keeps itself up to date: it asks its agent for the figures and
// changes what has changed.  Texts of others are only ever set as text.
'use strict';
(() => {
	const POLL_MS = 2000, LATE_MS = 8000, ROWS_A_FRAME = 50;
	const SVG = 'http://www.w3.org/2000/svg';
	// A bar is half as long for a quarter of the seconds; it ends at 16 s.
	const END_S = 16, HALF = 58;
	const at = s => Math.sign(s) * HALF *
	    Math.sqrt(Math.min(Math.abs(s), END_S) / END_S);
	const get = id => document.getElementById(id);
	const body = get('rows');
	const known = new Map();  // key: { row, cells, values }
	let heard = performance.now(), last = '', filling = 0;

	const make = (name, text, kind) => {
		const e = document.createElement(name);
		if (text !== undefined)
			e.textContent = text;
		if (kind)
			e.className = kind;
		return e;
	};
	const draw = (name, attributes, text) => {
		const e = document.createElementNS(SVG, name);
		for (const [key, value] of Object.entries(attributes))
			e.setAttribute(key, value);
		if (text !== undefined)
			e.textContent = text;
		return e;
	};

	// ---- bars: zero, and the lines at which an agent warns and refuses
	const scale = () => {
		const svg = draw('svg', { viewBox: '-60 -7 120 14',
			'aria-hidden': 'true' });
		for (const [s, kind] of [[0, 'zero'], [-0.5, 'half'],
			[0.5, 'half'], [-10, 'ten'], [10, 'ten']])
			svg.append(draw('line', { x1: at(s), x2: at(s),
				y1: -7, y2: 7, class: kind }));
		return svg;
	};
	const legend = () => {
		const svg = draw('svg', { viewBox: '-60 -7 120 14',
			'aria-hidden': 'true' });
		for (const [s, text] of [[-10, '\u221210'], [-0.5, '\u2212\u00bd'],
			[0.5, '\u00bd'], [10, '10']])
			svg.append(draw('text', { x: at(s), y: 5 }, text));
		return svg;
	};

	// ---- rows: each text a node of its own, set only when it is another
	const grouped = new Intl.NumberFormat('en');
	const number = (v, by, digits) =>
	    v === null ? '\u2013' : (v / by).toFixed(digits);
	const signed = v => v === null ? '\u2013' :
	    (v < 0 ? '\u2212' : '+') + Math.abs(v / 1e6).toFixed(3);
	const words = a => [a.state, a.reason, String(a.worker), a.host,
		signed(a.skew_us), number(a.error_us, 1e3, 1),
		number(a.left_ms, 1e3, 0),
		a.ids_per_s === null ? '\u2013' : grouped.format(a.ids_per_s),
		number(a.age_ms, 1e3, 0)];

	const newRow = () => {
		const row = make('tr'), state = make('td');
		const host = make('th'), skew = make('td');
		const bar = scale(), length = draw('rect', { y: -3, height: 6 });
		bar.append(length);
		const reason = make('i'), figure = make('span');
		const last = [make('td'), make('td'), make('td'), make('td')];
		const worker = make('td');
		const texts = [state, reason, worker, host, figure, ...last].map(
		    e => e.appendChild(document.createTextNode('')));
		host.scope = 'row';
		state.append(' ', reason);
		skew.append(bar, figure);
		row.append(state, worker, host, skew, ...last);
		return { row, texts, length, level: '' };
	};
	const fill = (r, a) => {
		words(a).forEach((text, i) => {
			if (r.texts[i].data === text)
				return;
			r.texts[i].data = text;
			if (i === 3)
				r.row.cells[2].title = text;
			if (i === 4) {
				const x = at((a.skew_us || 0) / 1e6);
				r.length.setAttribute('x', Math.min(0, x));
				r.length.setAttribute('width', Math.abs(x));
			}
		});
		if (r.level !== a.level)
			r.row.className = r.level = a.level;
	};
	// Some in each frame, from the top: a thousand at once would be felt.
	const fillAll = todo => {
		cancelAnimationFrame(filling);
		const some = () => {
			for (const [r, a] of todo.splice(0, ROWS_A_FRAME))
				fill(r, a);
			if (todo.length > 0)
				filling = requestAnimationFrame(some);
		};
		some();
	};
	const showRows = agents => {
		const seen = new Set(), todo = [];
		let next = body.firstChild;
		for (const a of agents) {
			let key = a.worker + ' ' + a.host;
			while (seen.has(key))
				key += '+';
			seen.add(key);
			if (!known.has(key))
				known.set(key, newRow());
			const r = known.get(key);
			todo.push([r, a]);
			if (r.row === next)
				next = next.nextSibling;
			else
				body.insertBefore(r.row, next);
		}
		for (const [key, r] of known)
			if (!seen.has(key)) {
				r.row.remove();
				known.delete(key);
			}
		fillAll(todo);
	};

	// ---- the rest
	const showAlerts = alerts => {
		const text = JSON.stringify(alerts);
		if (text === last)
			return;
		last = text;
		get('alerts').replaceChildren(...alerts.map(a => {
			const li = make('li', undefined, a.severity);
			li.append(make('b', a.severity), ' ',
			    make('code', a.kind), ' ', make('span', a.text));
			if (a.since)
				li.append(' ', make('small', 'since ' + a.since));
			return li;
		}));
		if (alerts.length === 0)
			get('alerts').append(make('li', 'No alert stands.',
			    'none'));
	};
	const put = (e, text) => {
		if (e.textContent !== text)
			e.textContent = text;
	};
	const show = doc => {
		const begun = performance.now();
		showAlerts(doc.alerts);
		doc.figures.forEach((f, i) => {
			const tile = get('figures').children[i].children;
			put(tile[1], f.value);
			put(tile[2], f.note);
		});
		showRows(doc.agents);
		put(get('note'), doc.note);
		put(get('self'), doc.self);
		put(get('more'), doc.more === 0 ? '' : doc.more +
		    ' more agents are not in this table.');
		document.title = (doc.alerts.length === 0 ? '' :
		    '(' + doc.alerts.length + ') ') + doc.realm + ' - firn';
		document.body.classList.remove('old');
		heard = performance.now();
		// for whoever measures
		performance.clearMeasures('firn-update');
		performance.measure('firn-update', { start: begun, end: heard });
	};
	const late = () => {
		const ms = performance.now() - heard;
		if (ms < LATE_MS)
			return;
		document.body.classList.add('old');
		put(get('note'), 'The agent has not answered for ' +
		    Math.round(ms / 1000) + ' s: this is how it was.');
	};
	const poll = async () => {
		try {
			const reply = await fetch('/agents', { cache: 'no-store',
				signal: AbortSignal.timeout(LATE_MS) });
			if (!document.hidden && reply.ok)
				show(await reply.json());
		} catch (error) {
			// said by late()
		}
		late();
		setTimeout(poll, document.hidden ? LATE_MS : POLL_MS);
	};

	const head = document.querySelector('thead th:nth-child(4)');
	head.replaceChildren(legend(), make('span', head.textContent));
	body.replaceChildren();
	document.addEventListener('visibilitychange', () => {
		heard = performance.now();  // nobody looked
	});
	poll();
})();
