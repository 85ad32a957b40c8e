/**
 * Renders traces as a single page without scripts for wide screens, phones and paper. It has bars to scale,
 * explanations, and a table that compares clients.
 */
import { printElapsed } from '../../../server/base/elapsed.ts';
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { escape, htmlPage } from '../../../server/base/html.ts';
import { count } from '../../../server/base/counted.ts';
import { compare, labelOf } from './trace-comparison.ts';
import { lastedMs, outcomeOf, rowsOf, type TraceRow } from './trace-rows.ts';
import { label, outcome } from './trace-outcome.ts';
import { answer, glossaryOf, hint, serverOf, settings } from './trace-words.ts';
import { traceStyle } from './trace-style.ts';

/** Renders one or more traces of a name. Empty if there are none. */
export function html(documents: readonly TraceDocument[]): string {
  const [first] = documents;
  if (first === undefined) return '';
  const many = documents.length > 1;
  const title = `${first.name} ${many ? `with ${documents.length} clients` : `with ${label(first)}`}`;
  const sections = documents.map((document) => section(document, many));
  return htmlPage(
    title,
    traceStyle,
    `<h1>${escape(first.name)}</h1>
<p class="dim">${escape(how(first))}</p>
${many ? comparison(documents) : ''}
${sections.join('\n')}`,
  );
}

function how({ live, startedAt, from }: TraceDocument): string {
  const when = startedAt === null ? '' : `, ${startedAt.slice(0, 19).replace('T', ' ')} UTC`;
  const whose = from === null ? '' : `; settings of ${from}`;
  return `${live ? 'Live' : 'Planned: nothing was sent'}${when}${whose}`;
}

function section(document: TraceDocument, many: boolean): string {
  const { result, totals, queries, steps, remarks, cheaper } = document;
  const kinds = document.families.map((family) => `IPv${family}`).join(' and ');
  const found = result.ok ? `✓ found ${outcome(document)}` : `✗ ${outcome(document)}`;
  const cost = `after ${printElapsed(result.elapsedMs)}, ${count(totals.queries, 'query', 'queries')} from ${count(totals.ports, 'source port', 'source ports')}`;
  const notes = [
    ...(document.assumed === null ? [] : [document.assumed]),
    ...remarks.map(({ line, text }) => `resolv.conf${line === 0 ? '' : `, line ${line}`}: ${text}`),
    ...steps.map(({ text }) => text),
  ];
  const advice = hint(document);
  return [
    `<section id="${anchor(document)}">`,
    `<h2>${escape(label(document))} <small>${escape(kinds)}</small></h2>`,
    `<p class="dim">${escape(settings(document))}</p>`,
    `<p class="${result.ok ? 'good' : 'bad'}"><strong>${escape(found)}</strong> ${escape(cost)}</p>`,
    advice === null ? '' : `<p class="warn">${escape(advice)}</p>`,
    notes.length === 0
      ? ''
      : `<ul>${notes.map((text) => `<li>${escape(text)}</li>`).join('')}</ul>`,
    queries.length === 0 ? '' : waterfall(document),
    cheaper.length === 0 ? '' : cheaperTable(document),
    glossary(document),
    many ? '<p class="dim"><a href="#top">↑ all clients</a></p>' : '',
    '</section>',
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** Rows with bars on a common time scale. */
function waterfall(document: TraceDocument): string {
  const rows = rowsOf(document);
  const ends = rows.map((row) => row.first.atMs + lastedMs(row));
  const totalMs = Math.max(0.1, document.totals.elapsedMs, ...ends);
  const stepMs = tick(totalMs);
  const ticks = Array.from(
    { length: Math.floor(totalMs / stepMs) + 1 },
    (_, index) => index * stepMs,
  );
  const axis = ticks
    .map((at) => {
      // The last label would overflow the edge.
      const kind = at > 0.9 * totalMs ? ' class="end"' : '';
      return `<span${kind} style="left:${percent(at, totalMs)}">${escape(mark(at))}</span>`;
    })
    .join('');
  const items = rows.map((row, index) => item(row, index + 1, document, totalMs));
  return `<div class="rows" style="--tick:${percent(stepMs, totalMs)}">
<div class="row head" aria-hidden="true"><div></div><div class="axis">${axis}</div><div></div></div>
<ol>
${items.join('\n')}
</ol>
</div>`;
}

function item(row: TraceRow, number: number, document: TraceDocument, totalMs: number): string {
  const { first, queries } = row;
  const bars = queries.map((query) => bar(query, totalMs)).join('');
  const several = document.conf.servers.length > 1 || first.serverPort !== 53;
  const where = [
    several ? `@${serverOf(first)}` : '',
    first.protocol === 'tcp' ? 'TCP' : '',
  ].filter((part) => part !== '');
  const answers = queries.map(
    (query) =>
      `<span class="${kindOf(query)}">${escape(`${query.type} ${answerText(query)}`)}</span>`,
  );
  const then = outcomeOf(row);
  return `<li class="row"><div class="name"><span class="dim">${number}</span> <code>${breakable(first.name)}</code> <small class="dim">${escape([`at ${printElapsed(first.atMs)}`, ...where].join(' '))}</small></div><div class="lane">${bars}</div><div class="answers">${answers.join(' ')}</div><div class="text"><p><b>why</b> ${escape(first.why)}</p>${then === '' ? '' : `<p><b>then</b> ${escape(then)}</p>`}</div></li>`;
}

function bar(query: QueryDocument, totalMs: number): string {
  const lasted = query.tookMs ?? query.waitedMs ?? 0;
  return `<span class="bar ${kindOf(query)}" style="left:${percent(query.atMs, totalMs)};width:${percent(lasted, totalMs)}"></span>`;
}

/** The quality of an answer, expressed by colour, pattern and words. */
function kindOf(query: QueryDocument): 'good' | 'none' | 'bad' {
  if (query.tookMs === null) return 'bad';
  if (query.data.some((data) => !data.startsWith('CNAME '))) return 'good';
  return /^(NXDOMAIN|NODATA)/.test(query.answer) ? 'none' : 'bad';
}

function answerText(query: QueryDocument): string {
  const { tookMs, waitedMs } = query;
  if (tookMs !== null) return `${answer(query)}, ${printElapsed(tookMs)}`;
  const waited = waitedMs === null ? '' : printElapsed(waitedMs);
  if (query.answer === 'DROP') return `no answer in ${waited}`;
  return query.answer === 'CLOSED' ? 'port closed' : `${query.answer}, too late; waited ${waited}`;
}

function cheaperTable({ cheaper, name }: TraceDocument): string {
  const rows = cheaper.map((one) => {
    const better = one.ok ? (one.same ? '' : ' (finds other addresses!)') : ' (fails!)';
    const what = one.name === name ? '' : ` <code>${breakable(one.name)}</code>`;
    return `<tr><td>${escape(one.change)}${what}</td><td>${one.queries}</td><td class="time">${escape(printElapsed(one.elapsedMs))}${escape(better)}</td><td>${escape(one.caution)}</td></tr>`;
  });
  return `<h3>Cheaper</h3>
<div class="scroll"><table class="cards">
<tr><th>change</th><th>queries</th><th>time</th><th>but</th></tr>
${rows.join('\n')}
</table></div>`;
}

function glossary(document: TraceDocument): string {
  const words = glossaryOf(document);
  if (words.length === 0) return '';
  const items = words.map(([word, meaning]) => `<b>${escape(word)}</b> ${escape(meaning)}.`);
  return `<p class="dim">${items.join(' ')}</p>`;
}

function comparison(documents: readonly TraceDocument[]): string {
  const { differences, verdict } = compare(documents);
  const longest = Math.max(0.1, ...documents.map(({ result }) => result.elapsedMs));
  const worst = differences[0]?.matters ?? (documents[0]?.result.ok === true ? 'no' : 'yes');
  const rows = documents.map((document) => {
    const { result, totals } = document;
    return `<tr><td class="${result.ok ? 'good' : 'bad'}">${result.ok ? '✓' : '✗'}</td><td class="client"><a href="#${anchor(document)}">${escape(labelOf(document))}</a></td><td>${totals.queries}</td><td class="wide">${totals.ports}</td><td class="time">${escape(printElapsed(result.elapsedMs))}<span class="meter" style="width:${percent(result.elapsedMs, longest)}"></span></td><td>${escape(outcome(document))}</td></tr>`;
  });
  const items = differences.map(({ matters, clients, text }) => {
    const kind = matters === 'yes' ? 'bad' : matters === 'maybe' ? 'warn' : 'dim';
    return `<li class="${kind}">${clients === '' ? '' : `<b>${escape(clients)}</b>: `}${escape(text)}</li>`;
  });
  return `<section id="top">
<h2>${documents.length} clients</h2>
<p class="${worst === 'yes' ? 'bad' : worst === 'maybe' ? 'warn' : 'good'}"><strong>${escape(verdict)}</strong></p>
${items.length === 0 ? '' : `<ul>${items.join('')}</ul>`}
<div class="scroll"><table>
<tr><th></th><th>client</th><th>queries</th><th class="wide">ports</th><th>time</th><th>result</th></tr>
${rows.join('\n')}
</table></div>
</section>`;
}

function anchor(document: TraceDocument): string {
  return labelOf(document).replaceAll(/[^a-z0-9.]+/gi, '-');
}

/** Distance between scale marks, which is 1, 2 or 5 times a power of ten and gives three to six marks. */
function tick(totalMs: number): number {
  const rough = totalMs / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  return step * power;
}

/** `0`, `50 ms`, `2 s`. */
function mark(value: number): string {
  if (value === 0) return '0';
  const [number, unit] = value >= 1000 ? [value / 1000, 's'] : [value, 'ms'];
  return `${Number(number.toFixed(2))} ${unit}`;
}

function percent(part: number, whole: number): string {
  return `${Math.round((10_000 * part) / whole) / 100}%`;
}

/** Lets a long name wrap after a dot. */
function breakable(name: string): string {
  return escape(name).replaceAll('.', '.<wbr>');
}
