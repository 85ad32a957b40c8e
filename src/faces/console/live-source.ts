/** Follows the view that the page shows, as the server sends it. */
import { effect, signal, type Signal } from '@preact/signals-core';
import type { MapView } from '../../tools/watch/map-shape.ts';
import type { Views } from '../../tools/watch/view.ts';
import { asked, cluster, liveNames, page, refusalText, type LiveName } from './page-state.ts';

/** The frames of each page. */
export interface PageFrames extends Views {
  readonly map: MapView;
}

export type StreamState =
  | 'connecting'
  | 'live'
  | 'paused'
  /** The server does not answer; the browser tries again. */
  | 'lost'
  /** Too many pages look at the server, and this one was the oldest. */
  | 'replaced'
  /** The server refuses the request: its filter is not valid. */
  | 'refused';

/** The current state of the stream. */
export const state: Signal<StreamState> = signal('connecting');
/** Why the server refuses, for people. */
export const refusal: Signal<string> = signal('');
/** Frames that the browser was too slow for, since the page was opened. */
export const missed: Signal<number> = signal(0);
export const paused: Signal<boolean> = signal(false);
/** True while the page is visible: a hidden page requests nothing. */
export const visible: Signal<boolean> = signal(!document.hidden);

const views: { readonly [V in LiveName]: Signal<PageFrames[V] | null> } = {
  now: signal(null),
  lookups: signal(null),
  clients: signal(null),
  names: signal(null),
  servers: signal(null),
  findings: signal(null),
  map: signal(null),
};

/** The last frame of a view; null: none has come. */
export function latest<V extends LiveName>(view: V): PageFrames[V] | null {
  return views[view].value;
}

/** Opens the stream again after another page took its place. */
export function resume(): void {
  paused.value = false;
  if (state.value === 'replaced') state.value = 'connecting';
}

/** Follows the address until the page is closed. */
export function followViews(): void {
  document.addEventListener('visibilitychange', () => (visible.value = !document.hidden));
  // Numbers of one cluster must not be shown as those of another.
  effect(() => {
    void cluster.value;
    for (const name of liveNames) views[name].value = null;
  });
  effect(() => {
    const key = asked.value;
    const name = page.value as LiveName;
    if (key === null) return undefined;
    if (paused.value) {
      state.value = 'paused';
      return undefined;
    }
    if (!visible.value) return undefined;
    const source = open(name, key);
    return () => source.close();
  });
}

function open(name: LiveName, key: string): EventSource {
  state.value = 'connecting';
  const source = new EventSource(`/api/live/${key}`);
  source.addEventListener('view', ({ data }: MessageEvent<string>) => {
    views[name].value = JSON.parse(data) as never;
    state.value = 'live';
    refusal.value = '';
  });
  source.addEventListener('missed', ({ data }: MessageEvent<string>) => {
    missed.value += Number(data);
  });
  source.addEventListener('replaced', () => {
    source.close();
    state.value = 'replaced';
  });
  source.addEventListener('error', () => {
    if (source.readyState !== EventSource.CLOSED) state.value = 'lost';
    else void explain(key);
  });
  return source;
}

/** A stream that is refused says nothing: the same as JSON says why. */
async function explain(key: string): Promise<void> {
  try {
    const response = await fetch(`/api/view/${key}`);
    if (response.status === 401) {
      refusal.value = 'The token is no longer valid: open the address that ndots console printed.';
    } else if (!response.ok) {
      refusal.value = refusalText((await response.json()) as { text: string });
    }
    state.value = 'refused';
  } catch {
    state.value = 'lost';
  }
}
