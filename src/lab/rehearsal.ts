/**
 * Rehearses a rollout of the DNS Deployment. The number of lost queries follows from a few times:
 * it is first calculated, query by query in virtual time, and then measured in a lab. A new pod is
 * started before an old one ends (maxSurge: 1), one after the other.
 */
import { printSpan } from '../base/elapsed.ts';
import { seededRandom } from '../base/random.ts';
import { forgetConnections } from './conntrack.ts';
import { clientPod, usualCorefile, usualObjects } from './defaults.ts';
import type { LabCluster } from './cluster.ts';
import { withEndpoints } from './endpoints.ts';
import { load, longestOutageMs } from './load.ts';
import { DNS_SERVICE } from './plan.ts';
import { within, type Act, type Story } from './story.ts';
import { pause } from './pause.ts';

/** The times, in milliseconds, and the numbers of a rollout. */
export interface RolloutTimes {
  /** The number of pods that are replaced. */
  readonly pods: number;
  /** Queries per second from all clients together. */
  readonly rate: number;
  /**
   * The number of source ports, used in turn: a port that is used again matches the connection that
   * the kernel still tracks for it.
   */
  readonly ports: number;
  /**
   * From the moment a server answers until its readiness probe succeeds: periodSeconds of the
   * probe.
   */
  readonly readyMs: number;
  /** From a change of the endpoints until all nodes have new rules. */
  readonly propagationMs: number;
  /** `health { lameduck }`: how long a server continues to answer after SIGTERM. */
  readonly lameduckMs: number;
  /** How long the kernel tracks a UDP connection. */
  readonly conntrackMs: number;
  /** Whether tracked connections to a pod that is gone are kept; kube-proxy removes them. */
  readonly entriesStay: boolean;
}

/** One step of a rollout and its time. */
interface RolloutMoment {
  readonly atMs: number;
  readonly what: 'add' | 'end' | 'remove';
  /** The number of the pod: old ones from 0, the new ones after them. */
  readonly pod: number;
}

/** The time before the first step and after the last one, in milliseconds. */
const CALM_MS = 1000;
/** The time between the end of one pod and the next step, in milliseconds. */
const PAUSE_MS = 300;

/** The steps of a rollout, and its end. */
function timeline({ pods, readyMs, propagationMs, lameduckMs }: RolloutTimes): {
  readonly moments: readonly RolloutMoment[];
  readonly endMs: number;
} {
  const moments: RolloutMoment[] = [];
  let atMs = CALM_MS;
  for (let pod = 0; pod < pods; pod++) {
    atMs += readyMs + propagationMs;
    moments.push({ atMs, what: 'add', pod: pods + pod });
    moments.push({ atMs, what: 'end', pod });
    moments.push({ atMs: atMs + propagationMs, what: 'remove', pod });
    atMs += Math.max(propagationMs, lameduckMs) + PAUSE_MS;
  }
  return { moments, endMs: atMs + CALM_MS };
}

/** The predicted losses of a rollout. */
export interface Prediction {
  readonly sent: number;
  readonly lost: number;
  /**
   * Those sent to a pod that has ended and still has rules; this is what a calculation by hand
   * gives.
   */
  readonly inTheDark: number;
  /** The longest time during which a pod has ended and still has rules, in milliseconds. */
  readonly darkMs: number;
  /** Whether ports are used again before the kernel forgets their connections. */
  readonly sticks: boolean;
  /** The reason in words. */
  readonly because: string;
}

/** The prediction is the median of this many runs. */
const RUNS = 25;

/** Follows every query through the rules and through the kernel's table of connections. */
export function predictLoss(times: RolloutTimes): Prediction {
  const runs = Array.from({ length: RUNS }, (_, seed) => lossOfOne(times, seed + 1));
  const { propagationMs, lameduckMs, pods, rate, entriesStay, ports, conntrackMs } = times;
  const { endMs } = timeline(times);
  const darkMs = Math.max(0, propagationMs - lameduckMs);
  const window = `${rate}/s × ${printSpan(darkMs)} that a pod is gone and still has rules, ÷ ${pods + 1} pods, × ${pods}`;
  const comesAgainMs = (ports / rate) * 1000;
  const sticks = entriesStay && comesAgainMs < conntrackMs;
  const stuck = sticks
    ? `; and each port that led to a pod that has gone comes again after ${printSpan(comesAgainMs)}, before the kernel forgets it (${printSpan(conntrackMs)})`
    : '';
  return {
    sent: Math.round((rate * endMs) / 1000),
    lost: Math.round(runs.reduce((sum, lost) => sum + lost, 0) / RUNS),
    inTheDark: Math.round(((rate * darkMs) / 1000 / (pods + 1)) * pods),
    darkMs,
    sticks,
    because: window + stuck,
  };
}

function lossOfOne(times: RolloutTimes, seed: number): number {
  const { pods, rate, ports, lameduckMs, conntrackMs, entriesStay } = times;
  const { moments, endMs } = timeline(times);
  const random = seededRandom(seed * 7919);
  const entries = new Map<number, { readonly pod: number; lastMs: number }>();
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
      else {
        behind.delete(pod);
        if (!entriesStay)
          for (const [port, entry] of entries) if (entry.pod === pod) entries.delete(port);
      }
    }
    const port = query % ports;
    const known = entries.get(port);
    const pod =
      known !== undefined && nowMs - known.lastMs < conntrackMs
        ? known.pod
        : [...behind][random.integer(behind.size)]!;
    entries.set(port, { pod, lastMs: nowMs });
    if (nowMs >= (deadFrom.get(pod) ?? Infinity)) lost++;
  }
  return lost;
}

/**
 * A rehearsal as a story: without lameduck and with it; if the configuration has none, as it is.
 */
export function rehearsal(times: RolloutTimes): Story {
  const without = { ...times, lameduckMs: 0 };
  const variants = times.lameduckMs === 0 ? [times] : [without, times];
  return {
    name: 'rollout-rehearsal',
    title: `a rollout of ${times.pods} DNS pods at ${times.rate} queries a second`,
    source: 'ndots rollout rehearse',
    preconditions: [
      `${times.pods} DNS pods; a new one comes before an old one goes`,
      `${printSpan(times.readyMs)} until a new pod is ready, ${printSpan(times.propagationMs)} from a change of the endpoints until all nodes have new rules`,
      `${times.ports} source ports take turns; the kernel keeps a connection for ${printSpan(times.conntrackMs)}${times.entriesStay ? ', and nobody takes out those to a pod that has gone' : ''}`,
    ],
    trigger: 'all pods are replaced, one after the other',
    needs: [{ program: 'conntrack' }],
    seconds: Math.round((variants.length * timeline(times).endMs) / 1000 + 10),
    async play(stage) {
      const lab = await stage.start({
        objects: usualObjects(times.pods * 2) + clientPod('default', 'client', '10.244.1.4'),
        ipv6: false,
      });
      const acts: Act[] = [];
      for (const variant of variants) acts.push(await played(lab, variant));
      return acts;
    },
    model: () => Promise.resolve(variants.map(calculated)),
  };
}

function titleOf({ lameduckMs }: RolloutTimes): string {
  return lameduckMs === 0 ? 'without lameduck' : `lameduck ${printSpan(lameduckMs)}`;
}

/** A rollout without losses is a cure. */
function kindOf(lost: number): Act['kind'] {
  return lost === 0 ? 'cure' : 'flaw';
}

function calculated(times: RolloutTimes): Act {
  const { sent, lost, because, inTheDark, sticks, darkMs } = predictLoss(times);
  // Ports that are used again stay with the old pods: with each its Nth part, plus the ports of the
  // pods that were replaced before it.
  const shares = (1 + 1 / times.pods) ** times.pods - 1;
  const most = sticks ? sent : Math.round((times.rate * darkMs * shares * 1.1) / 1000);
  return {
    kind: kindOf(lost),
    title: titleOf(times),
    packets: [],
    command: because,
    facts: [
      within(`of ${sent} queries are going to be lost`, [Math.round(inTheDark * 0.7), most], lost),
    ],
  };
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
  const keptFor = String(Math.max(1, Math.round(times.conntrackMs / 1000)));
  for (const node of lab.nodes.keys()) {
    for (const key of ['nf_conntrack_udp_timeout', 'nf_conntrack_udp_timeout_stream'])
      lab.network.set(node, `net/netfilter/${key}`, keptFor);
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
    if (what === 'add') behind.add(pod);
    else behind.delete(pod);
    tell();
    if (what === 'remove' && !times.entriesStay)
      for (const node of lab.nodes.keys())
        forgetConnections(lab, node, lab.serviceAddress(DNS_SERVICE), addressOf(pod));
  }
  const { sent, answered, all: asked } = await stream;
  lab.change({ slices: all });
  const { lost, because, darkMs, sticks } = predicted;
  // Five standard deviations of the count, and a margin for a busy machine.
  const spread = lost === 0 ? 0 : 5 * Math.sqrt(lost) + 0.35 * lost + 5;
  return {
    kind: kindOf(lost),
    title: titleOf(times),
    packets: [],
    command: because,
    facts: [
      within(
        `of ${sent} queries are lost (predicted: ${lost})`,
        [Math.max(lost === 0 ? 0 : 1, Math.floor(lost - spread)), Math.ceil(lost + spread)],
        sent - answered,
      ),
      ...(sticks
        ? []
        : [
            within(
              'longest time without an answer, seconds',
              [0, lost === 0 ? 0 : darkMs / 1000 + 0.5],
              longestOutageMs(asked) / 1000,
            ),
          ]),
    ],
  };
}
