/** A trace for people, as wide as the terminal (100 columns without one): one row for what is sent together, the reason under it. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';
import { clip, count, ms, packed, pageFor, wrap, type Page, type TextOptions } from './page.ts';
import { failure } from './trace-comparison.ts';

/** Queries of one name that left together, to one server, by one protocol. */
interface Row {
  readonly first: QueryDocument;
  readonly queries: QueryDocument[];
}

/** Queries within this time count as sent together. */
const togetherMs = 1;

export function printTrace(document: TraceDocument, options: TextOptions): string {
  const page = pageFor(options);
  const lines = [...header(document, page), ''];
  const rows = rowsOf(document.queries);
  const width = nameWidth(rows, page);
  let printed = 0;
  rows.forEach((row, index) => {
    lines.push(...stepsBefore(document, printed, printed + 1, page));
    lines.push(...printRow(row, index + 1, rows[index - 1], document, width, page));
    printed += row.queries.length;
  });
  lines.push(...stepsBefore(document, printed, Infinity, page));
  lines.push('', ...footer(document, page));
  return `${lines.join('\n')}\n`;
}

function header(document: TraceDocument, page: Page): string[] {
  const { client, conf, result, totals, live } = document;
  const { paint } = page;
  const label = client.version === '' ? client.name : `${client.name} ${client.version}`;
  const kinds = document.families.map((family) => `IPv${family}`).join(' and ');
  const how = `   as ${label} looks it up (${kinds})${live ? ', live' : ', planned: nothing was sent'}`;
  const name = paint.strong(clip(document.name, page.columns - 10));
  const lines = wrap(`${name}${how}`, '', page);
  const search = conf.search.length === 0 ? 'no search list' : `search ${conf.search.join(' ')}`;
  lines.push(
    ...wrap(
      `nameserver ${conf.servers.join(' ')} · ${search} · ndots:${conf.ndots}`,
      'resolv.conf  ',
      page,
    ).map((line) => paint.dim(line)),
  );
  for (const remark of document.remarks) {
    const place = remark.line === 0 ? '' : `line ${remark.line}: `;
    lines.push(...wrap(`${place}${remark.text}`, '          !  ', page));
  }
  for (const line of document.debug) lines.push(paint.dim(line));
  lines.push('');
  const cost = `after ${ms(result.elapsedMs)}, ${count(totals.queries, 'query', 'queries')}`;
  if (result.ok) {
    const shown = result.addresses.slice(0, 4).join(' ');
    const more = result.addresses.length > 4 ? ` and ${result.addresses.length - 4} more` : '';
    const what =
      result.addresses.length === 0 ? 'done, without an address' : `found ${shown}${more}`;
    lines.push(...wrap(`✓ ${what} ${cost}`, '', page).map((line) => paint.good(line)));
  } else
    lines.push(
      ...wrap(`✗ fails ${cost}: ${failure(result)}`, '', page).map((line) => paint.bad(line)),
    );
  return lines;
}

function rowsOf(queries: readonly QueryDocument[]): Row[] {
  const rows: Row[] = [];
  for (const query of queries) {
    const last = rows.at(-1);
    const joins =
      last !== undefined &&
      last.first.name.toLowerCase() === query.name.toLowerCase() &&
      last.first.server === query.server &&
      last.first.protocol === query.protocol &&
      last.queries.every((one) => one.type !== query.type) &&
      query.atMs - last.first.atMs <= togetherMs;
    if (joins) last.queries.push(query);
    else rows.push({ first: query, queries: [query] });
  }
  return rows;
}

/** Columns before the name: number, time. */
const lead = 15;
/** Room that answers get behind the name, at least: `A NXDOMAIN  AAAA NXDOMAIN  20 ms`. */
const answerRoom = 34;

/** The name's column: as wide as the names, as far as answers find room behind it. */
function nameWidth(rows: readonly Row[], page: Page): number {
  const longest = Math.max(20, ...rows.map((row) => row.first.name.length));
  return page.wide ? longest : Math.min(longest, page.columns - lead - 1 - answerRoom);
}

/** What stands behind the name: an answer for each query, the server where there are several, the time. */
function rowTail(row: Row, document: TraceDocument, room: number, page: Page): string[] {
  const { first, queries } = row;
  const parts = queries.map(
    (query) => `${query.type} ${answerText(query, room - query.type.length - 1, page)}`,
  );
  const where: string[] = [];
  const several =
    document.conf.servers.length > 1 ||
    document.queries.some((query) => query.server !== first.server);
  if (page.wide || several) where.push(`@${first.server}`);
  if (first.protocol === 'tcp') where.push('TCP');
  if (page.wide) {
    where.push(
      `port ${queries.map((query) => query.port).join('/')}`,
      `id ${queries.map((query) => query.id).join('/')}`,
    );
    if (first.edns !== '') where.push(first.edns);
  }
  const took = Math.max(...queries.map((query) => query.tookMs ?? 0));
  if (queries.some((query) => query.tookMs !== null)) where.push(ms(took));
  if (where.length > 0) parts.push(page.paint.dim(where.join(' ')));
  return parts;
}

function printRow(
  row: Row,
  number: number,
  before: Row | undefined,
  document: TraceDocument,
  width: number,
  page: Page,
): string[] {
  const { first } = row;
  const name = page.wide ? first.name : clip(first.name, page.columns - lead);
  const start = `${String(number).padStart(3)} ${ms(first.atMs).padStart(9)}  `;
  const room = page.wide ? Infinity : page.columns - lead - width - 1;
  const tails = packed(rowTail(row, document, room, page), room);
  const margin = ' '.repeat(lead + width + 1);
  const lines =
    name.length > width
      ? [`${start}${page.paint.strong(name)}`, `${margin}${tails.shift() ?? ''}`]
      : [`${start}${page.paint.strong(name.padEnd(width))} ${tails.shift() ?? ''}`];
  lines.push(...tails.map((tail) => `${margin}${tail}`));
  lines.push(...wrap(first.why, '               why   ', page).map((line) => page.paint.dim(line)));
  const then = outcomeOf(row);
  if (then === '') return lines;
  const again = before !== undefined && outcomeOf(before) === then;
  return [...lines, ...wrap(again ? likewise(then) : then, '               then  ', page)];
}

function outcomeOf(row: Row): string {
  return [...new Set(row.queries.map((query) => query.outcome).filter((text) => text !== ''))].join(
    ' ',
  );
}

/** What was said one row above is not said again, but for its rules. */
function likewise(then: string): string {
  const rules = [...new Set(then.match(/\[[a-z0-9-]+\]/g))];
  return rules.length === 0 ? then : `Likewise. ${rules.join(' ')}`;
}

/** @param room columns that it may take */
function answerText(query: QueryDocument, room: number, { paint, wide }: Page): string {
  if (query.answer === 'DROP') return paint.bad('no answer');
  if (query.answer === 'CLOSED') return paint.bad('port closed');
  if (query.data.length > 0) {
    // The address is what counts; an alias on the way is shown where there is room, or nothing else.
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
  const late = query.tookMs === null ? ' (too late)' : '';
  return `${query.answer}${late}`;
}

function stepsBefore(document: TraceDocument, from: number, to: number, page: Page): string[] {
  return document.steps
    .filter((step) => step.afterQuery >= from && step.afterQuery < to)
    .flatMap((step) => wrap(step.text, '  · ', page).map((line) => page.paint.dim(line)));
}

/** Words of the answers that appear, in one line each, for those who do not meet them every day. */
const glossary: Readonly<Record<string, string>> = {
  NXDOMAIN: 'the server says that the name does not exist',
  NODATA: 'the name exists, but has no address of that kind',
  SERVFAIL: 'the server could not find out',
  REFUSED: 'the server does not want to answer this client',
  DROP: '“no answer”: nothing came back before the client gave up waiting',
  TC: 'the answer did not fit into one packet',
};

function footer(document: TraceDocument, page: Page): string[] {
  const { totals, cheaper, results, queries } = document;
  const { paint } = page;
  const lines: string[] = [];
  const asked = count(totals.queries, 'query', 'queries');
  lines.push(
    totals.queries === 0
      ? `TOTAL     no query was sent, ${ms(totals.elapsedMs)}`
      : `TOTAL     ${asked} for ${count(totals.names, 'name', 'different names')}, from ${count(totals.ports, 'source port', 'source ports')}, ${ms(totals.elapsedMs)}`,
  );
  if (results.length > 1) {
    const each = results
      .map((result) => `${result.ok ? '✓' : '✗'} ${ms(result.elapsedMs)}`)
      .join('   ');
    lines.push(...wrap(each, 'LOOKUPS   ', page));
  }
  cheaper.forEach((one, index) => {
    const better = one.ok ? (one.same ? '' : ' (finds other addresses!)') : ' (fails!)';
    const cost = `${count(one.queries, 'query', 'queries')}, ${ms(one.elapsedMs)}${better}`;
    lines.push(
      ...wrap(
        `${one.change}${one.name === document.name ? '' : `: ${one.name}`} → ${paint.good(cost)}`,
        index === 0 ? 'CHEAPER   ' : '          ',
        page,
      ),
    );
    if (one.caution !== '')
      lines.push(...wrap(one.caution, '            ', page).map((line) => paint.dim(line)));
  });
  if (!document.live && totals.queries > 0 && queries.every((one) => one.answer === 'NXDOMAIN'))
    lines.push(
      ...wrap(
        'Every name was taken for one that does not exist. --answers FILE or --corefile FILE say what servers know.',
        'PLAN      ',
        page,
      ),
    );
  const seen = new Set(
    queries
      .filter((query) => query.data.length === 0)
      .flatMap((query) => query.answer.split(/[ (]/).slice(0, 1)),
  );
  const words = Object.entries(glossary).filter(([word]) => seen.has(word));
  words.forEach(([word, meaning], index) => {
    const shown = word === 'DROP' ? meaning : `${word}: ${meaning}`;
    lines.push(
      ...wrap(shown, index === 0 ? 'WORDS     ' : '          ', page).map((line) =>
        paint.dim(line),
      ),
    );
  });
  if (document.anyOrder && totals.queries > 1) {
    lines.push(
      ...wrap(
        'This client leaves the order of queries that are sent together to chance.',
        'ORDER     ',
        page,
      ).map((line) => paint.dim(line)),
    );
  }
  return lines;
}
