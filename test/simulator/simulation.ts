/**
 * A whole server in virtual time, with faults picked from a seed, and an oracle that knows which answers were true
 * when.
 *
 * Each run alternates between storms and calms. In a storm, Services and names change, and upstreams, the API server and
 * the disk fail. Good and bad Corefiles are loaded, the server is restarted, and the machine's clock is set. Clients
 * keep sending queries over a network that loses, duplicates and delays them. In a calm, nothing fails, and every answer
 * must become correct.
 *
 *     node test/simulator/simulation.ts [--seed N] [--seconds N]
 *
 * prints each seed before it runs; `--seed N --seconds 0` repeats one.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { Message } from '../../src/server/wire/message.ts';
import { quiet } from '../kit/apiserver/rig.ts';
import { scriptedNetwork } from '../kit/upstream.ts';
import { makeWorld, type World } from '../kit/world.ts';
import { FaultyCluster, PINNED } from './cluster.ts';
import {
  badCorefiles,
  corefileOf,
  drawSettings,
  type Settings,
  type Surroundings,
} from './corefiles.ts';
import { FaultyDisk } from './disk.ts';
import { Internet, TTL, upstreamFaults, UPSTREAMS } from './internet.ts';
import { answerOf, faultOf } from './oracle.ts';

/** A simulation's counts. */
export interface SimulationReport {
  steps: number;
  queries: number;
  /** The number of answers that the oracle checked. */
  judged: number;
  faults: number;
  reloads: number;
  refusedReloads: number;
  restarts: number;
  /**
   * The longest time, beyond the cache lifetimes, that it took after a storm until every answer was correct, in virtual
   * milliseconds.
   */
  slowestCalmMs: number;
}

/** The longest wait for a reply by any client, in virtual milliseconds. */
const REPLY_MS = 15_000;
/** The time for which an upstream's fault may still be visible after its end, in virtual milliseconds. */
const AFTERMATH_MS = 20_000;
/**
 * The maximum time from the end of all faults until every answer is correct, in virtual milliseconds. A watch may be
 * dead without any sign of it.
 */
const CALM_MS = 1_300_000;
/** The longest delay of a query or of its duplicate on the network, in virtual milliseconds. */
const NETWORK_MS = 3000;
/** The time for which a failure is cached (RFC 9520), in virtual milliseconds. */
const FAILURE_MS = 5000;
/** The maximum number of timers in an idle server. A higher number indicates a leak. */
const ALARMS_MAX = 200;

/** The server's surroundings and their random source. */
interface Parts {
  readonly seed: number;
  readonly random: Random;
  readonly clock: VirtualClock;
  readonly cluster: FaultyCluster;
  readonly internet: Internet;
  readonly disk: FaultyDisk;
}

const surroundingsOf = ({ cluster, disk }: Parts): Surroundings => ({
  apiServer: cluster.url,
  snapshot: disk.snapshot,
});

interface Query {
  readonly name: string;
  readonly type: string;
  readonly proto: 'tcp' | 'udp';
  readonly id: number;
}

interface Waiting {
  readonly question: string;
  readonly askedMs: number;
}

/** Runs the simulation with one seed. If an answer is wrong, rejects with the seed and the last events. */
export async function simulate(
  seed: number,
  limits: { readonly storms: number; readonly steps: number },
): Promise<SimulationReport> {
  const simulation = await Simulation.begin(seed);
  try {
    for (let storm = 0; storm < limits.storms; storm++) {
      await simulation.storm(limits.steps);
      await simulation.calm();
    }
    return simulation.report;
  } finally {
    await simulation.end();
  }
}

class Simulation {
  readonly report: SimulationReport = {
    steps: 0,
    queries: 0,
    judged: 0,
    faults: 0,
    reloads: 0,
    refusedReloads: 0,
    restarts: 0,
    slowestCalmMs: 0,
  };
  readonly #parts: Parts;
  readonly #settings: Settings;
  #corefile: string;
  #world: World;
  /** False while the server restarts. */
  #isUp = true;
  readonly #waiting = new Set<Waiting>();
  readonly #events: string[] = [];
  #wrong: Error | null = null;
  /** The time from which answers about the cluster may be: after a calm, or the beginning. */
  #knownMs = 0;
  /** Until this time, cluster names may fail: after a restart, until the server knows the cluster's state. */
  #mayFailUntilMs = Infinity;
  /** The number of log lines checked. */
  #read = 0;

  private constructor(parts: Parts, settings: Settings, corefile: string, world: World) {
    this.#parts = parts;
    this.#settings = settings;
    this.#corefile = corefile;
    this.#world = world;
  }

  static async begin(seed: number): Promise<Simulation> {
    const random = seededRandom(seed * 2654435761 + 7);
    const clock = new VirtualClock();
    const cluster = await FaultyCluster.start(clock, random);
    const internet = new Internet(random);
    const parts = { seed, random, clock, cluster, internet, disk: new FaultyDisk(random) };
    const settings = drawSettings(random);
    const corefile = corefileOf(settings, surroundingsOf(parts), random);
    const world = await startServer(corefile, parts);
    const simulation = new Simulation(parts, settings, corefile, world);
    await simulation.calm();
    return simulation;
  }

  async end(): Promise<void> {
    await this.#world.close();
    await this.#parts.cluster.stop();
    this.#parts.disk.remove();
  }

  async storm(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.report.steps++;
      for (let n = this.#parts.random.integer(4); n > 0; n--) this.#parts.cluster.change();
      for (let n = this.#parts.random.integer(3); n > 0; n--)
        this.#parts.internet.change(this.#parts.clock.now());
      if (this.#parts.random.integer(4) === 0) await this.#fail();
      if (this.#parts.random.integer(12) === 0) await this.#reload();
      if (this.#parts.random.integer(40) === 0) await this.#restart();
      for (let n = this.#parts.random.integer(20); n > 0; n--) this.#ask();
      await this.#pass(this.#pick([0, 5, 50, 500, 2000, 10_000, 40_000]));
    }
  }

  /** Ends all faults, then sends queries until every answer is correct. */
  async calm(): Promise<void> {
    this.#say('calm');
    const now = (): number => this.#parts.clock.now();
    for (const upstream of UPSTREAMS) this.#parts.internet.fail(now(), upstream, 'none');
    this.#parts.disk.heal();
    await this.#parts.cluster.heal();
    await this.#pass(AFTERMATH_MS + 1000 * (TTL + this.#settings.staleSeconds));
    const beganMs = now();
    let roundMs = beganMs;
    for (; ; roundMs = now()) {
      const wrong = await this.#firstWrong();
      if (wrong === null) break;
      if (now() - beganMs > CALM_MS) this.#failWith(`stays wrong: ${wrong}`);
      await this.#pass(5000);
    }
    this.#knownMs = roundMs;
    this.#mayFailUntilMs = roundMs;
    this.report.slowestCalmMs = Math.max(this.report.slowestCalmMs, roundMs - beganMs);
    await this.#pass(REPLY_MS);
    assert.equal(this.#waiting.size, 0);
    if (this.#parts.clock.pending > ALARMS_MAX)
      this.#failWith(`${this.#parts.clock.pending} alarms are set`);
  }

  /** @returns the first name whose answer is not the current truth, or null if all are correct */
  async #firstWrong(): Promise<string | null> {
    // If answers may be stale, query twice, because the first query refreshes them.
    const rounds = this.#settings.staleSeconds > 0 ? 2 : 1;
    for (const { truth, names } of [this.#parts.cluster, this.#parts.internet])
      for (const name of names) {
        let got: string | null = null;
        for (let round = 0; round < rounds; round++) {
          const reply = this.#world.begin(name);
          await this.#pass(round + 1 < rounds ? 3000 : 200);
          got = answerOf((await this.#parts.clock.run(reply))!);
        }
        this.report.queries += rounds;
        this.report.judged++;
        const right = truth.at(this.#parts.clock.now(), name) ?? 'NXDOMAIN';
        if (got !== right) return `${name}: ${got}, should be ${right}`;
      }
    return null;
  }

  async #pass(durationMs: number): Promise<void> {
    // Advance in small steps, so that loopback traffic is read at about the right time.
    const slices = Math.max(1, Math.min(8, Math.ceil(durationMs / 2000)));
    for (let slice = 0; slice < slices; slice++) {
      await this.#parts.clock.advance(durationMs / slices);
      await quiet(1);
    }
    if (this.#wrong !== null) throw this.#wrong;
    for (const { question, askedMs } of this.#waiting)
      if (this.#parts.clock.now() - askedMs > REPLY_MS)
        this.#failWith(`${question}: no reply for ${this.#parts.clock.now() - askedMs} ms`);
    this.#checkLog();
  }

  #checkLog(): void {
    const { log } = this.#world;
    for (; this.#read < log.length; this.#read++)
      if (/\[FATAL\]|TypeError|RangeError|AssertionError/.test(log[this.#read]!))
        this.#failWith(log[this.#read]!);
  }

  async #fail(): Promise<void> {
    this.report.faults++;
    const which = this.#parts.random.integer(7);
    if (which === 0) {
      const byMs = (this.#parts.random.integer(7200) - 3600) * 1000;
      this.#parts.clock.setWall(byMs);
      this.#say(`the machine's clock is set by ${byMs} ms`);
    } else if (which <= 2) this.#say(await this.#parts.cluster.fail());
    else if (which === 3) this.#say(this.#parts.disk.fail());
    else {
      const upstream = this.#pick(UPSTREAMS);
      const fault = this.#parts.random.integer(3) === 0 ? 'none' : this.#pick(upstreamFaults);
      this.#parts.internet.fail(this.#parts.clock.now(), upstream, fault);
      this.#say(`the upstream ${upstream} has the fault: ${fault}`);
    }
  }

  async #reload(): Promise<void> {
    const bad = this.#parts.random.integer(3) === 0;
    const text = bad
      ? this.#pick(badCorefiles)
      : corefileOf(this.#settings, surroundingsOf(this.#parts), this.#parts.random);
    this.#say(`reload of ${bad ? 'a bad' : 'another'} Corefile`);
    this.#world.setCorefile(text);
    const reloading = this.#world.server.reload();
    for (let n = 0; n < 5; n++) this.#ask();
    const reloaded = await this.#parts.clock.run(reloading);
    if (bad && reloaded) this.#failWith(`this Corefile was loaded:\n${text}`);
    if (!bad && !reloaded) this.#failWith(`this Corefile was refused:\n${text}`);
    this.report.reloads++;
    if (bad) this.report.refusedReloads++;
    else this.#corefile = text;
  }

  /** Ends the server and starts it again. Queries that it was working on are lost. */
  async #restart(): Promise<void> {
    this.#say('the server restarts');
    this.report.restarts++;
    this.#isUp = false;
    this.#waiting.clear();
    await this.#world.close();
    this.#checkLog();
    this.#mayFailUntilMs = Infinity;
    this.#knownMs = 0;
    this.#world = await startServer(this.#corefile, this.#parts);
    this.#read = 0;
    this.#isUp = true;
  }

  /** Sends a query over a network that may lose, duplicate or delay it. */
  #ask(): void {
    const inside = this.#parts.random.integer(2) === 0;
    const name =
      this.#parts.random.integer(10) === 0
        ? PINNED.name
        : this.#pick(inside ? this.#parts.cluster.names : this.#parts.internet.names);
    const query: Query = {
      name,
      type: this.#parts.random.integer(4) === 0 ? 'AAAA' : 'A',
      proto: this.#parts.random.integer(5) === 0 ? 'tcp' : 'udp',
      id: this.#parts.random.integer(0x10000),
    };
    const fate = query.proto === 'tcp' ? 9 : this.#parts.random.integer(10);
    if (fate === 0) return;
    const isDelayed = fate === 1;
    this.#sendLater(query, isDelayed ? this.#parts.random.integer(NETWORK_MS) : 0);
    if (fate === 2) this.#sendLater(query, this.#parts.random.integer(NETWORK_MS));
  }

  #sendLater(query: Query, delayMs: number): void {
    if (delayMs === 0) this.#send(query);
    else this.#parts.clock.after(delayMs, () => this.#send(query));
  }

  #send({ name, type, proto, id }: Query): void {
    if (!this.#isUp) return;
    const waiting = { question: `${name} ${type}`, askedMs: this.#parts.clock.now() };
    this.#waiting.add(waiting);
    this.report.queries++;
    this.#world.begin(waiting.question, { proto, id }).then(
      (reply) => {
        // The server may have been restarted in the meantime.
        if (this.#waiting.delete(waiting)) this.#judge(name, type, waiting.askedMs, reply);
      },
      (error: unknown) => this.#note(`${waiting.question}: ${String(error)}`),
    );
  }

  /** Checks a reply against the true values. */
  #judge(name: string, type: string, askedMs: number, reply: Message | null): void {
    this.report.judged++;
    if (reply === null) return this.#note(`${name} ${type}: silence`);
    const staleMs = 1000 * this.#settings.staleSeconds;
    const isInside = name.endsWith('cluster.local.');
    // Only a server that has listed everything denies a name. Until then, failures may have been cached.
    if (isInside && answerOf(reply) === 'NXDOMAIN')
      this.#mayFailUntilMs = Math.min(this.#mayFailUntilMs, this.#parts.clock.now() + FAILURE_MS);
    const oldestMs = isInside
      ? this.#knownMs - staleMs - 1000 * this.#settings.ttlSeconds
      : askedMs - staleMs - 1000 * TTL - AFTERMATH_MS;
    const { truth } = isInside ? this.#parts.cluster : this.#parts.internet;
    const fault = faultOf({
      name,
      type,
      reply,
      values:
        name === PINNED.name
          ? new Set([PINNED.address])
          : truth.between(oldestMs, this.#parts.clock.now(), name),
      longestTtl: Math.max(TTL, this.#settings.ttlSeconds),
      mayFail: isInside
        ? askedMs <= this.#mayFailUntilMs
        : this.#parts.internet.faultyUntil > askedMs - AFTERMATH_MS,
    });
    if (fault !== null) this.#note(fault);
  }

  #note(text: string): void {
    this.#wrong ??= new Error(this.#told(text));
  }

  #failWith(text: string): never {
    assert.fail(this.#told(text));
  }

  #told(text: string): string {
    const recent = [...this.#events.slice(-25), ...this.#world.log.slice(-15)];
    return `seed ${this.#parts.seed}, at ${this.#parts.clock.now() / 1000} s: ${text}\n${recent.join('\n')}`;
  }

  #say(event: string): void {
    this.#events.push(`${(this.#parts.clock.now() / 1000).toFixed(1)} ${event}`);
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#parts.random.integer(list.length)]!;
  }
}

function startServer(corefile: string, { seed, clock, internet }: Parts): Promise<World> {
  const network = scriptedNetwork(clock, (asked) => internet.answer(asked));
  return makeWorld(corefile, { clock, seed, network });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seed: { type: 'string' }, seconds: { type: 'string', default: '60' } },
  });
  const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  const endMs = performance.now() + 1000 * Number(values.seconds);
  for (let seed = first; seed === first || performance.now() < endMs; seed++) {
    console.log(`seed ${seed}`);
    console.log(JSON.stringify(await simulate(seed, { storms: 3, steps: 60 })));
  }
}
