/**
 * The page state, which is either the view with its filter and order, or a tool with its input. All of it is in the
 * address.
 */
import { computed, effect, signal, type ReadonlySignal, type Signal } from '@preact/signals-core';
import { HASH_MAX, parseHash, printHash } from '../web/hash-state.ts';
import { viewNames, type ViewName } from '../../tools/watch/view.ts';

/** Pages that the server streams frames for. */
export type LiveName = ViewName | 'map';
export const liveNames: readonly LiveName[] = [...viewNames, 'map'];

/** Pages without frames, which are tools that run in the browser and requests to servers. */
export type ToolName = 'trace' | 'configuration' | 'cache' | 'checks';
const toolNames: readonly ToolName[] = ['trace', 'configuration', 'cache', 'checks'];

export type ConsolePage = LiveName | ToolName;
export const pageNames: readonly ConsolePage[] = [...liveNames, ...toolNames];
/** Keyboard shortcuts for the pages, in the same order. */
export const pageKeys = '1234567890c';

const facts = document.getElementById('page')!.dataset;
const { privacy = 'full', caches = 'false' } = facts;
/** The clusters that the server reads from. A single empty name means that there is at most one. */
export const clusters: readonly string[] = JSON.parse(facts['clusters'] ?? '[""]') as string[];
/** True if the server can query caches. */
export const hasCaches: boolean = caches === 'true' && privacy !== 'counts';
/** False if the privacy level hides clients, in which case lookups cannot be traced as one. */
export const showsClients: boolean = privacy === 'full';

/** True if the privacy level lets the page show anything. */
export function isShown(name: ConsolePage): boolean {
  if (privacy !== 'counts') return true;
  return name === 'now' || (name !== 'cache' && toolNames.some((each) => each === name));
}

export const cluster: Signal<string> = signal(clusters[0] ?? '');
/** The name to display: the selected cluster or the traffic source. */
export const shownSource: ReadonlySignal<string> = computed(() =>
  clusters.length > 1 ? cluster.value : (facts['source'] ?? ''),
);

export const page: Signal<ConsolePage> = signal('now');
/** Filter expression, in `ndots capture` syntax. */
export const filter: Signal<string> = signal('');
/** Sort column, or empty for the view's default. */
export const sort: Signal<string> = signal('');
export const reversed: Signal<boolean> = signal(false);
/** The expanded row, or empty if there is none. */
export const opened: Signal<string> = signal('');
/** Input for the current tool, where it differs from the default. */
export const toolInput: Signal<ReadonlyMap<string, string>> = signal(new Map());

/** The current tool, or null on a page with frames. */
export const tool: ReadonlySignal<ToolName | null> = computed(
  () => toolNames.find((each) => each === page.value) ?? null,
);

/** Path of the frames to request, such as `lookups?filter=…`. Null if a tool is shown. */
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

/** Opens a page and resets its order and expanded row. */
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

export function showTool(name: ToolName, input: Readonly<Record<string, string>>): void {
  show(name);
  toolInput.value = new Map(Object.entries(input));
}

/** Sorts by a column, or reverses the order if the page is already sorted by it. */
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

/** Synchronizes the state with the address, even when the user navigates back. */
export function followAddress(): void {
  const read = (): void => {
    const { page: name, parameters } = parseHash(location.hash);
    const known = pageNames.find((each) => each === name && isShown(each));
    // This was a link within the page, such as the skip link, so restore the address.
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
    // Adds a history entry for each change of the page, but not for typing a filter.
    if (page.value === before) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    before = page.value;
  });
}
