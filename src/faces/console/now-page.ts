/** The Now page: key figures and their history, active findings, and recent changes. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Listed, NowView } from '../../tools/watch/view.ts';
import {
  printLatency,
  printNumber,
  printRate,
  printPart,
  printSpan,
  printTime,
} from '../cli/live/figures.ts';
import {
  changeWords,
  coursesOf,
  NOTHING_SEEN,
  NOW_LISTED,
  planText,
  seesNothing,
} from '../cli/live/now-parts.ts';
import { table } from '../web/table.ts';
import { clusterTable } from './cluster-choice.ts';
import { grafanaLink } from './grafana-link.ts';
import { lineChart } from './line-chart.ts';
import { leftOut, nowFigures } from './now-figures.ts';
import { opened, show, showTool } from './page-state.ts';
import { reloadText } from './reload-text.ts';

export function nowPage(now: NowView): TemplateResult {
  const { rates, p50, p99, fromMs, stepMs } = coursesOf(now.series, now.window.toMs);
  const marks = now.reloads.map(({ atMs }) => atMs);
  const times = { fromMs, stepMs, steps: now.series.queries.length, marks };
  return html`<p class="quiet">
      ${printSpan(now.window.fromMs, now.window.toMs)} UTC · ${leftOut(now)} · ${memory(now)}
      ${grafanaLink('Grafana', now.window.fromMs, now.window.toMs)}
    </p>
    ${clusterTable()}
    <dl class="figures">
      ${nowFigures(now).map(
        ({ label, value, note, tone }) =>
          html`<div class=${`figure ${tone}`}>
            <dt>${label}</dt>
            <dd class="value">${value}</dd>
            <dd class="quiet">${note}</dd>
          </div>`,
      )}
    </dl>
    <div class="charts">
      ${lineChart({
        ...times,
        id: 'rate',
        title: 'Queries a second',
        print: printRate,
        lines: [
          { label: 'all', tone: 'line-1', values: rates.queries },
          { label: 'wasted', tone: 'line-2', values: rates.wasted },
        ],
      })}
      ${lineChart({
        ...times,
        id: 'trouble',
        title: 'Lost and failed per second',
        print: printRate,
        lines: [
          { label: 'lost', tone: 'line-3', values: rates.lost },
          { label: 'error replies', tone: 'line-4', values: rates.failed },
        ],
      })}
      ${lineChart({
        ...times,
        id: 'latency',
        title: 'Reply time',
        print: printLatency,
        lines: [
          { label: 'median', tone: 'line-1', values: p50 },
          { label: 'p99', tone: 'line-3', values: p99 },
        ],
      })}
    </div>
    ${reloads(now)}
    <h2>Findings</h2>
    ${findings(now)}
    <h2>Most wasteful workloads</h2>
    ${waste(now)}
    <h2>What changed</h2>
    ${
      now.changes.rows.length === 0
        ? html`<p class="empty">Nothing in this window.</p>`
        : html`<ul class="changes">
              ${now.changes.rows
                .slice(0, NOW_LISTED)
                .map(
                  ({ atMs, kind, text }) =>
                    html`<li>
                      <span class="quiet code">${printTime(atMs)}</span> ${changeWords[kind]}
                      ${text}
                    </li>`,
                )}
            </ul>
            ${more(now.changes, 'earlier')}`
    }`;
}

/** The reloads shown in the charts, each with a link to its details. */
function reloads({ reloads: rows }: NowView): TemplateResult | typeof nothing {
  if (rows.length === 0) return nothing;
  return html`<p class="quiet" id="reloads-label">
      Dashed lines: a server loaded a new configuration.
    </p>
    <ul class="changes" aria-labelledby="reloads-label">
      ${rows.map(
        (row) =>
          html`<li>
            <button
              type="button"
              class="link code"
              @click=${() => showTool('configuration', { reload: String(row.id) })}
            >
              ${printTime(row.atMs)}
            </button>
            ${reloadText(row)}
          </li>`,
      )}
    </ul>`;
}

function memory({ memory: { usedBytes, limitBytes, dropped } }: NowView): string {
  const mib = (bytes: number): string => (bytes / 1_048_576).toFixed(1);
  const used = `${mib(usedBytes)} of ${mib(limitBytes)} MiB used`;
  return dropped === '' ? used : `${used}: ${dropped}`;
}

function findings(now: NowView): TemplateResult {
  if (now.findings.length === 0 && seesNothing(now))
    return html`<p class="empty">${NOTHING_SEEN}</p>`;
  if (now.findings.length === 0)
    return html`<p class="empty">
      None. ${now.excluded} causes are ruled
      out${now.unknown === 0 ? '' : `; ${now.unknown} cannot be checked with this input`}.
    </p>`;
  return html`<ul class="cards">
    ${now.findings.map(
      ({ id, severity, title, subject, why }) =>
        html`<li class=${`card ${severity}`}>
          <button
            type="button"
            class="link"
            @click=${() => {
              show('findings', '');
              opened.value = id;
            }}
          >
            ${title}
          </button>
          <span class=${`badge ${severity}`}>${severity}</span>
          ${subject === '' ? nothing : html`<span class="code">${subject}</span>`}
          <p>${why}</p>
        </li>`,
    )}
  </ul>`;
}

function waste({ waste: { workloads } }: NowView): TemplateResult {
  if (workloads.rows.length === 0)
    return html`<p class="empty">No queries were wasted by search paths.</p>`;
  return html`${table(
    'Most wasteful workloads',
    [
      {
        head: 'Workload',
        code: true,
        cell: ({ namespace, workload, id }) => (workload === '' ? id : `${namespace}/${workload}`),
      },
      { head: 'Queries', numeric: true, cell: ({ queries }) => printNumber(queries) },
      { head: 'Wasted', numeric: true, cell: ({ wasted, queries }) => printPart(wasted, queries) },
      { head: 'What ends it', cell: ({ plan }) => planText(plan) },
    ],
    workloads.rows.slice(0, NOW_LISTED),
  )}${more(workloads, 'more')}`;
}

/** The number of rows beyond those shown. */
function more({ total }: Listed<unknown>, word: string): TemplateResult | typeof nothing {
  return total > NOW_LISTED
    ? html`<p class="quiet">and ${printNumber(total - NOW_LISTED)} ${word}</p>`
    : nothing;
}
