/** The reloads on the Configuration page, with the changes to the Corefile and to the answers that clients got. */
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ChangedAnswer, ReloadRow, ReloadsView } from '../../tools/watch/reload-shape.ts';
import { printNumber, printTime } from '../cli/live/figures.ts';
import { changeItem } from '../playground/diff-panel.ts';
import { EngineClient } from '../playground/engine-client.ts';
import { problemList, statusLine } from '../playground/shown-state.ts';
import { table } from '../web/table.ts';
import { counted } from './now-figures.ts';
import { ofCluster, tool } from './page-state.ts';
import { keepReading, readJson } from './read-json.ts';
import { outcomeText, reloadText } from './reload-text.ts';

/** Refresh interval, milliseconds. */
const READ_MS = 2000;
/** Value of `reload` if all are collapsed. */
const NONE = '0';

/** The expanded reload, or empty for the newest one. */
export const reload: Signal<string> = signal('');
/** Null: no reply yet. */
const view: Signal<ReloadsView | null> = signal(null);
const engine = new EngineClient('diff');
/** The reload that the engine was last started for, or 0 if there is none. */
const predicted: Signal<number> = signal(0);

const openId: ReadonlySignal<number> = computed(() =>
  reload.value === '' ? (view.value?.rows[0]?.id ?? 0) : Number(reload.value),
);

/** Refreshes the list while the page is open and visible. */
export function followReloads(): void {
  keepReading(
    () => tool.value === 'configuration',
    READ_MS,
    async () => {
      view.value = (await readJson(`/api/view/reloads?${ofCluster()}`)) ?? view.peek();
    },
  );
}

export function reloadList(): TemplateResult {
  const found = view.value;
  return html`<section class="reloads" aria-labelledby="reloads-title">
    <h2 id="reloads-title">Reloads</h2>
    ${
      found === null
        ? html`<p class="quiet">Reading the reloads.</p>`
        : found.rows.length === 0
          ? html`<p class="quiet">
              ${
                found.isReported
                  ? 'No server has loaded a new configuration so far.'
                  : 'Packets and logs do not show reloads. Servers with the console directive report them (--server, --replicas).'
              }
            </p>`
          : html`${found.rows.map(item)}
            ${
              found.leftOut === 0
                ? nothing
                : html`<p class="quiet">${counted(found.leftOut, 'earlier reload')} left out.</p>`
            }`
    }
  </section>`;
}

function item(row: ReloadRow): TemplateResult {
  const isOpen = row.id === openId.value;
  const details = `reload-${row.id}`;
  return html`<h3>
      <button
        type="button"
        class="row"
        aria-expanded=${isOpen ? 'true' : 'false'}
        aria-controls=${isOpen ? details : nothing}
        @click=${() => (reload.value = isOpen ? NONE : String(row.id))}
      >
        <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span>
        <span class="code">${printTime(row.atMs)}</span> ${reloadText(row)}
      </button>
    </h3>
    ${isOpen ? html`<div id=${details}>${opened(row)}</div>` : nothing}`;
}

function opened(row: ReloadRow): TemplateResult {
  const { diff, answers } = row;
  return html`${
    diff === ''
      ? html`<p class="quiet">The server did not report a change of its Corefile.</p>`
      : html`<div class="table" role="region" tabindex="0" aria-label="Change of the Corefile">
          <pre class="patch">${diff.trimEnd().split('\n').map(patchLine)}</pre>
        </div>`
  }
  ${
    answers.length === 0
      ? nothing
      : html`${table('Answers seen to change, most queried first', columns, answers)}
          <p class="quiet">
            Observed: the answers to clients before and after the reload, without TTLs and order.
            Something else may have changed them at the same time.
          </p>`
  }
  ${prediction(row)}`;
}

function patchLine(line: string): TemplateResult {
  const tone =
    /^(?:---|\+\+\+) /.test(line) || line.startsWith('@@')
      ? 'quiet'
      : line.startsWith('+')
        ? 'added'
        : line.startsWith('-')
          ? 'removed'
          : '';
  return html`<span class=${tone}>${`${line}\n`}</span>`;
}

const columns = [
  { head: 'Name', code: true, cell: ({ name }: ChangedAnswer) => name },
  { head: 'Type', code: true, cell: ({ type }: ChangedAnswer) => type },
  { head: 'Before', code: true, cell: ({ before }: ChangedAnswer) => outcomeText(before) },
  { head: 'After', code: true, cell: ({ after }: ChangedAnswer) => outcomeText(after) },
  {
    head: 'Clients',
    numeric: true,
    cell: ({ clients }: ChangedAnswer) => (clients === null ? 'over 64' : printNumber(clients)),
  },
  {
    head: 'Replies before',
    numeric: true,
    cell: ({ repliesBefore }: ChangedAnswer) => printNumber(repliesBefore),
  },
  {
    head: 'after',
    numeric: true,
    cell: ({ repliesAfter }: ChangedAnswer) => printNumber(repliesAfter),
  },
] as const;

/** The answers expected to change according to `ndots diff`, which runs in this page on request. */
function prediction({ id, before, after, answers }: ReloadRow): TemplateResult {
  const [old, now] = [before[0], after[0]];
  if (old === undefined || now === undefined) return html``;
  if (before.length > 1 || after.length > 1)
    return html`<p class="quiet">
      No prediction: the Corefile imports files. Run <code>ndots diff</code> where they are.
    </p>`;
  if (predicted.value !== id)
    return html`<p>
      <button
        type="button"
        class="button"
        @click=${() => {
          predicted.value = id;
          const names = answers.map(({ name, type }) => ({ name, type }));
          engine.run({ before: old.text, after: now.text, names });
        }}
      >
        Predict the changes
      </button>
    </p>`;
  const state = engine.state.value;
  const result = state.kind === 'done' ? state.result : null;
  return html`<h4>Predicted</h4>
    ${statusLine(state, result === null ? '' : `${result.questions} queries to both configurations, ${result.questions - result.same} with other answers.`)}
    ${state.kind === 'failed' ? problemList(state.problems) : nothing}
    ${
      result === null
        ? nothing
        : html`<p class="quiet">
              Not observed: ndots diff served both Corefiles in this page, with the objects of an
              example cluster and simulated upstreams.
            </p>
            ${result.left.map((text) => html`<p class="remark">Not compared: ${text}</p>`)}
            <ul class="findings">
              ${result.changes.map(changeItem)}
            </ul>`
    }`;
}
