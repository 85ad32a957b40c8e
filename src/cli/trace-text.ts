/** A trace for people: 100 columns, one row for what is sent together, the reason under it. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';

export interface Paint {
  good(text: string): string;
  bad(text: string): string;
  dim(text: string): string;
  strong(text: string): string;
}

const plain: Paint = { good: (t) => t, bad: (t) => t, dim: (t) => t, strong: (t) => t };

const coloured: Paint = {
  good: (text) => `\u001b[32m${text}\u001b[0m`,
  bad: (text) => `\u001b[31m${text}\u001b[0m`,
  dim: (text) => `\u001b[2m${text}\u001b[0m`,
  strong: (text) => `\u001b[1m${text}\u001b[0m`,
};

export function paintFor(colour: boolean): Paint {
  return colour ? coloured : plain;
}

/** Queries of one name that left together, to one server, by one protocol. */
interface Row {
  readonly first: QueryDocument;
  readonly queries: QueryDocument[];
}

const columns = 100;
/** Queries within this time count as sent together. */
const togetherMs = 1;

export function printTrace(document: TraceDocument, colour: boolean, wide: boolean): string {
  const paint = paintFor(colour);
  const lines = [...header(document, paint), ''];
  const rows = rowsOf(document.queries);
  const width = nameWidth(rows, document, wide);
  let number = 0;
  let printed = 0;
  for (const row of rows) {
    lines.push(...stepsBefore(document, printed, printed + 1, paint));
    number++;
    lines.push(...printRow(row, number, document, width, wide, paint));
    printed += row.queries.length;
  }
  lines.push(...stepsBefore(document, printed, Infinity, paint));
  lines.push('', ...footer(document, paint));
  return `${lines.join('\n')}\n`;
}

function header(document: TraceDocument, paint: Paint): string[] {
  const { client, conf, result, totals, live } = document;
  const label = client.version === '' ? client.name : `${client.name} ${client.version}`;
  const kinds = document.families.map((family) => `IPv${family}`).join(' and ');
  const how = `   as ${label} looks it up (${kinds})${live ? ', live' : ', planned: nothing was sent'}`;
  const lines = [`${paint.strong(clip(document.name, columns - how.length))}${how}`];
  const search = conf.search.length === 0 ? 'no search list' : `search ${conf.search.join(' ')}`;
  lines.push(
    ...wrap(
      `nameserver ${conf.servers.join(' ')} · ${search} · ndots:${conf.ndots}`,
      'resolv.conf  ',
    ).map((line) => paint.dim(line)),
  );
  for (const remark of document.remarks) {
    const place = remark.line === 0 ? '' : `line ${remark.line}: `;
    lines.push(...wrap(`${place}${remark.text}`, '          !  '));
  }
  for (const line of document.debug) lines.push(paint.dim(line));
  lines.push('');
  const count = totals.queries === 1 ? '1 query' : `${totals.queries} queries`;
  if (result.ok) {
    const shown = result.addresses.slice(0, 4).join(' ');
    const more = result.addresses.length > 4 ? ` and ${result.addresses.length - 4} more` : '';
    const what =
      result.addresses.length === 0 ? 'done, without an address' : `found ${shown}${more}`;
    lines.push(paint.good(`✓ ${what}`) + ` after ${ms(result.elapsedMs)}, ${count}`);
  } else {
    const code = result.code === null ? '' : ` (${result.code})`;
    lines.push(
      ...wrap(
        `✗ fails${code}: ${result.error ?? ''} after ${ms(result.elapsedMs)}, ${count}`,
        '',
      ).map((line) => paint.bad(line)),
    );
  }
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

/** The name's column: as wide as the names, but no row goes over the edge. */
function nameWidth(rows: readonly Row[], document: TraceDocument, wide: boolean): number {
  const longest = Math.max(20, ...rows.map((row) => row.first.name.length));
  if (wide) return longest;
  const tails = rows.map((row) => visible(rowTail(row, document, wide, plain)));
  return Math.max(24, Math.min(longest, columns - lead - 1 - Math.max(0, ...tails)));
}

/** What stands behind the name: answers, server where there are several, time. */
function rowTail(row: Row, document: TraceDocument, wide: boolean, paint: Paint): string {
  const { first } = row;
  const parts = row.queries.map((query) => `${query.type} ${answerText(query, wide, paint)}`);
  const where: string[] = [];
  if (
    wide ||
    document.conf.servers.length > 1 ||
    document.queries.some((query) => query.server !== first.server)
  )
    where.push(`@${first.server}`);
  if (first.protocol === 'tcp') where.push('TCP');
  if (wide) {
    where.push(
      `port ${row.queries.map((query) => query.port).join('/')}`,
      `id ${row.queries.map((query) => query.id).join('/')}`,
    );
    if (first.edns !== '') where.push(first.edns);
  }
  if (where.length > 0) parts.push(paint.dim(where.join(' ')));
  const took = Math.max(...row.queries.map((query) => query.tookMs ?? 0));
  if (row.queries.some((query) => query.tookMs !== null)) parts.push(paint.dim(ms(took)));
  return parts.join('  ');
}

function printRow(
  row: Row,
  number: number,
  document: TraceDocument,
  width: number,
  wide: boolean,
  paint: Paint,
): string[] {
  const { first } = row;
  const name = clip(first.name, width).padEnd(width);
  const lines = [
    `${String(number).padStart(3)} ${ms(first.atMs).padStart(9)}  ${paint.strong(name)} ${rowTail(row, document, wide, paint)}`,
  ];
  lines.push(...wrap(first.why, '               why   ').map((line) => paint.dim(line)));
  const then = [
    ...new Set(row.queries.map((query) => query.outcome).filter((text) => text !== '')),
  ].join(' ');
  if (then !== '') lines.push(...wrap(then, '               then  '));
  return lines;
}

function answerText(query: QueryDocument, wide: boolean, paint: Paint): string {
  if (query.answer === 'DROP') return paint.bad('no answer');
  if (query.answer === 'CLOSED') return paint.bad('port closed');
  if (query.data.length > 0) {
    // The address is what counts; an alias on the way is shown where there is room, or nothing else.
    const addresses = query.data.filter((data) => !data.startsWith('CNAME '));
    const list = wide || addresses.length === 0 ? query.data : addresses;
    const shown = wide ? list : list.slice(0, 1);
    const more = list.length > shown.length ? ` +${list.length - shown.length}` : '';
    const text = `${wide ? shown.join(' ') : clip(shown.join(' '), 30)}${more}`;
    const empty =
      addresses.length === 0
        ? `${query.answer === 'NXDOMAIN cname' ? 'NXDOMAIN ' : ''}${text}, no address`
        : text;
    return addresses.length === 0 ? paint.bad(empty) : paint.good(text);
  }
  const late = query.tookMs === null ? ' (too late)' : '';
  return `${query.answer}${late}`;
}

function stepsBefore(document: TraceDocument, from: number, to: number, paint: Paint): string[] {
  return document.steps
    .filter((step) => step.afterQuery >= from && step.afterQuery < to)
    .flatMap((step) => wrap(step.text, '  · ').map((line) => paint.dim(line)));
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

function footer(document: TraceDocument, paint: Paint): string[] {
  const { totals, cheaper, results } = document;
  const lines: string[] = [];
  const names = totals.names === 1 ? '1 name' : `${totals.names} different names`;
  const ports = totals.ports === 1 ? '1 source port' : `${totals.ports} source ports`;
  lines.push(
    `TOTAL     ${totals.queries} queries for ${names}, from ${ports}, ${ms(totals.elapsedMs)}`,
  );
  if (results.length > 1) {
    const each = results
      .map((result) => `${result.ok ? '✓' : '✗'} ${ms(result.elapsedMs)}`)
      .join('   ');
    lines.push(...wrap(each, 'LOOKUPS   '));
  }
  cheaper.forEach((one, index) => {
    const better = one.ok ? (one.same ? '' : ' (finds other addresses!)') : ' (fails!)';
    const cost = `${one.queries} ${one.queries === 1 ? 'query' : 'queries'}, ${ms(one.elapsedMs)}${better}`;
    lines.push(
      ...wrap(
        `${one.change}${one.name === document.name ? '' : `: ${one.name}`} → ${paint.good(cost)}`,
        index === 0 ? 'CHEAPER   ' : '          ',
      ),
    );
    if (one.caution !== '')
      lines.push(...wrap(one.caution, '            ').map((line) => paint.dim(line)));
  });
  const seen = new Set(document.queries.flatMap((query) => query.answer.split(/[ (]/).slice(0, 1)));
  const words = Object.entries(glossary).filter(([word]) => seen.has(word));
  words.forEach(([word, meaning], index) => {
    const shown = word === 'DROP' ? meaning : `${word}: ${meaning}`;
    lines.push(paint.dim(`${index === 0 ? 'WORDS     ' : '          '}${shown}`));
  });
  if (document.anyOrder) {
    lines.push(
      paint.dim(
        '          This client leaves the order of queries that are sent together to chance.',
      ),
    );
  }
  return lines;
}

/** Breaks text between words so that each line, with its indent, fits into 100 columns. */
export function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  let empty = true;
  const words = text.split(' ').flatMap((word) => pieces(word, columns - indent.length));
  for (const word of words) {
    if (!empty && visible(line) + 1 + visible(word) > columns) {
      lines.push(line);
      line = ' '.repeat(indent.length);
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  lines.push(line);
  return lines;
}

/** A word that is longer than a line is cut. */
function pieces(word: string, width: number): string[] {
  if (visible(word) <= width) return [word];
  const parts: string[] = [];
  for (let i = 0; i < word.length; i += width) parts.push(word.slice(i, i + width));
  return parts;
}

function visible(text: string): number {
  // eslint-disable-next-line no-control-regex -- the escapes are ours
  return text.replace(/\u001b\[\d+m/g, '').length;
}

export function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

export function ms(value: number): string {
  if (value >= 9995) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0)} ms`;
}

/** Where clients differ: one line each. */
export function printComparison(documents: readonly TraceDocument[], colour: boolean): string {
  const paint = paintFor(colour);
  const lines = [
    `${paint.strong(clip(documents[0]?.name ?? '', 60))}   as ${documents.length} clients look it up`,
    '',
    '    client            queries  ports      time  result',
  ];
  for (const document of documents) {
    const { client, totals, result } = document;
    const label = client.version === '' ? client.name : `${client.name}@${client.version}`;
    const text = result.ok
      ? result.addresses.slice(0, 3).join(' ')
      : `${result.code ?? ''} ${result.error ?? ''}`;
    const mark = result.ok ? paint.good('✓') : paint.bad('✗');
    lines.push(
      `  ${mark} ${label.padEnd(17)} ${String(totals.queries).padStart(7)} ${String(totals.ports).padStart(6)} ${ms(result.elapsedMs).padStart(9)}  ${clip(text, 50)}`,
    );
  }
  const good = documents.filter((document) => document.result.ok);
  if (good.length > 0 && good.length < documents.length) {
    const bad = documents
      .filter((document) => !document.result.ok)
      .map((document) => document.client.name);
    lines.push(
      '',
      ...wrap(
        `${[...new Set(bad)].join(', ')} cannot resolve this name, the others can: ndots trace NAME --client ${bad[0] ?? ''} says why.`,
        'DIFFER    ',
      ),
    );
  } else {
    const counts = new Set(documents.map((document) => document.totals.queries));
    lines.push(
      '',
      counts.size === 1
        ? 'All send the same number of queries.'
        : 'All agree on the result; they differ in what it costs.',
    );
  }
  return `${lines.join('\n')}\n`;
}
