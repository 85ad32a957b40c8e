/** Compares several clients, one line each, first by results and then by cost. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import type { TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { count } from '../../../server/base/counted.ts';
import { clip, pageFor, wrap, type Page, type TextOptions } from '../page.ts';
import { failure } from './trace-outcome.ts';

/** Formats several clients for terminal output as a table, their differences, and the verdict. */
export function printComparison(documents: readonly TraceDocument[], options: TextOptions): string {
  const page = pageFor(options);
  const { paint } = page;
  const how = `   as ${documents.length} clients look it up${documents[0]?.live === true ? ', live' : ', planned: nothing was sent'}`;
  const name = paint.strong(clip(documents[0]?.name ?? '', page.columns - 10));
  const lines = [...wrap(`${name}${how}`, '', page), '', ...table(documents, page), ''];
  const { differences, verdict } = compare(documents);
  for (const { matters, clients, text } of differences) {
    const mark = matters === 'yes' ? paint.bad('✗') : matters === 'maybe' ? paint.warn('!') : '·';
    lines.push(...wrap(`${clients === '' ? '' : `${clients}: `}${text}`, `  ${mark} `, page));
  }
  if (differences.length > 0) lines.push('');
  lines.push(...wrap(verdict, 'VERDICT   ', page));
  return `${lines.join('\n')}\n`;
}

/** Minimum width of the result column. */
const leastResult = 14;

function table(documents: readonly TraceDocument[], page: Page): string[] {
  const { paint, narrow } = page;
  const widest = Math.max(6, ...documents.map((document) => labelOf(document).length));
  const [queries, ports, time] = narrow ? [8, 0, 9] : [9, 7, 10];
  const before = 4 + widest + queries + ports + time + 2;
  const head = [
    `    ${'client'.padEnd(widest)}${'queries'.padStart(queries)}`,
    narrow ? '' : 'ports'.padStart(ports),
    'time'.padStart(time),
    page.columns - before < leastResult ? '' : '  result',
  ].join('');
  const rows = documents.map((document) => {
    const { totals, result } = document;
    const text = result.ok ? result.addresses.join(' ') || 'no address' : failure(result);
    const cells = [
      `  ${result.ok ? paint.good('✓') : paint.bad('✗')} ${labelOf(document).padEnd(widest)}`,
      String(totals.queries).padStart(queries),
      narrow ? '' : String(totals.ports).padStart(ports),
      printElapsed(result.elapsedMs).padStart(time),
    ].join('');
    const room = page.columns - before;
    // A result that does not fit next to the other columns is printed below them.
    if (room < leastResult) return `${cells}\n      ${clip(text, page.columns - 6)}`;
    return `${cells}  ${clip(text, room)}`;
  });
  return [head, ...rows];
}

export interface ClientDifference {
  /** `yes` if a program fails, `maybe` if that depends on the program, `no` if it only costs more. */
  readonly matters: 'yes' | 'maybe' | 'no';
  /** Labels of the clients that differ. Empty if the text already mentions them. */
  readonly clients: string;
  readonly text: string;
}

/** If a client is this many milliseconds slower than the fastest one, it is waiting for something. */
const slowMs = 1000;

/** Compares whether clients find the name, and what they get, how long it takes and how much it costs. */
export function compare(documents: readonly TraceDocument[]): {
  readonly differences: readonly ClientDifference[];
  readonly verdict: string;
} {
  const bad = documents.filter(({ result }) => !result.ok);
  const good = documents.filter(({ result }) => result.ok);
  const queries = documents.map(({ totals }) => totals.queries);
  const [least, most] = [Math.min(...queries), Math.max(...queries)];
  const cost =
    least === most
      ? `All send ${count(most, 'query', 'queries')}.`
      : `They send between ${least} and ${most} queries.`;
  const differences: ClientDifference[] = [];
  if (good.length > 0)
    for (const [reason, group] of grouped(bad, reasonOf))
      differences.push({
        matters: 'yes',
        clients: labels(group),
        text: `cannot resolve it: ${reason}`,
      });
  const found = grouped(good, ({ result }) => [...result.addresses].toSorted().join(' '));
  const [usual] = [...found].toSorted(([, one], [, other]) => other.length - one.length);
  for (const [addresses, group] of found) {
    if (addresses === usual?.[0]) continue;
    const others = usual?.[0] === '' ? 'nothing' : (usual?.[0] ?? 'nothing');
    const text = `finds ${addresses === '' ? 'no address' : clip(addresses, 80)}, the others ${clip(others, 80)}.`;
    differences.push({ matters: 'maybe', clients: labels(group), text });
  }
  const fastest = Math.min(...documents.map(({ result }) => result.elapsedMs));
  const slow = documents.filter(({ result }) => result.elapsedMs - fastest >= slowMs);
  if (slow.length > 0) {
    const waits = [...grouped(slow, ({ result }) => printElapsed(result.elapsedMs))].map(
      ([time, group]) => `${labels(group)} ${time}`,
    );
    const text = `wait: ${waits.join('; ')}; the fastest has its result after ${printElapsed(fastest)}.`;
    differences.push({ matters: 'maybe', clients: '', text });
  }
  if (least !== most) differences.push({ matters: 'no', clients: '', text: costText(documents) });
  return { differences, verdict: `${verdictOf(bad, good, found.size)} ${cost}` };
}

function verdictOf(
  bad: readonly TraceDocument[],
  good: readonly TraceDocument[],
  ways: number,
): string {
  if (good.length === 0) return 'No client resolves this name.';
  if (bad.length > 0) {
    const all = bad.length + good.length;
    return `${bad.length} of ${all} clients cannot resolve this name, hence exit code 1.`;
  }
  return ways > 1 ? 'All resolve this name, but not to the same addresses.' : 'All find the same.';
}

/** Lists the clients with the fewest and the most queries, and compares how many ports they use. */
function costText(documents: readonly TraceDocument[]): string {
  const by = [...grouped(documents, ({ totals }) => String(totals.queries))].toSorted(
    ([one], [other]) => Number(one) - Number(other),
  );
  return by
    .map(([queries, group]) => `${count(Number(queries), 'query', 'queries')}: ${labels(group, 4)}`)
    .join('; ')
    .concat('.');
}

/** Why it failed, according to the last replies, or the steps without a query, or else the client's message. */
function reasonOf({ queries, steps, result }: TraceDocument): string {
  const last = queries.findLast(({ outcome }) => outcome !== '') ?? queries.at(-1);
  if (last === undefined) return steps.at(-1)?.text ?? failure(result);
  return `${last.name} ${last.type} ${last.answer}. ${last.outcome}`.trim();
}

function grouped<K>(
  documents: readonly TraceDocument[],
  key: (document: TraceDocument) => K,
): ReadonlyMap<K, readonly TraceDocument[]> {
  return Map.groupBy(documents, key);
}

/** @param most maximum number of labels to list */
function labels(documents: readonly TraceDocument[], most = 20): string {
  const all = documents.map(labelOf);
  const more = all.length > most ? ` and ${all.length - most} more` : '';
  return `${all.slice(0, most).join(', ')}${more}`;
}

/** `glibc@2.36`, or just the name if the client has no versions. */
export function labelOf({ client }: TraceDocument): string {
  return client.version === '' ? client.name : `${client.name}@${client.version}`;
}
