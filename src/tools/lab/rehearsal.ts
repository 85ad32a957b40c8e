/**
 * Rehearses a rollout of the DNS Deployment. A few durations determine how many queries are lost. The number is first
 * calculated, query by query in virtual time, and then measured in a lab. New pods start before old ones end (maxSurge:
 * 1), one at a time.
 */
import { printSpan } from '../../server/base/elapsed.ts';
import { seededRandom } from '../../server/base/random.ts';
import { forgetConnections } from './conntrack.ts';
import { clientPod, usualCorefile, usualObjects } from './defaults.ts';
import type { LabCluster } from './cluster.ts';
import { withEndpoints } from './endpoints.ts';
import { load, longestOutageMs } from './load.ts';
import { DNS_SERVICE } from './cluster-plan.ts';
import { act, within, type Act, type Story } from './story.ts';
import { pause } from './pause.ts';

/** Times in milliseconds. */
export interface RolloutTimes {
  readonly pods: number;
  /** The number of pods that may end before a new one is ready, 0 or 1 (the Deployment's maxUnavailable). */
  readonly unavailable: 0 | 1;
  /** UDP queries per second from all clients combined. */
  readonly rate: number;
  /** The number of source ports. A reused port matches a connection that the kernel is still tracking. */
  readonly ports: number;
  /** True if ports are random, as the kernel picks them for new sockets. False if they are used in turn. */
  readonly randomPorts: boolean;
  /** Milliseconds during which clients send queries before the first pod ends. */
  readonly warmMs: number;
  /** Milliseconds from a new pod's start until it is ready. */
  readonly readyMs: number;
  /**
   * Milliseconds from SIGTERM until the readiness probe has failed, which is at most periodSeconds × failureThreshold.
   */
  readonly unreadyMs: number;
  /** Milliseconds from a change to the endpoints until all nodes have new rules. */
  readonly propagationMs: number;
  /** `health { lameduck }`: how long a server continues to answer after SIGTERM. */
  readonly lameduckMs: number;
  /** `nf_conntrack_udp_timeout`: how long the kernel tracks a UDP connection. */
  readonly conntrackMs: number;
  /** True if connections to a removed pod stay in the kernel's table, as happens without kube-proxy. */
  readonly entriesStay: boolean;
}

interface RolloutMoment {
  readonly atMs: number;
  /**
   * `add` if a pod gets rules, `end` if it gets SIGTERM, `remove` if its rules are gone, `forget` if kube-proxy removes
   * its tracked connections.
   */
  readonly what: 'add' | 'end' | 'remove' | 'forget';
  /** Old pods are numbered from 0, followed by new ones. */
  readonly pod: number;
}

/** Milliseconds after the last step. */
const CALM_MS = 1000;
/** Milliseconds between the end of a pod and the next step. */
const PAUSE_MS = 300;
/**
 * The time from a process's exit until its pod no longer counts as `serving` in the EndpointSlice. In a real cluster
 * (Kubernetes 1.36), this took 500 to 1700 ms, because the kubelet lists its containers once a second.
 */
const END_NOTICED_MS = 1000;
/** In milliseconds. After having replies for this long, a connection is a stream (nf_conntrack_proto_udp). */
const STREAM_AFTER_MS = 2000;
/** The defaults are 120 s for nf_conntrack_udp_timeout_stream and 30 s for nf_conntrack_udp_timeout. */
const STREAM_FACTOR = 4;

/** The earliest times after SIGTERM at which new rules apply and tracked connections are removed. */
function endOf({ propagationMs, lameduckMs, unreadyMs }: RolloutTimes): {
  readonly removeMs: number;
  readonly forgetMs: number;
} {
  // kube-proxy sends no new connections to a terminating endpoint. It removes tracked ones only once the endpoint is no
  // longer *serving*, because its readiness probe failed or its process exited.
  const servingMs = Math.min(unreadyMs, lameduckMs + END_NOTICED_MS);
  return { removeMs: propagationMs, forgetMs: servingMs + propagationMs };
}

/** The steps in a rollout, and when it ends. */
function timeline(times: RolloutTimes): {
  readonly moments: readonly RolloutMoment[];
  readonly endMs: number;
} {
  const { pods, unavailable, warmMs, readyMs, propagationMs, lameduckMs, entriesStay } = times;
  const { removeMs, forgetMs } = endOf(times);
  const moments: RolloutMoment[] = [];
  const add = (atMs: number, what: RolloutMoment['what'], pod: number): void =>
    void moments.push({ atMs, what, pod });
  let atMs = warmMs;
  let lastMs = 0;
  for (let pod = 0; pod < pods; pod++) {
    if (unavailable === 0) {
      atMs += readyMs + propagationMs;
      add(atMs, 'add', pods + pod);
    }
    add(atMs, 'end', pod);
    add(atMs + removeMs, 'remove', pod);
    if (!entriesStay) add(atMs + forgetMs, 'forget', pod);
    lastMs = atMs + Math.max(removeMs, forgetMs, lameduckMs);
    if (unavailable === 1) {
      atMs += readyMs + propagationMs;
      add(atMs, 'add', pods + pod);
    } else atMs += Math.max(propagationMs, lameduckMs) + PAUSE_MS;
  }
  moments.sort((a, b) => a.atMs - b.atMs);
  return { moments, endMs: Math.max(atMs, lastMs) + CALM_MS };
}

export interface Prediction {
  readonly sent: number;
  readonly lost: number;
  /** The minimum and maximum over the averaged runs. */
  readonly range: readonly [least: number, most: number];
  /** New connections to a pod that has ended but still has rules, calculated as one would by hand. */
  readonly inTheDark: number;
  /** The longest time for which a pod has ended but still has rules, in milliseconds. */
  readonly darkMs: number;
  /**
   * The longest time for which a pod has ended but known ports still lead to it, in milliseconds. Infinite if nothing
   * removes their connections.
   */
  readonly keptMs: number;
  /** The fraction of queries whose port is reused before the kernel forgets its connection. */
  readonly again: number;
  readonly because: string;
}

/** The number of runs averaged in a prediction. */
const RUNS = 25;

/** Follows each query through the rules and the kernel's connection table. */
export function predictLoss(times: RolloutTimes): Prediction {
  const runs = Array.from({ length: RUNS }, (_, seed) => lossOfOne(times, seed + 1));
  const { lameduckMs, pods, rate, entriesStay } = times;
  const { endMs } = timeline(times);
  const { removeMs, forgetMs } = endOf(times);
  const darkMs = Math.max(0, removeMs - lameduckMs);
  const keptMs = entriesStay ? Infinity : Math.max(0, forgetMs - lameduckMs);
  const again = portsAgain(times);
  return {
    sent: Math.round((rate * endMs) / 1000),
    lost: Math.round(runs.reduce((sum, lost) => sum + lost, 0) / RUNS),
    range: [Math.min(...runs), Math.max(...runs)],
    inTheDark: Math.round(((rate * darkMs) / 1000 / (pods + 1)) * pods),
    darkMs,
    keptMs,
    again,
    because: reasonOf(times, darkMs, keptMs, again),
  };
}

/** The fraction of queries whose port was used so recently that the kernel is still tracking it. */
function portsAgain({ ports, rate, conntrackMs, randomPorts, warmMs }: RolloutTimes): number {
  if (!randomPorts) return (ports / rate) * 1000 < conntrackMs ? 1 : 0;
  return 1 - Math.exp((-rate * Math.min(conntrackMs, warmMs)) / 1000 / ports);
}

function reasonOf(times: RolloutTimes, darkMs: number, keptMs: number, again: number): string {
  const { pods, rate, entriesStay } = times;
  const parts = [
    `${rate}/s × ${printSpan(darkMs)} that a deleted pod still has rules, ÷ ${pods + 1} pods, × ${pods}`,
  ];
  if (again > 0.001 && keptMs > 0) {
    const which = again === 1 ? 'every port comes' : `${Math.round(again * 100)} % of ports come`;
    const how = entriesStay
      ? 'nothing removes connections to the old pod'
      : `the old pod stops serving ${printSpan(endOf(times).forgetMs - times.propagationMs)} after SIGTERM, so its connections stay ${printSpan(keptMs)} longer than it answers`;
    parts.push(
      `${which} again within the ${printSpan(times.conntrackMs)} that the kernel keeps a connection, and ${how}`,
    );
  }
  return parts.join('; ');
}

function lossOfOne(times: RolloutTimes, seed: number): number {
  const { pods, rate, ports, randomPorts, lameduckMs, conntrackMs } = times;
  const { moments, endMs } = timeline(times);
  const random = seededRandom(seed * 7919);
  const entries = new Map<number, { readonly pod: number; firstMs: number; lastMs: number }>();
  const deadFrom = new Map<number, number>();
  const behind = new Set(Array.from({ length: pods }, (_, pod) => pod));
  let next = 0;
  let lost = 0;
  for (let query = 0; query < (rate * endMs) / 1000; query++) {
    const nowMs = (query * 1000) / rate;
    for (; next < moments.length && moments[next]!.atMs <= nowMs; next++) {
      const { what, pod, atMs } = moments[next]!;
      if (what === 'add') behind.add(pod);
      else if (what === 'end') deadFrom.set(pod, atMs + lameduckMs);
      else if (what === 'remove') behind.delete(pod);
      else for (const [port, entry] of entries) if (entry.pod === pod) entries.delete(port);
    }
    const port = randomPorts ? random.integer(ports) : query % ports;
    const known = entries.get(port);
    const isStream = known !== undefined && known.lastMs - known.firstMs > STREAM_AFTER_MS;
    const keptMs = isStream ? conntrackMs * STREAM_FACTOR : conntrackMs;
    const isKnown = known !== undefined && nowMs - known.lastMs < keptMs;
    const pod = isKnown ? known.pod : [...behind][random.integer(behind.size)]!;
    if (isKnown) known.lastMs = nowMs;
    else entries.set(port, { pod, firstMs: nowMs, lastMs: nowMs });
    if (nowMs >= (deadFrom.get(pod) ?? Infinity)) lost++;
  }
  return lost;
}

/**
 * Returns the same rollout with a readiness probe that fails in half of lameduck's spare time. Null if nothing is lost
 * or no probe can help.
 */
function withQuickReadiness(times: RolloutTimes): RolloutTimes | null {
  const unreadyMs = Math.floor((times.lameduckMs - times.propagationMs) / 2000) * 1000;
  const helps = !times.entriesStay && unreadyMs >= 1000 && unreadyMs < times.unreadyMs;
  return helps && predictLoss(times).lost > 0 ? { ...times, unreadyMs } : null;
}

/**
 * Builds a rehearsal as a story. It runs without lameduck, as configured, and with a readiness probe that fails within
 * lameduck if that loses less.
 */
export function rehearsal(times: RolloutTimes): Story {
  const without = { ...times, lameduckMs: 0 };
  const quick = withQuickReadiness(times);
  const variants = [
    ...(times.lameduckMs === 0 ? [] : [without]),
    times,
    ...(quick === null ? [] : [quick]),
  ];
  const ports = times.randomPorts
    ? `each query has a random source port of ${times.ports}`
    : `${times.ports} source ports take turns`;
  return {
    name: 'rollout-rehearsal',
    title: `a rollout of ${times.pods} DNS pods at ${times.rate} queries a second`,
    source: 'ndots rollout rehearse',
    preconditions: [
      `${times.pods} DNS pods; ${times.unavailable === 0 ? 'a new one is ready before an old one ends' : 'one ends before a new one is ready (maxUnavailable: 1)'}`,
      `${printSpan(times.readyMs)} until a new pod is ready, ${printSpan(times.unreadyMs)} from SIGTERM until it is unready, ${printSpan(times.propagationMs)} from an endpoint change until all nodes have new rules`,
      `${ports}; the kernel keeps a connection for ${printSpan(times.conntrackMs)}${times.entriesStay ? ', and nothing removes connections to deleted pods' : '; kube-proxy removes connections to pods that no longer serve'}`,
    ],
    trigger: 'all pods are replaced, one after the other',
    needs: [{ program: 'conntrack' }],
    seconds: Math.round(variants.reduce((sum, each) => sum + timeline(each).endMs, 0) / 1000 + 10),
    async play(stage) {
      const lab = await stage.start({
        objects: usualObjects(times.pods * 2) + clientPod('client', '10.244.1.4'),
        ipv6: false,
      });
      const acts: Act[] = [];
      for (const variant of variants) acts.push(await played(lab, variant));
      return acts;
    },
    model: () => Promise.resolve(variants.map(calculated)),
  };
}

function titleOf({ lameduckMs, unreadyMs }: RolloutTimes): string {
  return lameduckMs === 0
    ? 'without lameduck'
    : `lameduck ${printSpan(lameduckMs)}, unready ${printSpan(unreadyMs)} after SIGTERM`;
}

function calculated(times: RolloutTimes): Act {
  const { sent, lost, because, inTheDark, darkMs, keptMs, again } = predictLoss(times);
  // New connections lose an Nth per pod, plus the shares of pods replaced before it. Known ports lose at most all
  // queries in that time.
  const shares = (1 + 1 / times.pods) ** times.pods - 1 + times.unavailable;
  const known = again < 0.001 ? 0 : keptMs * times.pods;
  const most = Math.min(sent, Math.round((times.rate * (darkMs * shares * 1.1 + known)) / 1000));
  return act(lost === 0 ? 'cure' : 'flaw', titleOf(times), because, [
    within(`of ${sent} queries will be lost`, [Math.round(inTheDark * 0.7), most], lost),
  ]);
}

async function played(lab: LabCluster, times: RolloutTimes): Promise<Act> {
  const { pods, rate, ports } = times;
  const predicted = predictLoss(times);
  const all = lab.objects.slices;
  const names = Array.from({ length: pods * 2 }, (_, index) => `kube-system/dns-${index + 1}`);
  const addressOf = (pod: number): string => lab.pod(names[pod]!).addresses[0] ?? '';
  const behind = new Set(Array.from({ length: pods }, (_, pod) => pod));
  const tell = (): void => {
    const addresses = [...behind].map(addressOf);
    lab.change({ slices: withEndpoints(lab.objects.slices, DNS_SERVICE, addresses, all) });
  };
  const corefile = usualCorefile.replace('lameduck 5s', `lameduck ${times.lameduckMs}ms`);
  await Promise.all(names.map((name) => lab.startDns(name, corefile)));
  const keptFor = Math.max(1, Math.round(times.conntrackMs / 1000));
  for (const node of lab.nodes.keys()) {
    lab.network.set(node, 'net/netfilter/nf_conntrack_udp_timeout', String(keptFor));
    const stream = String(keptFor * STREAM_FACTOR);
    lab.network.set(node, 'net/netfilter/nf_conntrack_udp_timeout_stream', stream);
    forgetConnections(lab, node, lab.serviceAddress(DNS_SERVICE), null);
  }
  tell();
  const { moments, endMs } = timeline(times);
  const stream = load({
    namespace: lab.network.path(lab.pod('default/client').name),
    server: lab.serviceAddress(DNS_SERVICE),
    perSecond: rate,
    seconds: endMs / 1000,
    waitMs: 1500,
    sockets: ports,
    name: () => 'kubernetes.default.svc.cluster.local.',
  });
  const began = performance.now();
  for (const { atMs, what, pod } of moments) {
    const leftMs = Math.max(0, atMs - (performance.now() - began));
    await pause(leftMs);
    if (what === 'end') {
      lab.signalDns(names[pod]!, 'SIGTERM');
      continue;
    }
    if (what === 'forget') {
      for (const node of lab.nodes.keys())
        forgetConnections(lab, node, lab.serviceAddress(DNS_SERVICE), addressOf(pod));
      continue;
    }
    if (what === 'add') behind.add(pod);
    else behind.delete(pod);
    tell();
  }
  const { sent, answered, all: asked } = await stream;
  lab.change({ slices: all });
  const { lost, because, darkMs, keptMs, again } = predicted;
  const outageMs = again < 0.001 ? darkMs : Math.max(darkMs, keptMs);
  // Five standard deviations of the count, plus a margin for a busy machine.
  const spread = lost === 0 ? 0 : 5 * Math.sqrt(lost) + 0.35 * lost + 5;
  const bounds = [
    Math.max(lost === 0 ? 0 : 1, Math.floor(lost - spread)),
    Math.ceil(lost + spread),
  ] as const;
  return act(lost === 0 ? 'cure' : 'flaw', titleOf(times), because, [
    within(`of ${sent} queries are lost (predicted: ${lost})`, bounds, sent - answered),
    ...(outageMs === Infinity
      ? []
      : [
          within(
            'longest time without an answer, in seconds',
            [0, lost === 0 ? 0 : outageMs / 1000 + 0.5],
            longestOutageMs(asked) / 1000,
          ),
        ]),
  ]);
}
