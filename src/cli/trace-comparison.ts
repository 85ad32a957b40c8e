/** Several clients, one line each, and in what they differ. */
import type { ResultDocument, TraceDocument } from '../resolver/report.ts';
import { clip, count, ms, pageFor, wrap, type TextOptions } from './page.ts';

/** Where clients differ: one line each. */
export function printComparison(documents: readonly TraceDocument[], options: TextOptions): string {
  const page = pageFor(options);
  const { paint } = page;
  const how = `   as ${documents.length} clients look it up${documents[0]?.live === true ? ', live' : ', planned: nothing was sent'}`;
  const name = paint.strong(clip(documents[0]?.name ?? '', page.columns - 10));
  const lines = [
    ...wrap(`${name}${how}`, '', page),
    '',
    '    client            queries  ports      time  result',
  ];
  for (const document of documents) {
    const { totals, result } = document;
    const text = result.ok ? result.addresses.join(' ') || 'no address' : failure(result);
    const mark = result.ok ? paint.good('✓') : paint.bad('✗');
    lines.push(
      `  ${mark} ${labelOf(document).padEnd(17)} ${String(totals.queries).padStart(7)} ${String(totals.ports).padStart(6)} ${ms(result.elapsedMs).padStart(9)}  ${clip(text, page.columns - 49)}`,
    );
  }
  lines.push('', ...wrap(verdict(documents), 'VERDICT   ', page));
  return `${lines.join('\n')}\n`;
}

function labelOf({ client }: TraceDocument): string {
  return client.version === '' ? client.name : `${client.name}@${client.version}`;
}

/** In what the clients differ: in whether they find it, in what they find, in what it costs. */
function verdict(documents: readonly TraceDocument[]): string {
  const bad = documents.filter((document) => !document.result.ok).map(labelOf);
  const [least, most] = [Math.min, Math.max].map((of) =>
    of(...documents.map((document) => document.totals.queries)),
  );
  const cost =
    least === most
      ? `All send ${count(most ?? 0, 'query', 'queries')}.`
      : `They send from ${least ?? 0} to ${most ?? 0} queries.`;
  if (bad.length === documents.length) return `No client resolves this name. ${cost}`;
  if (bad.length > 0)
    return `${bad.join(', ')} cannot resolve this name, the others can: --client ${bad[0] ?? ''} alone says why.`;
  const found = new Set(
    documents.map((document) => [...document.result.addresses].toSorted().join(' ')),
  );
  return found.size > 1
    ? `All resolve this name, but not to the same addresses. ${cost}`
    : `All find the same. ${cost}`;
}

/** What the program prints, and the symbol behind it; a bare exit code says nothing twice. */
export function failure({ error, code }: ResultDocument): string {
  const named = code !== null && !/^\d+$/.test(code) && error !== code;
  return `${error ?? 'no address'}${named ? ` (${code})` : ''}`;
}
