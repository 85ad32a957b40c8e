/** The page state: the view with filter and order, or a tool with its input. The address contains all of it. */
import { computed, effect, signal, type ReadonlySignal, type Signal } from '@preact/signals-core';
import { HASH_MAX, parseHash, printHash } from '../web/hash-state.ts';
import { viewNames, type ViewName } from '../../tools/watch/view.ts';

/** Pages that the server streams frames for. */
export type LiveName = ViewName | 'map';
export const liveNames: readonly LiveName[] = [...viewNames, 'map'];

/** Pages without frames: tools that run in the browser, and requests to servers. */
export type ToolName = 'trace' | 'configuration' | 'cache' | 'checks';
const toolNames: readonly ToolName[] = ['trace', 'configuration', 'cache', 'checks'];

export type ConsolePage = LiveName | ToolName;
export const pageNames: readonly ConsolePage[] = [...liveNames, ...toolNames];
/** Keyboard shortcuts of the pages, in the same order. */
export const pageKeys = '1234567890c';

const facts = document.getElementById('page')!.dataset;
const { privacy = 'full', caches = 'false' } = facts;
/** The clusters that the server reads; a single empty name means at most one cluster. */
export const clusters: readonly string[] = JSON.parse(facts['clusters'] ?? '[""]') as string[];
/** True if the server can query caches. */
export const hasCaches: boolean = caches === 'true' && privacy !== 'counts';
/** False if the privacy level hides clients, so that lookups cannot be traced as one. */
export const showsClients: boolean = privacy === 'full';

/** True if the privacy level allows the page to show anything. */
export function isShown(name: ConsolePage): boolean {
  if (privacy !== 'counts') return true;
  return name === 'now' || (name !== 'cache' && toolNames.some((each) => each === name));
}

/** The selected cluster. */
export const cluster: Signal<string> = signal(clusters[0] ?? '');
/** Display name: the selected cluster or the traffic source. */
export const shownSource: ReadonlySignal<string> = computed(() =>
  clusters.length > 1 ? cluster.value : (facts['source'] ?? ''),
);

export const page: Signal<ConsolePage> = signal('now');
/** Filter expression, in `ndots capture` syntax. */
export const filter: Signal<string> = signal('');
/** Sort column; empty: the view's default. */
export const sort: Signal<string> = signal('');
/** True if the order is reversed. */
export const reversed: Signal<boolean> = signal(false);
/** The expanded row; empty: none. */
export const opened: Signal<string> = signal('');
/** Input of the current tool, where it differs from the default. */
export const toolInput: Signal<ReadonlyMap<string, string>> = signal(new Map());

/** The current tool, or null if a page with frames is shown. */
export const tool: ReadonlySignal<ToolName | null> = computed(
  () => toolNames.find((each) => each === page.value) ?? null,
);

/** Path of the frames to request: `lookups?filter=…`, or null if a tool is shown. */
export const asked: ReadonlySignal<string | null> = computed(() => {
  if (tool.value !== null) return null;
  const query = viewParameters().toString();
  return `${page.value}${query === '' ? '' : `?${query}`}`;
});

/** Request parameters for the selected cluster. */
export function ofCluster(given: Readonly<Record<string, string>> = {}): URLSearchParams {
  const isChosen = cluster.value !== clusters[0];
  return new URLSearchParams({ ...given, ...(isChosen && { cluster: cluster.value }) });
}

/** Filter and order as request parameters. */
function viewParameters(): URLSearchParams {
  const parameters = ofCluster();
  if (filter.value.trim() !== '') parameters.set('filter', filter.value);
  if (sort.value !== '') parameters.set('sort', sort.value);
  if (reversed.value) parameters.set('reversed', '1');
  return parameters;
}

/** Opens a page and resets the order and the expanded row. */
export function show(name: ConsolePage, line: string = filter.value): void {
  page.value = name;
  filter.value = line;
  sort.value = '';
  reversed.value = false;
  opened.value = '';
  toolInput.value = new Map();
}

/** Text for a request that the server rejected. */
export function refusalText({ text, hint }: { text: string; hint?: string | null }): string {
  return [text, hint ?? ''].filter((part) => part !== '').join('. ');
}

/** Opens a tool with this input. */
export function showTool(name: ToolName, input: Readonly<Record<string, string>>): void {
  show(name);
  toolInput.value = new Map(Object.entries(input));
}

/** Sorts by a column, or reverses the order if it is already the sort column. */
export function sortBy(column: string): void {
  if (sort.value === column) reversed.value = !reversed.value;
  else {
    sort.value = column;
    reversed.value = false;
  }
}

/** The part of the address after `#`. */
function hashNow(): string {
  if (tool.value !== null) {
    const parameters = new Map([...toolInput.value, ...ofCluster()]);
    return printHash({ page: tool.value, parameters });
  }
  const parameters = new Map(viewParameters());
  if (opened.value !== '') parameters.set('open', opened.value);
  return printHash({ page: page.value, parameters });
}

function withoutCluster(parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...parameters].filter(([key]) => key !== 'cluster'));
}

/** Keeps the state and the address in sync, including when the user navigates back. */
export function followAddress(): void {
  const read = (): void => {
    const { page: name, parameters } = parseHash(location.hash);
    const known = pageNames.find((each) => each === name && isShown(each));
    // A link within the page, such as the skip link: restore the address.
    if (known === undefined && name !== '') return history.replaceState(null, '', hashNow());
    page.value = known ?? 'now';
    const isTool = toolNames.some((each) => each === known);
    const given = parameters.get('cluster') ?? clusters[0]!;
    cluster.value = clusters.includes(given) ? given : clusters[0]!;
    toolInput.value = isTool ? withoutCluster(parameters) : new Map();
    if (isTool) return;
    filter.value = parameters.get('filter') ?? '';
    sort.value = parameters.get('sort') ?? '';
    reversed.value = parameters.get('reversed') === '1';
    opened.value = parameters.get('open') ?? '';
  };
  read();
  addEventListener('hashchange', read);
  let before: ConsolePage = page.value;
  effect(() => {
    const hash = hashNow();
    if (hash === location.hash || hash.length > HASH_MAX) return;
    // Changing the page adds a history entry; typing a filter does not.
    if (page.value === before) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    before = page.value;
  });
}
