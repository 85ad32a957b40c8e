/**
 * Prints a trace as text that fits the terminal (100 columns by default). Each group of queries gets a row, with the
 * reason below it.
 */
import { printElapsed } from '../../../server/base/elapsed.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { count } from '../../../server/base/counted.ts';
import { clip, packed, pageFor, wrap, type Page, type TextOptions } from '../page.ts';
import { outcomeOf, rowsOf, type TraceRow } from './trace-rows.ts';
import { failure, label } from './trace-outcome.ts';
import { glossaryOf, hint, serversOf } from './trace-words.ts';

export function printTrace(document: TraceDocument, options: TextOptions): string {
  const page = pageFor(options);
  const lines: string[] = [];
  const rows = rowsOf(document);
  const width = nameWidth(rows, page);
  let printed = 0;
  rows.forEach((row, index) => {
    lines.push(...stepsBefore(document, printed, printed + 1, page));
    lines.push(...printRow(row, index + 1, rows[index - 1], document, width, page));
    printed += row.queries.length;
  });
  lines.push(...stepsBefore(document, printed, Infinity, page));
  const steps = lines.length > 0 ? [...lines, ''] : [];
  const all = [...header(document, page), '', ...steps, ...footer(document, page)];
  return `${all.join('\n')}\n`;
}

function header(document: TraceDocument, page: Page): string[] {
  const { conf, result, totals, live } = document;
  const { paint } = page;
  const kinds = document.families.map((family) => `IPv${family}`).join(' and ');
  const how = `   as ${label(document)} looks it up (${kinds})${live ? ', live' : ', planned: nothing was sent'}`;
  const name = paint.strong(clip(document.name, page.columns - 10));
  const lines = wrap(`${name}${how}`, '', page);
  const search = conf.search.length === 0 ? 'no search list' : `search ${conf.search.join(' ')}`;
  const settings = `nameserver ${serversOf(document)} · ${search} · ndots:${conf.ndots}`;
  lines.push(...wrap(settings, 'resolv.conf  ', page).map(paint.dim));
  if (document.from !== null)
    lines.push(...wrap(`of ${document.from}`, '             ', page).map(paint.dim));
  if (document.assumed !== null)
    lines.push(...wrap(document.assumed, '             ', page).map(paint.warn));
  for (const remark of document.remarks) {
    const place = remark.line === 0 ? '' : `line ${remark.line}: `;
    lines.push(...wrap(`${place}${remark.text}`, '          !  ', page));
  }
  for (const line of document.debug) lines.push(paint.dim(line));
  lines.push('');
  const cost = `after ${printElapsed(result.elapsedMs)}, ${count(totals.queries, 'query', 'queries')}`;
  if (result.ok) {
    const shown = result.addresses.slice(0, 4).join(' ');
    const more = result.addresses.length > 4 ? ` and ${result.addresses.length - 4} more` : '';
    const what =
      result.addresses.length === 0 ? 'done, without an address' : `found ${shown}${more}`;
    lines.push(...wrap(`✓ ${what} ${cost}`, '', page).map(paint.good));
  } else lines.push(...wrap(`✗ fails ${cost}: ${failure(result)}`, '', page).map(paint.bad));
  return lines;
}

/** Columns before the name: number and time. */
const lead = 15;
/** Minimum width for the answers after a name: `A NXDOMAIN AAAA NXDOMAIN 20 ms`. */
const answerRoom = 34;

/**
 * Width of the name column, which is as wide as the names if that leaves room for answers. Narrow pages do without it.
 */
function nameWidth(rows: readonly TraceRow[], page: Page): number {
  const longest = Math.max(20, ...rows.map((row) => row.first.name.length));
  if (page.wide) return longest;
  return page.narrow ? 0 : Math.min(longest, page.columns - lead - 1 - answerRoom);
}

/** The part after the name, with an answer per query, the server if there are several, and the time. */
function rowTail(row: TraceRow, document: TraceDocument, room: number, page: Page): string[] {
  const { first, queries } = row;
  const parts = answers(row, room, page);
  const where: string[] = [];
  const several =
    document.conf.servers.length > 1 ||
    document.queries.some((query) => query.server !== first.server);
  if (page.wide || several)
    where.push(`@${page.wide ? printHostPort(first.server, first.serverPort) : first.server}`);
  if (first.protocol === 'tcp') where.push('TCP');
  if (page.wide) {
    const list = (of: (query: QueryDocument) => number): string =>
      [...new Set(queries.map(of))].join('/');
    where.push(
      `port ${list((query) => query.sourcePort ?? query.port)}`,
      `id ${list((query) => (document.live ? query.wireId : query.id))}`,
    );
    if (first.edns !== '') where.push(first.edns);
  }
  const took = queries.map((query) => query.tookMs);
  if (took.every((one) => one !== null)) where.push(printElapsed(Math.max(...took)));
  if (where.length > 0) parts.push(page.paint.dim(where.join(' ')));
  return parts;
}

/** One answer per query, or just one if none was answered. */
function answers({ queries }: TraceRow, room: number, page: Page): string[] {
  const text = (query: QueryDocument): string =>
    answerText(query, room - query.type.length - 1, page);
  const [longest] = queries.toSorted((one, other) => (other.waitedMs ?? 0) - (one.waitedMs ?? 0));
  const lost = queries.every(({ tookMs, answer }) => tookMs === null && answer === longest?.answer);
  if (lost && longest !== undefined && queries.length > 1)
    return [`${queries.map(({ type }) => type).join(', ')} ${text(longest)}`];
  // If one of two queries was lost, the time belongs to the other.
  const mixed = queries.some(({ tookMs }) => tookMs === null);
  return queries.map((query) => {
    const took =
      mixed && query.tookMs !== null ? ` ${page.paint.dim(printElapsed(query.tookMs))}` : '';
    return `${query.type} ${text(query)}${took}`;
  });
}

function printRow(
  row: TraceRow,
  number: number,
  before: TraceRow | undefined,
  document: TraceDocument,
  width: number,
  page: Page,
): string[] {
  const { first } = row;
  const start = `${String(number).padStart(3)} ${printElapsed(first.atMs).padStart(9)}  `;
  const margin = page.narrow ? '    ' : ' '.repeat(lead + width + 1);
  const room = page.wide ? Infinity : page.columns - margin.length;
  const tails = packed(rowTail(row, document, room, page), room);
  const lines =
    first.name.length > width
      ? nameLines(first.name, page).map(
          (part, index) => `${index === 0 ? start : ' '.repeat(lead)}${page.paint.strong(part)}`,
        )
      : [`${start}${page.paint.strong(first.name.padEnd(width))} ${tails.shift() ?? ''}`];
  lines.push(...tails.map((tail) => `${margin}${tail}`));
  const indent = page.narrow ? '    ' : ' '.repeat(lead);
  lines.push(...wrap(first.why, `${indent}why   `, page).map(page.paint.dim));
  const then = outcomeOf(row);
  if (then === '') return lines;
  const again = before !== undefined && outcomeOf(before) === then;
  return [...lines, ...wrap(again ? likewise(then) : then, `${indent}then  `, page)];
}

/** Splits a name that is longer than a line, preferably after a dot. */
function nameLines(name: string, page: Page): string[] {
  const room = page.wide ? Infinity : page.columns - lead;
  const lines: string[] = [];
  let rest = name;
  while (rest.length > room) {
    const dot = rest.lastIndexOf('.', room - 1);
    const cut = dot > 0 ? dot + 1 : room;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut);
  }
  return [...lines, rest];
}

/** Refers to the row above and repeats only its rules. */
function likewise(then: string): string {
  const rules = [...new Set(then.match(/\[[a-z0-9-]+\]/g))];
  return rules.length === 0 ? then : `Likewise. ${rules.join(' ')}`;
}

/** @param room available columns */
function answerText(query: QueryDocument, room: number, { paint, wide }: Page): string {
  if (query.answer === 'DROP') return paint.bad(`no answer${waited(query, ' in ')}`);
  if (query.answer === 'CLOSED') {
    const patient = (query.waitedMs ?? 0) >= patienceMs;
    return paint.bad(`port closed${patient ? waited(query, ', waited ') : ''}`);
  }
  if (query.tookMs === null)
    return `${query.answer} ${paint.bad(`too late${waited(query, ', waited ')}`)}`;
  if (query.data.length > 0) {
    // Addresses matter most. Aliases are shown if there is room or if there are no addresses.
    const addresses = query.data.filter((data) => !data.startsWith('CNAME '));
    const found = addresses.length > 0;
    const list = wide || !found ? query.data : addresses;
    const shown = wide ? list : list.slice(0, 1);
    const more = list.length > shown.length ? ` +${list.length - shown.length}` : '';
    const prefix = !found && query.answer === 'NXDOMAIN cname' ? 'NXDOMAIN ' : '';
    const suffix = `${more}${found ? '' : ', no address'}`;
    const text = `${prefix}${clip(shown.join(' '), Math.max(8, room - prefix.length - suffix.length))}${suffix}`;
    return found ? paint.good(text) : paint.bad(text);
  }
  return query.answer;
}

/**
 * Time in milliseconds. A client that receives ICMP port unreachable fails sooner, while others wait as if the packet
 * had been lost.
 */
const patienceMs = 100;

function waited({ waitedMs }: QueryDocument, before: string): string {
  return waitedMs === null ? '' : `${before}${printElapsed(waitedMs)}`;
}

function stepsBefore(document: TraceDocument, from: number, to: number, page: Page): string[] {
  return document.steps
    .filter((step) => step.afterQuery >= from && step.afterQuery < to)
    .flatMap((step) => wrap(step.text, '  · ', page).map(page.paint.dim));
}

function footer(document: TraceDocument, page: Page): string[] {
  const { totals, cheaper, results, queries } = document;
  const { paint } = page;
  const lines: string[] = [];
  const asked = count(totals.queries, 'query', 'queries');
  const sum =
    totals.queries === 0
      ? `no query was sent, ${printElapsed(totals.elapsedMs)}`
      : `${asked} for ${count(totals.names, 'name', 'different names')}, from ${count(totals.ports, 'source port', 'source ports')}, ${printElapsed(totals.elapsedMs)}`;
  lines.push(...wrap(sum, 'TOTAL     ', page));
  if (results.length > 1) {
    const each = results
      .map((result) => `${result.ok ? '✓' : '✗'} ${printElapsed(result.elapsedMs)}`)
      .join('   ');
    lines.push(...wrap(each, 'LOOKUPS   ', page));
  }
  cheaper.forEach((one, index) => {
    const better = one.ok ? (one.same ? '' : ' (finds other addresses!)') : ' (fails!)';
    const cost = `${count(one.queries, 'query', 'queries')}, ${printElapsed(one.elapsedMs)}${better}`;
    lines.push(
      ...wrap(
        `${one.change}${one.name === document.name ? '' : `: ${one.name}`} → ${paint.good(cost)}`,
        index === 0 ? 'CHEAPER   ' : '          ',
        page,
      ),
    );
    if (one.caution !== '') lines.push(...wrap(one.caution, '            ', page).map(paint.dim));
  });
  if (!document.live && totals.queries > 0 && queries.every((one) => one.answer === 'NXDOMAIN')) {
    const list =
      document.conf.search.length > 0
        ? ''
        : ' There is no search list; use --from POD or --resolv-conf FILE to provide one.';
    lines.push(
      ...wrap(
        `Nothing was sent. Names not covered by --answers, --corefile or --manifests are treated as NXDOMAIN.${list}`,
        'PLAN      ',
        page,
      ),
    );
  }
  const advice = hint(document);
  if (advice !== null) lines.push(...wrap(advice, 'HINT      ', page).map(paint.warn));
  const words = glossaryOf(document);
  words.forEach(([word, meaning], index) => {
    const indent = index === 0 ? 'WORDS     ' : '          ';
    lines.push(...wrap(`${word}: ${meaning}`, indent, page).map(paint.dim));
  });
  if (document.anyOrder && totals.queries > 1) {
    const order = 'This client sends simultaneous queries in random order.';
    lines.push(...wrap(order, 'ORDER     ', page).map(paint.dim));
  }
  return lines;
}
