/** The Checks page: the state of each `ndots check serve` target, with the worst first. */
import { signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ChecksView, CheckSource } from '../cli/console/check-sources.ts';
import type { TargetStatus } from '../../tools/probe/watch.ts';
import { printLatency, printShare, printTime } from '../cli/live/figures.ts';
import { table, type Column } from '../web/table.ts';
import { counted } from './now-figures.ts';
import { tool } from './page-state.ts';
import { keepReading, readJson } from './read-json.ts';

/** Refresh interval, milliseconds. */
const READ_MS = 5000;

/** Null: no reply yet. */
const read: Signal<ChecksView | null> = signal(null);
const isLost = signal(false);

/** Refreshes the state while the page is open and visible. */
export function followChecks(): void {
  keepReading(
    () => tool.value === 'checks',
    READ_MS,
    async () => {
      const found = await readJson<ChecksView>('/api/checks');
      isLost.value = found === null;
      read.value = found ?? read.peek();
    },
  );
}

interface TargetRow extends TargetStatus {
  readonly source: string;
}

type Trouble = 'down' | TargetStatus['state'];
/** Puts the worst first. A failure is not an outage until a second round confirms it. */
const troubles: readonly Trouble[] = ['down', 'failed', 'unknown', 'warning', 'ok'];
const words: Readonly<Record<Trouble, string>> = {
  down: 'down',
  failed: 'failed once',
  unknown: 'unknown',
  warning: 'warning',
  ok: 'ok',
};

function troubleOf({ isDown, state }: TargetStatus): Trouble {
  return isDown ? 'down' : state;
}

export function checksPage(): TemplateResult {
  const view = read.value;
  if (view === null)
    return html`<p class="quiet" role="status">
      ${isLost.value ? 'The console is not responding.' : 'Reading checks…'}
    </p>`;
  if (view.sources.length === 0) return noSource();
  const rows = rowsOf(view.sources);
  return html`<p class="quiet" role="status">${summary(rows, view.atMs)}</p>
    ${failedList(view.sources)}
    ${rows.length === 0 ? nothing : table('Checks, worst first', columnsOf(view), rows, toneOf)}`;
}

function noSource(): TemplateResult {
  return html`<p class="quiet">
    No checker is configured. <code>ndots check serve</code> runs checks continuously, and
    <code>ndots console --checks HOST:PORT</code> shows them here.
  </p>`;
}

function rowsOf(sources: readonly CheckSource[]): readonly TargetRow[] {
  return sources
    .flatMap(({ name, targets }) => targets.map((target) => ({ ...target, source: name })))
    .toSorted(
      (one, other) =>
        troubles.indexOf(troubleOf(one)) - troubles.indexOf(troubleOf(other)) ||
        one.budgetLeft - other.budgetLeft,
    );
}

function summary(rows: readonly TargetRow[], atMs: number): string {
  const counts = troubles.flatMap((trouble) => {
    const count = rows.filter((row) => troubleOf(row) === trouble).length;
    return count === 0 ? [] : [`${count} ${words[trouble]}`];
  });
  const targets = [counted(rows.length, 'target'), ...counts].join(', ');
  return `${targets}, as of ${printTime(atMs)} UTC${isLost.value ? '. The console is not responding.' : ''}`;
}

function failedList(sources: readonly CheckSource[]): TemplateResult | typeof nothing {
  const away = sources.filter(({ failure }) => failure !== '');
  if (away.length === 0) return nothing;
  return html`<ul class="findings">
    ${away.map(failed)}
  </ul>`;
}

function failed({ name, failure }: CheckSource): TemplateResult {
  return html`<li class="finding error">
    <p class="head"><code>${name}</code></p>
    <p class="text">${failure}</p>
    <p class="hint">Is this the --listen address of ndots check serve?</p>
  </li>`;
}

function toneOf(row: TargetRow): string {
  const trouble = troubleOf(row);
  if (trouble === 'down' || trouble === 'failed') return 'error';
  return trouble === 'ok' && row.alert === null ? '' : 'warning';
}

function columnsOf({ sources }: ChecksView): readonly Column<TargetRow>[] {
  return [
    {
      head: 'Check',
      cell: ({ check, title }) => html`${check} <span class="quiet">${title}</span>`,
    },
    { head: 'Target', code: true, cell: ({ target }) => target },
    { head: 'State', cell: (row) => words[troubleOf(row)] },
    { head: 'Result', cell: ({ text }) => text },
    { head: 'Took', numeric: true, cell: ({ tookMs }) => printLatency(tookMs) },
    {
      head: 'Budget left',
      numeric: true,
      cell: ({ budgetLeft }) => (budgetLeft <= 0 ? 'none' : printShare(budgetLeft)),
    },
    { head: 'Burns', cell: ({ alert }) => alert ?? '' },
    ...(sources.length > 1
      ? [{ head: 'Checker', code: true, cell: ({ source }: TargetRow) => source }]
      : []),
  ];
}
