/**
 * Traces for other programs and for bug reports: Markdown and Graphviz here, the larger formats in
 * files of their own.
 */
import { printElapsed } from '../../../server/base/elapsed.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import type { TraceDocument } from '../../../tools/resolver/report.ts';
import { compare, labelOf } from './trace-comparison.ts';
import { dig } from './trace-dig.ts';
import { html } from './trace-html.ts';
import type { Output } from './trace-options.ts';
import { strace, tcpdump } from './trace-packets.ts';
import { answer, label, outcome, settings } from './trace-words.ts';

/** One or more traces in a format that is not for terminals. */
export function printAs(
  format: Exclude<Output, 'text' | 'wide' | 'json'>,
  documents: readonly TraceDocument[],
): string {
  const each = (print: (document: TraceDocument) => string, between = '\n'): string =>
    documents.map(print).join(between);
  switch (format) {
    case 'md':
      return `${documents.length > 1 ? `${comparison(documents)}\n` : ''}${each(markdown)}`;
    case 'html':
      return html(documents);
    case 'dot':
      return each(dot);
    case 'dig':
      return each(dig);
    case 'tcpdump':
      return each(tcpdump);
    case 'strace':
      return each(strace);
  }
}

function comparison(documents: readonly TraceDocument[]): string {
  const { differences, verdict } = compare(documents);
  const rows = documents.map(
    (document) =>
      `| ${document.result.ok ? '✓' : '✗'} | ${labelOf(document)} | ${document.totals.queries} | ${document.totals.ports} | ${printElapsed(document.result.elapsedMs)} | ${cell(outcome(document))} |`,
  );
  return [
    `### \`${documents[0]?.name ?? ''}\` with ${documents.length} clients`,
    '',
    verdict,
    ...differences.map(
      ({ clients, text }) => `\n- ${clients === '' ? '' : `**${clients}**: `}${text}`,
    ),
    '',
    '| | client | queries | ports | time | result |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function markdown(document: TraceDocument): string {
  const rows = document.queries.map(
    (query, index) =>
      `| ${index + 1} | ${query.atMs} | ${printHostPort(query.server, query.serverPort)} | ${query.protocol} | ${query.sourcePort ?? query.port} | \`${query.name}\` | ${query.type} | ${cell(answer(query))} | ${cell(query.why)} ${cell(query.outcome)} |`,
  );
  return [
    `### \`${document.name}\` with ${label(document)}`,
    '',
    `${document.live ? 'Live' : 'Planned: nothing was sent'}. Settings: \`${settings(document)}\`.`,
    '',
    `Result: ${outcome(document)}; ${printElapsed(document.result.elapsedMs)}, ${document.totals.queries} queries.`,
    ...document.cheaper.map(
      (one) =>
        `\n- Cheaper: ${one.change}: \`${one.name}\`, ${one.queries} queries, ${printElapsed(one.elapsedMs)}. ${one.caution}`,
    ),
    ...document.remarks.map(
      ({ line, text }) => `\n- resolv.conf${line === 0 ? '' : `, line ${line}`}: ${text}`,
    ),
    ...document.steps.map(({ text }) => `\n- ${text}`),
    '',
    '| # | ms | server | proto | port | name | type | answer | why |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function dot(document: TraceDocument): string {
  const quote = (text: string): string =>
    `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  const lines = [
    'digraph trace {',
    '  rankdir=TB;',
    '  node [shape=box, fontname="monospace"];',
    `  client [label=${quote(`${document.name}\\n${label(document)}`).replaceAll('\\\\n', '\\n')}];`,
  ];
  let last = 'client';
  document.queries.forEach((query, index) => {
    const node = `q${index + 1}`;
    lines.push(
      `  ${node} [label=${quote(`${query.name} ${query.type}`)}];`,
      `  ${last} -> ${node} [label=${quote(`${printElapsed(query.atMs)} @${printHostPort(query.server, query.serverPort)} ${answer(query)}`)}];`,
    );
    const next = document.queries[index + 1];
    if (next === undefined || next.name !== query.name) last = node;
  });
  lines.push(
    `  result [label=${quote(outcome(document))}, style=bold];`,
    `  ${last} -> result;`,
    '}',
    '',
  );
  return lines.join('\n');
}
