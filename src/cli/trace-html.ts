/** A trace as a page of its own: a ladder, client on the left, servers on the right, time downwards; no script. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';
import { ms } from './page.ts';
import { answer, label, outcome, settings } from './trace-words.ts';

/** Pixels. A letter is that wide in the ladder's type, or less. */
const letter = 7.4;
const rowHeight = 30;
const top = 50;
const timeWidth = 80;
const between = 190;

const style = `
:root{color-scheme:light dark;--line:#8888;--query:#06c;--reply:#283;--bad:#c22;--dim:#777}
@media(prefers-color-scheme:dark){:root{--query:#6bf;--reply:#7c7;--bad:#f77;--dim:#999}}
body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem}h1{font-size:1.4rem;margin:0}p{margin:.3rem 0}
svg{font:12px ui-monospace,monospace;fill:currentColor;display:block;margin:1rem 0}
.pole{stroke:var(--line)}.query{stroke:var(--query)}.reply{stroke:var(--reply);stroke-dasharray:4 2}
.time,.settings{fill:var(--dim);color:var(--dim)}.bad{fill:var(--bad);color:var(--bad)}.good{color:var(--reply)}
.ladder{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left;vertical-align:top}
td:first-child{color:var(--dim)}`;

export function html(document: TraceDocument): string {
  const { queries, result } = document;
  const title = `${document.name} with ${label(document)}`;
  const how = document.live ? 'live' : 'planned: nothing was sent';
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(title)}</title>
<style>${style}</style>
<h1>${escape(title)}</h1>
<p class="settings">${escape(`${settings(document)} (${how})`)}</p>
<p class="${result.ok ? 'good' : 'bad'}">${escape(`${result.ok ? '✓' : '✗'} ${outcome(document)}`)}</p>
<p>${escape(`${ms(result.elapsedMs)}, ${queries.length} ${queries.length === 1 ? 'query' : 'queries'}`)}</p>
${queries.length === 0 ? '' : ladder(document)}
${steps(document)}${reasons(queries)}</html>
`;
}

function ladder({ queries }: TraceDocument): string {
  const servers = [...new Set(queries.map((query) => query.server))];
  const widest = (texts: readonly string[]): number =>
    Math.ceil(Math.max(...texts.map((text) => text.length)) * letter);
  const names = queries.map((query) => `${query.name} ${query.type}`);
  const client = timeWidth + widest(names) + 15;
  const x = (server: string): number => client + between * (1 + servers.indexOf(server));
  const end = x(servers.at(-1) ?? '') + 10;
  const width = end + widest(queries.map(answer)) + 20;
  const height = top + queries.length * rowHeight + 10;
  const poles = [{ at: client, text: 'client' }, ...servers.map((text) => ({ at: x(text), text }))];
  const arrows = queries.map((query, index) => {
    const y = top + 10 + index * rowHeight;
    const to = x(query.server);
    const lost = query.answer === 'DROP' || query.answer === 'CLOSED';
    const why = escape(`${query.why} ${query.outcome}`.trim());
    return `<g><title>${why}</title><text class="time" x="0" y="${y + 4}">${escape(ms(query.atMs))}</text><text x="${timeWidth}" y="${y + 4}">${escape(names[index] ?? '')}</text><line class="query" x1="${client}" y1="${y}" x2="${lost ? to - between / 3 : to}" y2="${lost ? y + 4 : y + 6}"/>${lost ? '' : `<line class="reply" x1="${to}" y1="${y + 6}" x2="${client}" y2="${y + 14}"/>`}<text${lost ? ' class="bad"' : ''} x="${end}" y="${y + 8}">${escape(lost ? lostText(query) : answer(query))}</text></g>`;
  });
  return `<div class="ladder"><svg width="${width}" height="${height}" role="img" aria-label="queries over time">
${poles.map(({ at, text }) => `<line class="pole" x1="${at}" y1="${top - 20}" x2="${at}" y2="${height}"/><text text-anchor="middle" x="${at}" y="${top - 28}">${escape(text)}</text>`).join('\n')}
${arrows.join('\n')}
</svg></div>`;
}

function lostText(query: QueryDocument): string {
  return query.answer === 'DROP' ? 'no answer' : 'port closed';
}

function steps({ steps: list, remarks }: TraceDocument): string {
  const texts = [
    ...remarks.map(({ line, text }) => `resolv.conf${line === 0 ? '' : `, line ${line}`}: ${text}`),
    ...list.map(({ text }) => text),
  ];
  if (texts.length === 0) return '';
  return `<ul>${texts.map((text) => `<li>${escape(text)}</li>`).join('')}</ul>\n`;
}

/** Why each name was asked, and what came of it: what a tool tip shows, for paper and screen readers. */
function reasons(queries: readonly QueryDocument[]): string {
  if (queries.length === 0) return '';
  const rows = queries.map(
    (query, index) =>
      `<tr><td>${index + 1}</td><td>${escape(query.name)} ${escape(query.type)}</td><td>${escape(query.why)}</td><td>${escape(query.outcome)}</td></tr>`,
  );
  return `<table><tr><th></th><th>query</th><th>why</th><th>then</th></tr>\n${rows.join('\n')}\n</table>\n`;
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
