/** A trace for other programs and for bug reports: Markdown, Graphviz, dig's spelling; the larger ones have their own files. */
import type { TraceDocument } from '../resolver/report.ts';
import { ms } from './page.ts';
import { html } from './trace-html.ts';
import { strace, tcpdump } from './trace-packets.ts';
import { answer, label, outcome, settings } from './trace-words.ts';

export function printAs(format: string, document: TraceDocument): string {
  switch (format) {
    case 'md':
      return markdown(document);
    case 'html':
      return html(document);
    case 'dot':
      return dot(document);
    case 'dig':
      return dig(document);
    case 'tcpdump':
      return tcpdump(document);
    default:
      return strace(document);
  }
}

function markdown(document: TraceDocument): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const rows = document.queries.map(
    (query, index) =>
      `| ${index + 1} | ${query.atMs} | ${query.server} | ${query.protocol} | ${query.port} | \`${query.name}\` | ${query.type} | ${cell(answer(query))} | ${cell(query.why)} ${cell(query.outcome)} |`,
  );
  return [
    `### \`${document.name}\` with ${label(document)}`,
    '',
    `${document.live ? 'Live' : 'Planned: nothing was sent'}. Settings: \`${settings(document)}\`.`,
    '',
    `Result: ${outcome(document)}; ${ms(document.result.elapsedMs)}, ${document.totals.queries} queries.`,
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

function dig(document: TraceDocument): string {
  const parts = document.queries.map((query) => {
    const status =
      query.answer === 'DROP'
        ? 'no reply'
        : /^[A-Z]{5,}$/.test(query.answer) && query.answer !== 'NODATA'
          ? query.answer
          : 'NOERROR';
    const lines = [`; <<>> ${query.server}, at ${query.atMs} ms <<>> ${query.name} ${query.type}`];
    if (status === 'no reply') lines.push(';; connection timed out; no servers could be reached');
    else {
      lines.push(
        `;; ->>HEADER<<- opcode: QUERY, status: ${status}, id: ${query.id}`,
        '',
        ';; QUESTION SECTION:',
        `;${query.name}\t\tIN\t${query.type}`,
        '',
      );
      if (query.data.length > 0) {
        lines.push(';; ANSWER SECTION:');
        let owner = query.name;
        for (const data of query.data) {
          const alias = /^CNAME (.*)$/.exec(data);
          lines.push(
            `${owner}\t\tIN\t${alias === null ? query.type : 'CNAME'}\t${alias?.[1] ?? data}`,
          );
          owner = alias?.[1] ?? owner;
        }
        lines.push('');
      }
      lines.push(
        `;; Query time: ${Math.round(query.tookMs ?? 0)} msec`,
        `;; SERVER: ${query.server}#53(${query.server}) (${query.protocol.toUpperCase()})`,
      );
    }
    return lines.join('\n');
  });
  return `${parts.join('\n\n')}\n`;
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
      `  ${last} -> ${node} [label=${quote(`${ms(query.atMs)} @${query.server} ${answer(query)}`)}];`,
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
