/** The HTML status page. Names and errors are untrusted, so all of them are escaped. */
import { escape, htmlPage } from '../../server/base/html.ts';
import { fullName, type CheckObject } from './check-object.ts';
import { overall, tookText, type StatusFacts } from './status-documents.ts';

/** Allows inline styles, but neither scripts nor external resources. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-top: 1px solid #8884 }
.ok { color: #2a7f3f } .bad { color: #c0392b } .new { color: #888 }
td ul { margin: 0; padding-left: 1rem } td { overflow-wrap: anywhere }
`;

/** Lists all checks, failed ones first. */
export function statusPage(facts: StatusFacts): string {
  const { checks, leader, wall } = facts;
  const { ok } = overall(checks);
  const rows = checks
    .toSorted((a, b) => rank(a) - rank(b) || (fullName(a) < fullName(b) ? -1 : 1))
    .map((check) => row(check, wall));
  const title = `${ok ? 'OK' : 'Not OK'}: ${checks.length} checks`;
  return htmlPage(
    title,
    style,
    `<h1 class="${ok ? 'ok' : 'bad'}">${ok ? 'All checks pass' : 'Some checks fail'}</h1>
<p>${checks.length} checks; ${leader === '' ? 'no replica runs them now' : `run by ${escape(leader)}`}. <a href="json">JSON</a>, <a href="metrics">metrics</a>.</p>
<table><thead><tr><th>Check</th><th>Kind</th><th>State</th><th>Last run</th><th>Took</th><th>Errors</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`,
  );
}

function row(check: CheckObject, wall: number): string {
  const { state } = check;
  const word = wordOf(check);
  const errors = state.errors.map((error) => `<li>${escape(error)}</li>`).join('');
  const cells = [
    escape(fullName(check)),
    check.kind,
    `<span class="${word === 'OK' ? 'ok' : word === 'new' ? 'new' : 'bad'}">${word}</span>${state.isRunning ? ', running' : ''}`,
    state.begunAt === null ? '–' : ago(wall - state.begunAt),
    tookText(check),
    errors === '' ? '' : `<ul>${errors}</ul>`,
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function wordOf({ state }: CheckObject): 'OK' | 'failed' | 'new' {
  if (state.ok) return 'OK';
  return state.errors.length > 0 || state.failures > 0 ? 'failed' : 'new';
}

function rank(check: CheckObject): number {
  return ['failed', 'new', 'OK'].indexOf(wordOf(check));
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min ago` : `${Math.round(minutes / 60)} h ago`;
}
