/** The DNS pods behind one address, told apart by how late they are or how much they lose. */
import type { Observations } from './observations.ts';
import { lossRate } from './outcomes.ts';
import { ServerView, type ServerHistory } from './server-view.ts';
import { MIN_CASES, MIN_QUERIES } from '../thresholds/evidence.ts';
import { PODS_APART } from '../thresholds/lateness.ts';
import { LOSSY_PODS } from '../thresholds/transport.ts';

/** One pod, and the mean of its reply times in that time, milliseconds. */
export interface PodPace {
  readonly address: string;
  readonly meanMs: number;
}

/** Pods that are late while others behind the address are not; empty: that is not seen. */
export function latePods(
  observed: Observations,
  server: ServerView,
  fromS: number,
  toS: number,
): { readonly late: readonly PodPace[]; readonly quick: readonly PodPace[] } {
  const paces = podsOf(observed, server).flatMap(({ address, history }) => {
    const meanMs = meanOf(within(history, fromS, toS));
    return meanMs === null ? [] : { address, meanMs };
  });
  const worst = Math.max(...paces.map(({ meanMs }) => meanMs));
  const quick = paces.filter(({ meanMs }) => meanMs * PODS_APART.times <= worst);
  const late = paces.filter((pace) => !quick.includes(pace));
  return quick.length === 0 ? { late: [], quick: [] } : { late, quick };
}

/** True if some replies come at once, and the others very late: so do two servers. */
export function isOfTwoPaces({ history }: ServerView, fromS: number, toS: number): boolean {
  const seconds = within(history, fromS, toS);
  const meanMs = meanOf(seconds);
  return meanMs !== null && meanMs >= PODS_APART.ofUsual * ServerView.usualMs(seconds);
}

/** A pod, and what it was asked and left without a reply. */
export interface PodLosses {
  readonly address: string;
  readonly asked: number;
  readonly lost: number;
}

/**
 * Pods to which a part of the queries is lost while those to others are not, and not by chance;
 * null: it does not go by the pod.
 */
export function lossyPods({ backends }: Observations): {
  readonly lossy: readonly PodLosses[];
  readonly spared: readonly PodLosses[];
} | null {
  const pods = backends.list
    .filter(({ outcomes }) => outcomes.asked >= MIN_QUERIES)
    .map(({ address, outcomes: { asked, lost } }) => ({ address, asked, lost }));
  const lossy = pods.filter(
    (pod) =>
      pod.lost >= MIN_CASES &&
      lossRate(pod) >= LOSSY_PODS.least &&
      lossRate(pod) <= LOSSY_PODS.most,
  );
  const least = Math.min(...lossy.map(lossRate));
  const spared = pods.filter(
    ({ asked, lost }) =>
      asked * least >= LOSSY_PODS.expected && lost <= LOSSY_PODS.spared * asked * least,
  );
  if (lossy.length === 0 || spared.length === 0) return null;
  return lossy.length + spared.length === pods.length ? { lossy, spared } : null;
}

function podsOf(
  { backends }: Observations,
  { address, clients }: ServerView,
): readonly ServerView[] {
  return backends.list.filter(
    (view) => view.address !== address && [...view.clients].some((client) => clients.has(client)),
  );
}

function within(history: ServerHistory, fromS: number, toS: number): ServerHistory {
  return history.filter(([second]) => second >= fromS && second <= toS);
}

/** Null: too few replies. */
function meanOf(seconds: ServerHistory): number | null {
  const replies = seconds.reduce((sum, [, { asked, lost }]) => sum + asked - lost, 0);
  if (replies < MIN_QUERIES) return null;
  return seconds.reduce((sum, [, { latencyMs }]) => sum + latencyMs, 0) / replies;
}
