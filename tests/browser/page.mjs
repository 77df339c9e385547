// SPDX-License-Identifier: Apache-2.0
// A browser in the hands of a test: reads one JSON object a line from standard
// input, such as {"do": "open", "url": "http://..."}, and answers each with
// one line, {"ok": ...} or {"error": "..."}.  It judges nothing.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic',
	'--no-first-run', '--disable-background-networking',
	'--disable-component-update', '--disable-sync',
	'--disable-dev-shm-usage'];
const axe = readFileSync(createRequire(import.meta.url)
	.resolve('axe-core/axe.min.js'), 'utf8');
const [program, profile] = process.argv.slice(2);
let context, page, told;

// What a page must not do, and what it asked for.
const watch = p => {
	p.on('console', m => told.console.push(m.type() + ': ' + m.text()));
	p.on('pageerror', e => told.errors.push(String(e)));
	p.on('requestfailed', r => told.failed.push(r.url() + ' ' +
	    r.failure()?.errorText));
	p.on('request', r => told.requests.push(r.url()));
	p.on('response', r => {
		if (r.status() !== 200)
			told.failed.push(r.url() + ' ' + r.status());
	});
};

// The table as it stands: texts, and the bars by their figures.
const look = () => page.evaluate(() => {
	const rows = [...document.querySelectorAll('#rows tr')].map(r => ({
		level: r.className,
		cells: [...r.cells].map(c => c.textContent.trim()),
		bar: [...r.querySelectorAll('rect')].map(b => ['x', 'width']
		    .map(k => Number(b.getAttribute(k)))),
		lines: [...r.querySelectorAll('line')].map(l => [l.getAttribute(
		    'class'), Number(l.getAttribute('x1'))]),
		back: getComputedStyle(r.cells[0]).backgroundColor,
	}));
	return { rows, title: document.title, loads: performance.timeOrigin,
		old: document.body.classList.contains('old'),
		note: document.getElementById('note').textContent,
		more: document.getElementById('more').textContent,
		alerts: [...document.querySelectorAll('#alerts li')].map(
		    l => [l.className, l.textContent.trim()]),
		figures: [...document.querySelectorAll('#figures > div')].map(
		    d => [...d.children].map(c => c.textContent)),
		font: getComputedStyle(document.body).fontFamily,
		scroll: document.documentElement.scrollWidth -
		    document.documentElement.clientWidth };
});

// Every figure of every agent is another one in each answer.
const shake = async route => {
	const answer = await route.fetch();
	const doc = await answer.json();
	for (const a of doc.agents) {
		a.skew_us = Math.round((Math.random() - 0.5) * 40000);
		a.left_ms = 57000 + Math.random() * 3000;
		a.ids_per_s = Math.round(Math.random() * 5000);
		a.age_ms = Math.random() * 3000;
	}
	// and three others are in trouble, wherever they stood
	for (let i = 0; i < 3; i++) {
		const at = Math.floor(Math.random() * doc.agents.length);
		const [a] = doc.agents.splice(at, 1);
		doc.agents.unshift({ ...a, level: 'bad', state: 'refusing',
			reason: 'clock_skew', skew_us: 11000000 });
	}
	await route.fulfill({ response: answer, json: doc });
};

// Durations of updates, and of the frames meanwhile.
const measure = updates => page.evaluate(async n => {
	const frames = [];
	let before = performance.now(), on = true;
	const frame = () => {
		const now = performance.now();
		frames.push(now - before);
		before = now;
		if (on)
			requestAnimationFrame(frame);
	};
	const seen = [];
	new PerformanceObserver(list => seen.push(...list.getEntries()))
	    .observe({ type: 'measure' });
	requestAnimationFrame(frame);
	while (seen.length < n)
		await new Promise(done => setTimeout(done, 50));
	on = false;
	return { frames, updates: seen.map(e => e.duration) };
}, updates);

const verbs = {
	async open({ url, dark, script = true, width = 1280, height = 800 }) {
		await context?.close();
		told = { console: [], errors: [], failed: [], requests: [] };
		context = await chromium.launchPersistentContext(
			profile + '-' + Date.now(), {
				executablePath: program, headless: true,
				args: FLAGS, javaScriptEnabled: script,
				colorScheme: dark ? 'dark' : 'light',
				viewport: { width, height } });
		context.setDefaultTimeout(90000);
		page = context.pages()[0];
		watch(page);
		const reply = await page.goto(url);
		return { policy: reply.headers()['content-security-policy'] };
	},
	async html() {  // works without scripts in the page, too
		return (await page.content());
	},
	async texts({ at }) {
		return await page.locator(at).allInnerTexts();
	},
	look,
	async axe({ dark }) {
		await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
		await page.evaluate(axe);
		const found = await page.evaluate(() => axe.run(document, {
			resultTypes: ['violations'] }));
		return { rules: found.passes.length,
			violations: found.violations.map(v => v.id + ': ' +
			    v.nodes.map(n => n.html + ' ' +
				n.failureSummary).join('; ')),
			unsure: found.incomplete.map(v => v.id + ': ' +
			    v.nodes.map(n => n.html + ' ' + n.any.map(
				a => a.message)).join('; ')) };
	},
	async inject() {  // what the policy must stop
		return await page.evaluate(() => new Promise(done => {
			const stopped = [];
			document.addEventListener('securitypolicyviolation',
				e => stopped.push(e.effectiveDirective));
			const s = document.createElement('div');
			try {
				s.innerHTML = '<b onclick="x()">x</b>';
			} catch (e) {
				stopped.push('innerHTML');
			}
			const script = document.createElement('style');
			script.textContent = 'body { color: lime }';
			document.head.append(script);
			fetch('http://127.0.0.2:9/x').catch(() => {});
			const image = new Image();
			image.src = '/metrics';
			document.body.append(image);
			setTimeout(() => done(stopped), 500);
		}));
	},
	async shake() {
		await page.route('**/agents', shake);
	},
	async measure({ updates }) {
		return await measure(updates);
	},
	async shot({ path, dark, width = 1280, height = 800, whole = false }) {
		await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
		await page.setViewportSize({ width, height });
		await page.screenshot({ path, fullPage: whole });
	},
	async told() {
		return told;
	},
	async close() {
		await context?.close();
		context = undefined;
	},
};

for await (const line of createInterface({ input: process.stdin })) {
	const order = JSON.parse(line);
	let answer;
	try {
		answer = { ok: await verbs[order.do](order) ?? null };
	} catch (error) {
		answer = { error: String(error.stack ?? error) };
	}
	process.stdout.write(JSON.stringify(answer) + '\n');
}
await context?.close();
process.exit(0);
