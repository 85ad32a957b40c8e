/** The Cache page: shows the cache entries that servers have for a name side by side, and flushes them if allowed. */
import { batch, effect, signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { CacheAnswerDocument } from '../cli/cache/cache-answers.ts';
import { entryHeads } from '../cli/cache/entry-cells.ts';
import type { CachesView } from '../cli/console/server-caches.ts';
import { table, type Column } from '../web/table.ts';
import { cacheRows, type CacheRow } from './cache-rows.ts';
import { counted } from './now-figures.ts';
import { ofCluster, refusalText, tool, toolInput } from './page-state.ts';

/** The text in the field. The query that was submitted is in the address. */
const typed = signal('');
const typedBelow = signal(false);
/** Null: no reply yet. */
const found: Signal<CachesView | null> = signal(null);
const refusal = signal('');
const isBusy = signal(false);
/** The confirmation before a flush, the flush itself, and its result. */
const flush: Signal<'none' | 'asks' | 'runs' | { readonly done: string }> = signal('none');

interface CacheQuestion {
  readonly name: string;
  readonly below: boolean;
}

function questionNow(): CacheQuestion {
  const input = toolInput.value;
  return { name: input.get('name') ?? '', below: input.get('below') === '1' };
}

/** Queries the servers for the name in the address. */
export function followCache(): void {
  effect(() => {
    if (tool.value !== 'cache') return;
    const question = questionNow();
    batch(() => {
      typed.value = question.name;
      typedBelow.value = question.below;
      flush.value = 'none';
    });
    void explain(question);
  });
}

let latest = 0;

async function explain(question: CacheQuestion): Promise<void> {
  const own = ++latest;
  batch(() => {
    isBusy.value = true;
    refusal.value = '';
    if (found.peek() !== null) found.value = { ...found.peek()!, answers: [] };
  });
  const answer = await send('/api/cache', question);
  if (own !== latest) return;
  batch(() => {
    isBusy.value = false;
    if (typeof answer === 'string') refusal.value = answer;
    else found.value = answer;
  });
}

async function runFlush(question: CacheQuestion): Promise<void> {
  flush.value = 'runs';
  const answer = await send('/api/cache/flush', question, {
    method: 'POST',
    headers: { 'ndots-console': '1' },
  });
  await explain(question);
  if (typeof answer === 'string') refusal.value = answer;
  flush.value = typeof answer === 'string' ? 'none' : { done: flushedText(answer.answers) };
}

/** @returns the reply, or an error for people */
async function send(
  path: string,
  { name, below }: CacheQuestion,
  init: RequestInit = {},
): Promise<CachesView | string> {
  const query = ofCluster({ name, ...(below && { below: '1' }) });
  try {
    const response = await fetch(`${path}?${query}`, init);
    const answer = (await response.json()) as CachesView | { text: string };
    return 'text' in answer ? refusalText(answer) : answer;
  } catch {
    return 'The console is not responding.';
  }
}

function flushedText(answers: readonly CacheAnswerDocument[]): string {
  const failed = answers.filter(({ failure }) => failure !== undefined);
  const servers = counted(answers.length - failed.length, 'server');
  const rest =
    failed.length === 0 ? '' : ` Not flushed: ${failed.map(({ server }) => server).join(', ')}.`;
  return `${counted(entriesIn(answers), 'entry', 'entries')} flushed on ${servers}.${rest}`;
}

function entriesIn(answers: readonly CacheAnswerDocument[]): number {
  return answers
    .flatMap(({ caches }) => caches.flatMap(({ told }) => told))
    .reduce((sum, each) => sum + each.found, 0);
}

export function cachePage(): TemplateResult {
  const view = found.value;
  return html`${form()}
    <p class=${refusal.value === '' ? 'quiet' : 'error'} role="status">${statusText()}</p>
    ${view !== null && view.isGiven ? answersOf(view) : nothing}`;
}

function form(): TemplateResult {
  const submit = (event: Event): void => {
    event.preventDefault();
    const name = typed.value.trim();
    const next = new Map([
      ...(name === '' ? [] : [['name', name] as const]),
      ...(typedBelow.value ? [['below', '1'] as const] : []),
    ]);
    toolInput.value = next;
  };
  return html`<form class="ask" role="search" aria-label="Cache entries" @submit=${submit}>
    <label class="label" for="cached-name">Name</label>
    <input
      id="cached-name"
      type="text"
      autocomplete="off"
      spellcheck="false"
      placeholder="www.example.com"
      .value=${typed.value}
      @input=${(event: InputEvent) => (typed.value = (event.target as HTMLInputElement).value)}
    />
    <label class="check"
      ><input
        type="checkbox"
        .checked=${typedBelow.value}
        @change=${(event: Event) => (typedBelow.value = (event.target as HTMLInputElement).checked)}
      />
      and all names below it</label
    >
    <button type="submit" class="button">Explain</button>
  </form>`;
}

function statusText(): string | TemplateResult {
  if (refusal.value !== '') return refusal.value;
  if (found.value?.isGiven === false)
    return html`No server is configured.
      <code>ndots console --admin HOST --admin-token FILE</code> queries servers with the admin
      directive; <code>--replicas</code> queries all DNS pods in the cluster.`;
  if (isBusy.value) return 'Asking the servers.';
  const flushed = flush.value;
  if (typeof flushed === 'object') return flushed.done;
  const { name } = questionNow();
  if (name === '' || found.value === null)
    return 'Shows the entries that each worker of each server has for a name.';
  const { answers } = found.value;
  return `${counted(entriesIn(answers), 'entry', 'entries')} on ${counted(answers.length, 'server')}.`;
}

function answersOf({ answers, mayFlush }: CachesView): TemplateResult {
  const { rows, leftOut } = cacheRows(answers);
  const differing = rows.some(({ differs }) => differs);
  return html`${failedList(answers)}
  ${rows.length === 0 ? nothing : table('Cache entries', columnsOf(answers), rows, toneOf)}
  ${
    differing
      ? html`<p class="quiet">
          In the marked rows, caches have different results for the same question.
        </p>`
      : nothing
  }
  ${leftOut > 0 ? html`<p class="quiet">${counted(leftOut, 'entry', 'entries')} more are not shown.</p>` : nothing}
  ${sizes(answers)} ${entriesIn(answers) === 0 ? nothing : flushBar(answers, mayFlush)}`;
}

function failedList(answers: readonly CacheAnswerDocument[]): TemplateResult | typeof nothing {
  const failed = answers.filter(({ failure }) => failure !== undefined);
  if (failed.length === 0) return nothing;
  return html`<ul class="findings">
    ${failed.map(
      ({ server, failure = '', remedy = '' }) =>
        html`<li class="finding error">
          <p class="head"><code>${server}</code></p>
          <p class="text">${failure}</p>
          <p class="remedy">${remedy}</p>
        </li>`,
    )}
  </ul>`;
}

function toneOf({ differs }: CacheRow): string {
  return differs ? 'warning' : '';
}

function columnsOf(answers: readonly CacheAnswerDocument[]): readonly Column<CacheRow>[] {
  return [
    ...entryHeads.map((head, index): Column<CacheRow> => ({
      head,
      numeric: head === 'Hits',
      code: head !== 'Hits',
      cell: ({ cells }) => cells[index] ?? '',
    })),
    ...(answers.length > 1
      ? [{ head: 'Server', code: true, cell: ({ server }: CacheRow) => server }]
      : []),
    { head: 'Worker', numeric: true, cell: ({ worker }) => worker },
  ];
}

/** One line per cache. */
function sizes(answers: readonly CacheAnswerDocument[]): TemplateResult {
  return html`<ul class="quiet">
    ${answers.flatMap(({ server, caches }) =>
      caches.map(({ zones, view, workers, told }) => {
        const matching = told.reduce((sum, each) => sum + each.found, 0);
        const size = told.reduce((sum, each) => sum + each.size, 0);
        const silent = workers - told.length;
        return html`<li>
          <code>${server}</code>, cache of
          ${zones.join(' ')}${view === '' ? '' : ` (view ${view})`}: ${matching} of
          ${counted(size, 'entry', 'entries')}${silent > 0 ? `; ${silent} of ${workers} workers did not answer in time` : ''}
        </li>`;
      }),
    )}
  </ul>`;
}

function flushBar(answers: readonly CacheAnswerDocument[], mayFlush: boolean): TemplateResult {
  if (!mayFlush)
    return html`<p class="quiet">
      This console cannot flush, because it was started without <code>--allow flush</code>.
    </p>`;
  if (flush.value !== 'asks')
    return html`<p>
      <button
        type="button"
        class="button"
        ?disabled=${flush.value === 'runs'}
        @click=${() => turnTo('asks', 'flush-now')}
      >
        Flush these entries
      </button>
    </p>`;
  const what = counted(entriesIn(answers), 'entry', 'entries');
  const servers = counted(answers.length, 'server');
  return html`<p>
    Flush ${what} on ${servers}? The next queries go upstream.
    <button
      id="flush-now"
      type="button"
      class="button"
      @click=${() => void runFlush(questionNow())}
    >
      Flush now
    </button>
    <button type="button" class="button" @click=${() => turnTo('none', 'cached-name')}>
      Keep them
    </button>
  </p>`;
}

/** Updates the bar and moves the focus to whichever element replaces the button. */
function turnTo(next: 'none' | 'asks', focused: string): void {
  flush.value = next;
  queueMicrotask(() => document.getElementById(focused)?.focus());
}
