/** Renders the current findings for sharing, as a single HTML file without scripts. */
import { escape, htmlPage } from '../../../server/base/html.ts';
import type { FindingRow, FindingsView, NowView } from '../../../tools/watch/view.ts';
import { nowFigures } from '../../console/now-figures.ts';
import { partyName, printLatency, printMoment, printShare } from '../live/figures.ts';

const style = `
:root { color-scheme: light dark; --line: light-dark(#d9dde1, #2c333a); --quiet: light-dark(#545e67, #a0abb4);
  --critical: light-dark(#a8231c, #f28b82); --warning: light-dark(#7a4d00, #e2b257); }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; font: 0.9375rem/1.5 system-ui, sans-serif;
  background: light-dark(#fff, #111417); color: light-dark(#1b2126, #dfe4e8); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.125rem; margin: 2.5rem 0 0.5rem; }
.quiet, dt, th { color: var(--quiet); font-weight: 400; }
.critical { color: var(--critical); } .warning { color: var(--warning); }
dl { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: 0.25rem 1rem; } dd { margin: 0; }
ol, ul { margin: 0; padding-inline-start: 1.25rem; }
code, td { font-family: ui-monospace, monospace; font-size: 0.8125rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: start; border-bottom: 1px solid var(--line); white-space: nowrap; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.5rem; } }
@media print { body { margin: 0; } }
`;

/** @param source describes where the traffic comes from, for display */
export function findingsReport(now: NowView, findings: FindingsView, source: string): string {
  const rows = findings.rows.filter(({ endedMs }) => endedMs === null);
  const at = new Date(now.atMs).toISOString().replace('T', ' ').slice(0, 19);
  const figures = nowFigures(now)
    .map(
      ({ label, value, note }) =>
        `<dt>${escape(label)}</dt><dd>${escape(`${value}, ${note}`)}</dd>`,
    )
    .join('\n');
  const body = `<h1>DNS findings</h1>
<p class="quiet">${escape(source)} · ${at} UTC · figures from ${new Date(now.window.fromMs).toISOString().slice(11, 19)} to ${at.slice(11)}</p>
<dl class="figures">${figures}</dl>
${rows.length === 0 ? '<h2>No problems found</h2>' : rows.map(finding).join('\n')}
<h2>Ruled out</h2>
<ul>${findings.excluded.map(notFound).join('')}</ul>
${findings.unknown.length === 0 ? '' : `<h2>Not judged</h2>\n<ul>${findings.unknown.map(notFound).join('')}</ul>`}`;
  return htmlPage(`DNS findings, ${at} UTC`, style, body);
}

function finding(row: FindingRow): string {
  const { title, severity, code, subject, why, seen, fix, prove, disproved, confidence } = row;
  const list = (tag: 'ul' | 'ol', texts: readonly string[]): string =>
    `<${tag}>${texts.map((text) => `<li>${escape(text)}</li>`).join('')}</${tag}>`;
  return `<h2>${escape(title)}</h2>
<dl>
<dt>Severity</dt><dd class="${escape(severity)}">${escape(severity)}, confidence ${printShare(confidence)}, <code>${escape(code)}</code></dd>
${fact('Subject', escape(subject))}${fact('Why', escape(why))}
<dt>Seen</dt><dd>${list('ul', seen)}</dd>
<dt>Fix</dt><dd>${list('ol', fix)}</dd>
${fact('Proof', prove === '' ? '' : `<code>${escape(prove)}</code>`)}${fact('Not this if', escape(disproved))}
</dl>
${examples(row)}`;
}

function fact(term: string, html: string): string {
  return html === '' ? '' : `<dt>${term}</dt><dd>${html}</dd>\n`;
}

function examples({ examples: rows, queries }: FindingRow): string {
  if (rows.length === 0) return '';
  const cells = rows.map(({ sentMs, client, server, name, type, rcode, tookMs }) =>
    [
      printMoment(sentMs),
      partyName(client),
      partyName(server),
      type,
      rcode === '' ? 'none' : rcode,
      printLatency(tookMs),
      name,
    ]
      .map((text) => `<td>${escape(text)}</td>`)
      .join(''),
  );
  return `<p class="quiet">${rows.length} of ${queries} example queries</p>
<div class="scroll" tabindex="0"><table>
<thead><tr><th>Time</th><th>Client</th><th>Server</th><th>Type</th><th>Reply</th><th>Took</th><th>Name</th></tr></thead>
<tbody>${cells.map((row) => `<tr>${row}</tr>`).join('\n')}</tbody>
</table></div>`;
}

function notFound({ code, name, reason }: FindingsView['excluded'][number]): string {
  return `<li><code>${escape(code)}</code> ${escape(name)}: <span class="quiet">${escape(reason)}</span></li>`;
}
