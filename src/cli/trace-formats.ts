/** A trace for other programs and for bug reports: Markdown, HTML, Graphviz, dig's and tcpdump's spelling. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';
import { ms } from './trace-text.ts';

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
    default:
      return strace(document);
  }
}

function label(document: TraceDocument): string {
  const { name, version } = document.client;
  return version === '' ? name : `${name} ${version}`;
}

function outcome(document: TraceDocument): string {
  const { result } = document;
  if (result.ok) return result.addresses.join(' ') || 'no address';
  return `${result.code ?? 'error'}: ${result.error ?? ''}`;
}

function answer(query: QueryDocument): string {
  return query.data.length > 0 ? query.data.join(' ') : query.answer;
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
    `Result: ${outcome(document)}, ${ms(document.result.elapsedMs)}, ${document.totals.queries} queries.`,
    '',
    '| # | ms | server | proto | port | name | type | answer | why |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** One line for what leaves and one for what comes, as tcpdump has them. */
function strace(document: TraceDocument): string {
  const lines: { readonly at: number; readonly text: string }[] = [];
  for (const query of document.queries) {
    const proto = query.protocol === 'tcp' ? ' TCP' : '';
    const opt = query.edns === '' ? '' : ' [1au]';
    lines.push({
      at: query.atMs,
      text: `IP client.p${query.port} > ${query.server}.53: id ${query.id}+${opt} ${query.type}? ${query.name}${proto}`,
    });
    if (query.tookMs !== null) {
      lines.push({
        at: query.atMs + query.tookMs,
        text: `IP ${query.server}.53 > client.p${query.port}: id ${query.id} ${answer(query)}`,
      });
    }
  }
  const text = lines
    .sort((one, other) => one.at - other.at)
    .map(({ at, text: line }) => `${(at / 1000).toFixed(6)} ${line}`);
  return `${text.join('\n')}\n# ${outcome(document)}\n`;
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

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A ladder: client on the left, servers on the right, time downwards. */
function html(document: TraceDocument): string {
  const servers = [...new Set(document.queries.map((query) => query.server))];
  const rowHeight = 34;
  const x = (server: string): number => 420 + servers.indexOf(server) * 220;
  const width = x(servers.at(-1) ?? '') + 260;
  const height = 90 + document.queries.length * rowHeight;
  const arrows = document.queries.map((query, index) => {
    const y = 70 + index * rowHeight;
    const end = x(query.server);
    const lost = query.answer === 'DROP' || query.answer === 'CLOSED';
    return [
      `<line x1="120" y1="${y}" x2="${end}" y2="${y + 8}" class="query"/>`,
      lost ? '' : `<line x1="${end}" y1="${y + 8}" x2="120" y2="${y + 18}" class="reply"/>`,
      `<text x="130" y="${y - 2}">${escape(`${query.name} ${query.type}`)}<title>${escape(`${query.why} ${query.outcome}`)}</title></text>`,
      `<text x="${end + 8}" y="${y + 12}" class="${lost ? 'lost' : ''}">${escape(answer(query))}</text>`,
      `<text x="10" y="${y + 4}" class="time">${escape(ms(query.atMs))}</text>`,
    ].join('');
  });
  const poles = [
    '<line x1="120" y1="40" x2="120" y2="' +
      height +
      '" class="pole"/><text x="90" y="30">client</text>',
  ].concat(
    servers.map(
      (server) =>
        `<line x1="${x(server)}" y1="40" x2="${x(server)}" y2="${height}" class="pole"/><text x="${x(server) - 30}" y="30">${escape(server)}</text>`,
    ),
  );
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${escape(document.name)} with ${escape(label(document))}</title>
<style>body{font:14px system-ui;margin:1rem}svg{font:12px ui-monospace,monospace}.pole{stroke:#999}.query{stroke:#06c}.reply{stroke:#393;stroke-dasharray:4 2}.time{fill:#777}.lost{fill:#c00}</style>
<h1>${escape(document.name)} with ${escape(label(document))}</h1>
<p>${escape(outcome(document))}: ${escape(ms(document.result.elapsedMs))}, ${document.totals.queries} queries.</p>
<svg width="${width}" height="${height}" role="img" aria-label="queries over time">${poles.join('')}${arrows.join('')}</svg>
</html>
`;
}
