/** The state of the page: its view, filter and order. All of it is in the address. */
import { computed, effect, signal, type ReadonlySignal, type Signal } from '@preact/signals-core';
import { parseHash, printHash } from '../web/hash-state.ts';
import { viewNames, type ViewName } from '../../tools/watch/view.ts';

export const page: Signal<ViewName> = signal('now');
/** A line of filters, in the words of `ndots capture`. */
export const filter: Signal<string> = signal('');
/** The column; empty: the default of the view. */
export const sort: Signal<string> = signal('');
/** True if the order is reversed. */
export const reversed: Signal<boolean> = signal(false);
/** The row that is open; empty: none is. */
export const opened: Signal<string> = signal('');

/** The path that the page requests: `lookups?filter=…`. */
export const asked: ReadonlySignal<string> = computed(() => {
  const parameters = new URLSearchParams();
  if (filter.value.trim() !== '') parameters.set('filter', filter.value);
  if (sort.value !== '') parameters.set('sort', sort.value);
  if (reversed.value) parameters.set('reversed', '1');
  const query = parameters.toString();
  return `${page.value}${query === '' ? '' : `?${query}`}`;
});

/** Goes to a view, and resets the order and the open row. */
export function show(view: ViewName, line: string = filter.value): void {
  page.value = view;
  filter.value = line;
  sort.value = '';
  reversed.value = false;
  opened.value = '';
}

/** Sorts by a column, or turns the order of the one that it is sorted by. */
export function sortBy(column: string): void {
  if (sort.value === column) reversed.value = !reversed.value;
  else {
    sort.value = column;
    reversed.value = false;
  }
}

/** Keeps the state and the address the same, also when the person goes back. */
export function followAddress(): void {
  const read = (): void => {
    const { page: name, parameters } = parseHash(location.hash);
    page.value = viewNames.find((each) => each === name) ?? 'now';
    filter.value = parameters.get('filter') ?? '';
    sort.value = parameters.get('sort') ?? '';
    reversed.value = parameters.get('reversed') === '1';
    opened.value = parameters.get('open') ?? '';
  };
  read();
  addEventListener('hashchange', read);
  let before: ViewName = page.value;
  effect(() => {
    const parameters = new Map<string, string>();
    if (filter.value !== '') parameters.set('filter', filter.value);
    if (sort.value !== '') parameters.set('sort', sort.value);
    if (reversed.value) parameters.set('reversed', '1');
    if (opened.value !== '') parameters.set('open', opened.value);
    const hash = printHash({ page: page.value, parameters });
    if (hash === location.hash) return;
    // Another view is a step back in the history; a filter that is being typed is not.
    if (page.value === before) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    before = page.value;
  });
}
