/** Supports several clusters, with a selector and an overview that compares them. */
import { signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ClusterRow } from '../cli/console/console-server.ts';
import { printNumber, printPart, printRate } from '../cli/live/figures.ts';
import { table } from '../web/table.ts';
import { cluster, clusters, page } from './page-state.ts';
import { keepReading, readJson } from './read-json.ts';

/** Refresh interval of the overview, milliseconds. */
const READ_MS = 2000;

const rows: Signal<readonly ClusterRow[]> = signal([]);

/** Refreshes the state of all clusters while they are shown on the Now page. */
export function followClusters(): void {
  if (clusters.length < 2) return;
  keepReading(
    () => page.value === 'now',
    READ_MS,
    async () => {
      rows.value = (await readJson<readonly ClusterRow[]>('/api/clusters')) ?? rows.peek();
    },
  );
}

export function clusterChoice(): TemplateResult | typeof nothing {
  if (clusters.length < 2) return nothing;
  return html`<select
    class="cluster"
    aria-label="Cluster"
    @change=${({ target }: Event) => (cluster.value = (target as HTMLSelectElement).value)}
  >
    ${clusters.map(
      (name) => html`<option value=${name} ?selected=${name === cluster.value}>${name}</option>`,
    )}
  </select>`;
}

export function clusterTable(): TemplateResult | typeof nothing {
  if (clusters.length < 2) return nothing;
  return html`<div class="clusters">
    ${table<ClusterRow>(
      'Clusters',
      [
        {
          head: 'Cluster',
          cell: ({ name }) =>
            name === cluster.value
              ? html`<b>${name}</b>`
              : html`<button type="button" class="link" @click=${() => (cluster.value = name)}>
                  ${name}
                </button>`,
        },
        { head: 'Queries', numeric: true, cell: ({ rate }) => printRate(rate) },
        { head: 'Lost', numeric: true, cell: ({ lost, queries }) => printPart(lost, queries) },
        {
          head: 'Error replies',
          numeric: true,
          cell: ({ failed, queries }) => printPart(failed, queries),
        },
        { head: 'Findings', numeric: true, cell: ({ findings }) => printNumber(findings) },
        { head: 'Source', cell: ({ source }) => source },
      ],
      rows.value,
      ({ findings, lost }) => (findings > 0 ? 'error' : lost > 0 ? 'warning' : ''),
    )}
  </div>`;
}
