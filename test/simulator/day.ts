/**
 * A day in a large cluster, in virtual time. Rollouts, scaling and failing nodes change its objects behind a fake API
 * server. Models of real resolvers look up names at a rate that depends on the hour, some of them through node caches.
 * An oracle knows every true answer, and doctor sees all packets.
 *
 *     node test/simulator/day.ts [--seed N] [--factor F] [--ticks N] [--services N] [--nodes N]
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { FLAG, typeName } from '../../src/server/wire/iana.ts';
import { readMessage } from '../../src/server/wire/message.ts';
import { Reading, usualPorts } from '../../src/tools/capture/read/reading.ts';
import type { Diagnosis } from '../../src/tools/doctor/diagnosis.ts';
import { Examination } from '../../src/tools/doctor/examination.ts';
import { quiet } from '../kit/apiserver/rig.ts';
import { dnsMessage } from '../kit/packets.ts';
import { play, type Fate, type Passing, type StoryClient } from '../kit/story.ts';
import { scriptedNetwork } from '../kit/upstream.ts';
import { makeWorld, type World } from '../kit/world.ts';
import { Internet, TTL, UPSTREAMS } from './internet.ts';
import {
  LargeCluster,
  NAMESPACES,
  nodeAddress,
  podAddress,
  truthName,
  zoneOf,
  type ClusterEvents,
  type LargeClusterSize,
} from './large-cluster.ts';
import { faultOf } from './oracle.ts';

export interface DayPlan extends LargeClusterSize {
  readonly seed: number;
  /** The number of steps in a day. In each step, objects change and clients look up names. */
  readonly ticks: number;
  /** The fraction of the cluster's queries that the simulation actually sends. */
  readonly factor: number;
  /** The hours during which all upstreams are silent: `[from, to)`. */
  readonly outage?: readonly [number, number];
}

export interface DayReport {
  lookups: number;
  queries: number;
  /** The number of replies that the oracle checked. */
  judged: number;
  /** The number of queries that went through a node cache. */
  byNodeCache: number;
  readonly events: ClusterEvents;
  readonly diagnosis: Diagnosis;
}

/** Queries per second at the day's peak. */
const PEAK_RATE = 60_000;
/** The lowest rate as a fraction of the peak rate, and the hour of the peak. */
const LOWEST = 0.3;
const PEAK_HOUR = 14;
/** The average number of queries per lookup, given the search path and both A and AAAA. */
const QUERIES_PER_LOOKUP = 5;
const DAY_MS = 24 * 3_600_000;
/** The lookups in a tick are spread over this many milliseconds. */
const SPREAD_MS = 10_000;
/** The number of lookups that run at the same virtual time. */
const BATCH = 100;
const SERVICE = '10.96.0.10';
const LINK_LOCAL = '169.254.20.10';
/** The number of nodes with a simulated node cache. One lookup in CACHED_SHARE comes from these nodes. */
const CACHED_NODES = 3;
const CACHED_SHARE = 4;
/** The TTL of cluster names in seconds, which applies to each cache between client and server. */
const CLUSTER_TTL = 5;
const CACHES = 2;
/** Failures may continue for this long after an upstream's fault, because of health checks and cached failures. */
const AFTERMATH_MS = 20_000;
/** The virtual time within which a change must have arrived. Before that, a dead watch may have to be detected. */
const PROPAGATION_MS = 1_300_000;

const RESOLVERS = ['glibc', 'glibc', 'musl', 'go'] as const;

/** The rate at an hour of the day, as a fraction of the peak. */
export function loadAt(hour: number): number {
  const wave = (1 + Math.cos(((hour - PEAK_HOUR) / 12) * Math.PI)) / 2;
  return LOWEST + (1 - LOWEST) * wave;
}

const serverCorefile = (apiServer: string): string => `. {
    errors
    cache 30 {
        disable denial team-0.svc.cluster.local
    }
    kubernetes cluster.local in-addr.arpa {
        endpoint ${apiServer}
        ttl ${CLUSTER_TTL}
        topology nodes
        fallthrough in-addr.arpa
    }
    forward . ${UPSTREAMS.join(' ')}
}
`;

/** Similar to the node cache's usual Corefile, but with only one server. */
const nodeCorefile = `cluster.local {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    forward . ${SERVICE} {
        force_tcp
    }
}
. {
    errors
    cache 30
    forward . ${SERVICE} {
        force_tcp
    }
}
`;

/** Simulates a whole day. Rejects with the seed and the wrong replies if there are any. */
export async function playDay(plan: DayPlan): Promise<DayReport> {
  const day = await Day.begin(plan);
  try {
    for (let tick = 0; tick < plan.ticks; tick++) await day.tick(tick);
    return day.report();
  } finally {
    await day.end();
  }
}

class Day {
  readonly #plan: DayPlan;
  readonly #random: Random;
  readonly #clock: VirtualClock;
  readonly #cluster: LargeCluster;
  readonly #internet: Internet;
  readonly #server: World;
  readonly #nodes: readonly { readonly node: number; readonly world: World }[];
  readonly #examination = new Examination();
  readonly #reading: Reading;
  readonly #wrong: string[] = [];
  readonly #counts = { lookups: 0, queries: 0, judged: 0, byNodeCache: 0 };
  /** The time of the last changes, and the time at which the server knew all of them. */
  #changedMs = 0;
  #knownMs = 0;

  private constructor(parts: {
    readonly plan: DayPlan;
    readonly random: Random;
    readonly clock: VirtualClock;
    readonly cluster: LargeCluster;
    readonly internet: Internet;
    readonly server: World;
    readonly nodes: readonly { readonly node: number; readonly world: World }[];
  }) {
    this.#plan = parts.plan;
    this.#random = parts.random;
    this.#clock = parts.clock;
    this.#cluster = parts.cluster;
    this.#internet = parts.internet;
    this.#server = parts.server;
    this.#nodes = parts.nodes;
    const { events, domains } = this.#examination;
    this.#reading = new Reading(events, usualPorts, { domains });
  }

  static async begin(plan: DayPlan): Promise<Day> {
    const random = seededRandom(plan.seed * 2654435761 + 11);
    const clock = new VirtualClock();
    const cluster = await LargeCluster.start(clock, random, plan);
    const internet = new Internet(random);
    const server = await makeWorld(serverCorefile(cluster.server.url), {
      clock,
      seed: plan.seed,
      network: scriptedNetwork(clock, (asked) => internet.answer(asked)),
    });
    const nodes = await Promise.all(
      Array.from({ length: CACHED_NODES }, async () => {
        const node = cluster.drawNode();
        // Its queries are sent from the node's address.
        const network = scriptedNetwork(clock, async ({ name, type, query }) => {
          const bytes = dnsMessage(name, typeName(type), { id: query.id });
          const options = { client: nodeAddress(node), proto: 'tcp' } as const;
          const reply = await server.exchange(bytes, options);
          return reply === null ? { fail: 'timeout' } : { bytes: reply };
        });
        return { node, world: await makeWorld(nodeCorefile, { clock, network }) };
      }),
    );
    return new Day({ plan, random, clock, cluster, internet, server, nodes });
  }

  async end(): Promise<void> {
    for (const { world } of this.#nodes) await world.close();
    await this.#server.close();
    await this.#cluster.stop();
  }

  report(): DayReport {
    this.#reading.end();
    this.#examination.noteUnread(this.#reading);
    const diagnosis = this.#examination.diagnosis();
    return { ...this.#counts, events: this.#cluster.events, diagnosis };
  }

  /** Changes objects, waits for the server to follow, and lets clients look up names at the hour's rate. */
  async tick(tick: number): Promise<void> {
    const { ticks, factor, outage } = this.#plan;
    const tickMs = DAY_MS / ticks;
    const hour = (tick * 24) / ticks;
    const beganMs = this.#clock.now();
    const isOut = outage !== undefined && hour >= outage[0] && hour < outage[1];
    for (const upstream of UPSTREAMS)
      this.#internet.fail(this.#clock.now(), upstream, isOut ? 'silent' : 'none');
    this.#changedMs = beganMs;
    this.#cluster.tick(loadAt(hour));
    // If a name disappears and returns during a capture, doctor concludes that servers disagree about it.
    for (let n = this.#random.integer(4); n > 0; n--)
      this.#internet.change(this.#clock.now(), undefined, false);
    await this.#follow();
    const queries = PEAK_RATE * loadAt(hour) * (tickMs / 1000) * factor;
    let left = Math.max(1, Math.round(queries / QUERIES_PER_LOOKUP));
    for (const spreadMs = (SPREAD_MS * BATCH) / Math.max(BATCH, left); left > 0; left -= BATCH)
      await this.#look(Math.min(BATCH, left), spreadMs);
    await this.#clock.advance(Math.max(0, beganMs + tickMs - this.#clock.now()));
    await quiet(1);
    if (this.#wrong.length > 0)
      assert.fail(
        `seed ${this.#plan.seed}, hour ${hour.toFixed(1)}: ${this.#wrong.slice(0, 3).join('\n')}`,
      );
  }

  /** Waits until the server answers the names that were created last. This takes real time, because of the watches. */
  async #follow(): Promise<void> {
    const beganMs = this.#clock.now();
    for (const mark of this.#cluster.marks) {
      for (;;) {
        const reply = await this.#clock.run(this.#server.begin(`${mark}.svc.cluster.local.`));
        if (reply?.rcode === 0) break;
        // Watches deliver the changes in real time, but a watch that has ended is restarted in virtual time.
        await quiet(1);
        const passedMs = this.#clock.now() - beganMs;
        if (passedMs > PROPAGATION_MS)
          assert.fail(`seed ${this.#plan.seed}: ${mark} is not known after ${passedMs} ms`);
        await this.#clock.advance(passedMs < 1000 ? 10 : 200);
      }
    }
    this.#knownMs = this.#clock.now();
  }

  async #look(lookups: number, spreadMs: number): Promise<void> {
    const places = new Map<string, { readonly node: number; readonly world: World | null }>();
    const clients: StoryClient[] = [];
    for (let n = 0; n < lookups; n++) {
      const cached = this.#random.integer(CACHED_SHARE) === 0 ? this.#pick(this.#nodes) : null;
      const node = cached?.node ?? this.#cluster.drawNode();
      // Client pods have addresses above those used for Services, and each has a different address within a batch.
      const address = podAddress(node, 130 + (n % 120));
      if (places.has(address)) continue;
      places.set(address, { node, world: cached?.world ?? null });
      const namespace = `team-${this.#random.integer(NAMESPACES)}`;
      clients.push({
        address,
        resolver: this.#pick(RESOLVERS),
        resolvConf: `nameserver ${cached === null ? SERVICE : LINK_LOCAL}\nsearch ${namespace}.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n`,
        lookups: [{ atMs: this.#random.integer(Math.ceil(spreadMs)), name: this.#drawName() }],
      });
    }
    this.#counts.lookups += clients.length;
    const fate = (passing: Passing): Fate => {
      // This is a connection, not a query.
      if (passing.type === 'TCP') return {};
      const { node, world } = places.get(passing.client)!;
      return { tookMs: 0.4, ask: (bytes) => this.#ask(bytes, passing, node, world) };
    };
    const seed = this.#random.integer(1 << 30);
    for (const { bytes, timeMs } of await play(clients, fate, { clock: this.#clock, seed }))
      this.#reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  }

  #drawName(): string {
    const kind = this.#random.integer(10);
    if (kind < 6) return this.#cluster.drawName();
    if (kind < 7) return `${this.#cluster.drawName()}.svc.cluster.local`;
    return this.#pick(this.#internet.names).slice(0, kind < 9 ? -1 : undefined);
  }

  async #ask(
    bytes: Uint8Array,
    { client, protocol }: Passing,
    node: number,
    cache: World | null,
  ): Promise<Uint8Array | null> {
    const askedMs = this.#clock.now();
    this.#counts.queries++;
    if (cache !== null) this.#counts.byNodeCache++;
    const world = cache ?? this.#server;
    const reply = await world.exchange(bytes, { client, proto: protocol });
    if (reply !== null) this.#judge(bytes, reply, askedMs, zoneOf(node), protocol === 'udp');
    return reply;
  }

  #judge(
    query: Uint8Array,
    bytes: Uint8Array,
    askedMs: number,
    zone: string,
    isUdp: boolean,
  ): void {
    const reply = readMessage(bytes);
    // The client retries over TCP.
    if (isUdp && (reply.flags & FLAG.TC) !== 0) return;
    const [question] = readMessage(query).question;
    const name = question!.name.toLowerCase();
    const isInside = name.endsWith('.cluster.local.');
    const nowMs = this.#clock.now();
    const { truth } = isInside ? this.#cluster : this.#internet;
    const key = isInside ? truthName(name, zone) : name;
    const cachedMs = askedMs - 1000 * CACHES * (1 + (isInside ? CLUSTER_TTL : TTL));
    // Entries that were cached before the server knew of the changes are older than the changes.
    const isBefore = isInside && cachedMs < this.#knownMs;
    const oldestMs = isBefore ? Math.min(cachedMs, this.#changedMs - 1) : cachedMs;
    const known = truth.between(oldestMs, nowMs, key);
    this.#counts.judged++;
    const fault = faultOf({
      name,
      type: typeName(question!.type),
      reply,
      values: known.size === 0 ? new Set([null]) : known,
      longestTtl: Math.max(CLUSTER_TTL, TTL),
      mayFail: !isInside && this.#internet.faultyUntil > askedMs - AFTERMATH_MS,
    });
    if (fault !== null) this.#wrong.push(`at ${nowMs / 1000} s in ${zone}: ${fault}`);
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.integer(list.length)]!;
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      factor: { type: 'string', default: '0.00001' },
      ticks: { type: 'string', default: '288' },
      services: { type: 'string', default: '2000' },
      nodes: { type: 'string', default: '4000' },
    },
  });
  const [seed, factor, ticks, services, nodes] = [
    values.seed,
    values.factor,
    values.ticks,
    values.services,
    values.nodes,
  ].map(Number) as [number, number, number, number, number];
  console.log(`seed ${seed}`);
  const { diagnosis, ...counts } = await playDay({ seed, factor, ticks, services, nodes });
  console.log(JSON.stringify(counts));
  for (const { code, severity } of diagnosis.findings) console.log(`${severity} ${code}`);
}
