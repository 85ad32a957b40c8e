/** Follows the server's stream for the current page. */
import { effect, signal, type Signal } from '@preact/signals-core';
import type { MapView } from '../../tools/watch/map-shape.ts';
import type { Views } from '../../tools/watch/view.ts';
import { asked, cluster, liveNames, page, refusalText, type LiveName } from './page-state.ts';

/** Frame type of each page. */
export interface PageFrames extends Views {
  readonly map: MapView;
}

export type StreamState =
  | 'connecting'
  | 'live'
  | 'paused'
  /** The server is not replying, and the browser keeps trying. */
  | 'lost'
  /** The server closed this stream because it was the oldest of too many. */
  | 'replaced'
  /** The server rejected the request because of an invalid filter. */
  | 'refused';

export const state: Signal<StreamState> = signal('connecting');
/** Why the server rejected the request, for people. */
export const refusal: Signal<string> = signal('');
/** The number of frames missed since the page was opened, because the browser was too slow. */
export const missed: Signal<number> = signal(0);
export const paused: Signal<boolean> = signal(false);
/** True while the page is visible. Hidden pages request nothing. */
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

/** The latest frame of a view, or null if there has been none. */
export function latest<V extends LiveName>(view: V): PageFrames[V] | null {
  return views[view].value;
}

/** Reopens a stream that another page's stream replaced. */
export function resume(): void {
  paused.value = false;
  if (state.value === 'replaced') state.value = 'connecting';
}

/** Follows the address until the page is closed. */
export function followViews(): void {
  document.addEventListener('visibilitychange', () => (visible.value = !document.hidden));
  // Never show one cluster's numbers under the name of another.
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
  source.addEventListener('refused', ({ data }: MessageEvent<string>) => {
    refusal.value = refusalText(JSON.parse(data) as { text: string });
    state.value = 'refused';
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

/** Rejected streams do not say why, so request the same as JSON. */
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
