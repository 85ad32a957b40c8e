/** The Findings page: active and past findings, each with its fix and a command to verify it. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { FindingRow, FindingsView } from '../../tools/watch/view.ts';
import {
  partyName,
  printLatency,
  printMoment,
  printShare,
  printTime,
} from '../cli/live/figures.ts';
import { findingStates } from '../cli/live/finding-words.ts';
import { NOTHING_SEEN, seesNothing } from '../cli/live/now-parts.ts';
import { copyButton } from '../web/copy-button.ts';
import { table } from '../web/table.ts';
import { facts, liveTable } from './live-table.ts';
import { grafanaLink } from './grafana-link.ts';
import { counted } from './now-figures.ts';

export function findingsPage(view: FindingsView): TemplateResult {
  return html`${liveTable<FindingRow>({
      caption: 'Findings, active ones first',
      list: view,
      usual: 'state',
      idOf: ({ id }) => id,
      toneOf: ({ state, severity }) =>
        state === 'ended' || severity === 'info'
          ? 'plain'
          : severity === 'critical'
            ? 'error'
            : 'warning',
      none: seesNothing(view)
        ? NOTHING_SEEN
        : view.checkedMs === null
          ? 'The rules have not run yet.'
          : `No problems as of ${printTime(view.checkedMs)} UTC.`,
      columns: [
        { head: 'Finding', cell: ({ title }) => title },
        { head: 'Code', sort: 'code', code: true, cell: ({ code }) => code },
        { head: 'Severity', sort: 'severity', cell: ({ severity }) => severity },
        {
          head: 'State',
          sort: 'state',
          cell: ({ state, times }) =>
            `${findingStates[state]}${times > 1 ? ` (${times} times)` : ''}`,
        },
        { head: 'Began', sort: 'began', code: true, cell: ({ beganMs }) => printTime(beganMs) },
        { head: 'Subject', code: true, cell: ({ subject }) => subject },
      ],
      details: findingDetails,
    })}
    <details class="more">
      <summary>${view.excluded.length} causes are ruled out</summary>
      ${notFound(view.excluded)}
    </details>
    ${
      view.unknown.length === 0
        ? nothing
        : html`<details class="more">
            <summary>${view.unknown.length} causes cannot be checked with this input</summary>
            ${notFound(view.unknown)}
          </details>`
    }`;
}

function notFound(rows: FindingsView['excluded']): TemplateResult {
  return html`<ul>
    ${rows.map(
      ({ code, name, reason }) =>
        html`<li>
          <span class="code">${code}</span> ${name}: <span class="quiet">${reason}</span>
        </li>`,
    )}
  </ul>`;
}

const items = (texts: readonly string[]): readonly TemplateResult[] =>
  texts.map((text) => html`<li>${text}</li>`);

function findingDetails(row: FindingRow): TemplateResult {
  const { seen, why, fix, prove, disproved, who, examples, queries, confidence } = row;
  return html`${facts([
    ['Why', why],
    [
      'Seen',
      html`<ul>
        ${items(seen)}
      </ul>`,
    ],
    [
      'Who',
      html`${counted(who.clients, 'client')}${who.nodes > 1 ? ` on ${counted(who.nodes, 'node')}` : ''}
      ${who.groups.map(
        ({ name, clients, share }) => html`<br />${name}: ${clients} (${printShare(share)})`,
      )}`,
    ],
    [
      'Fix',
      html`<ol>
        ${items(fix)}
      </ol>`,
    ],
    [
      'Proof',
      html`<code>${prove}</code> ${prove === '' ? nothing : copyButton('Copy', () => prove)}`,
    ],
    ...(disproved === '' ? [] : [['Not this if', disproved] as const]),
    ['Confidence', printShare(confidence)],
  ])}
  ${grafanaLink('Grafana at that time', row.beganMs, row.endedMs ?? row.lastSeenMs)}
  ${
    examples.length === 0
      ? nothing
      : table(
          `Example queries: ${examples.length} of ${queries}`,
          [
            { head: 'Time', code: true, cell: ({ sentMs }) => printMoment(sentMs) },
            { head: 'Client', code: true, cell: ({ client }) => partyName(client) },
            { head: 'Server', code: true, cell: ({ server }) => partyName(server) },
            { head: 'Type', code: true, cell: ({ type }) => type },
            { head: 'Reply', cell: ({ rcode }) => (rcode === '' ? 'none' : rcode) },
            { head: 'Took', numeric: true, cell: ({ tookMs }) => printLatency(tookMs) },
            { head: 'Name', code: true, cell: ({ name }) => name },
          ],
          examples,
        )
  }`;
}
