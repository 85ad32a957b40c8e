/**
 * A whole server in virtual time, with faults picked from a seed, and an oracle that knows which answers were true
 * when.
 *
 * Each run alternates between storms and calms. In a storm, Services and names change, and upstreams and the API server
 * fail. Good and bad Corefiles are loaded, and the machine's clock is set. Clients keep sending queries. In a calm,
 * nothing fails, and every answer must become correct.
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
import { badCorefiles, corefileOf, drawSettings, type Settings } from './corefiles.ts';
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
/** The maximum number of timers in an idle server. A higher number indicates a leak. */
const ALARMS_MAX = 200;

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
    slowestCalmMs: 0,
  };
  readonly #seed: number;
  readonly #random: Random;
  readonly #clock: VirtualClock;
  readonly #cluster: FaultyCluster;
  readonly #internet: Internet;
  readonly #settings: Settings;
  readonly #world: World;
  readonly #waiting = new Set<Waiting>();
  readonly #events: string[] = [];
  #wrong: Error | null = null;
  /** The last time at which every answer about the cluster was correct. */
  #knownMs = 0;
  /** The number of log lines checked. */
  #read = 0;

  private constructor(parts: {
    readonly seed: number;
    readonly random: Random;
    readonly clock: VirtualClock;
    readonly cluster: FaultyCluster;
    readonly internet: Internet;
    readonly settings: Settings;
    readonly world: World;
  }) {
    this.#seed = parts.seed;
    this.#random = parts.random;
    this.#clock = parts.clock;
    this.#cluster = parts.cluster;
    this.#internet = parts.internet;
    this.#settings = parts.settings;
    this.#world = parts.world;
  }

  static async begin(seed: number): Promise<Simulation> {
    const random = seededRandom(seed * 2654435761 + 7);
    const clock = new VirtualClock();
    const cluster = await FaultyCluster.start(clock, random);
    const internet = new Internet(random);
    const settings = drawSettings(random);
    const world = await makeWorld(corefileOf(settings, cluster.url, random), {
      clock,
      seed,
      network: scriptedNetwork(clock, (asked) => internet.answer(asked)),
    });
    const simulation = new Simulation({ seed, random, clock, cluster, internet, settings, world });
    await simulation.calm();
    return simulation;
  }

  async end(): Promise<void> {
    await this.#world.close();
    await this.#cluster.stop();
  }

  async storm(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.report.steps++;
      for (let n = this.#random.integer(4); n > 0; n--) this.#cluster.change();
      for (let n = this.#random.integer(3); n > 0; n--) this.#internet.change(this.#clock.now());
      if (this.#random.integer(4) === 0) await this.#fail();
      if (this.#random.integer(12) === 0) await this.#reload();
      for (let n = this.#random.integer(20); n > 0; n--) this.#ask();
      await this.#pass(this.#pick([0, 5, 50, 500, 2000, 10_000, 40_000]));
    }
  }

  /** Ends all faults, then sends queries until every answer is correct. */
  async calm(): Promise<void> {
    this.#say('calm');
    const now = (): number => this.#clock.now();
    for (const upstream of UPSTREAMS) this.#internet.fail(now(), upstream, 'none');
    await this.#cluster.heal();
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
    this.report.slowestCalmMs = Math.max(this.report.slowestCalmMs, roundMs - beganMs);
    await this.#pass(REPLY_MS);
    assert.equal(this.#waiting.size, 0);
    if (this.#clock.pending > ALARMS_MAX) this.#failWith(`${this.#clock.pending} alarms are set`);
  }

  /** @returns the first name whose answer is not the current truth, or null if all are correct */
  async #firstWrong(): Promise<string | null> {
    // If answers may be stale, query twice, because the first query refreshes them.
    const rounds = this.#settings.staleSeconds > 0 ? 2 : 1;
    for (const { truth, names } of [this.#cluster, this.#internet])
      for (const name of names) {
        let got: string | null = null;
        for (let round = 0; round < rounds; round++) {
          const reply = this.#world.begin(name);
          await this.#pass(round + 1 < rounds ? 3000 : 200);
          got = answerOf((await this.#clock.run(reply))!);
        }
        this.report.queries += rounds;
        this.report.judged++;
        const right = truth.at(this.#clock.now(), name) ?? 'NXDOMAIN';
        if (got !== right) return `${name}: ${got}, should be ${right}`;
      }
    return null;
  }

  async #pass(durationMs: number): Promise<void> {
    // Advance in small steps, so that loopback traffic is read at about the right time.
    const slices = Math.max(1, Math.min(8, Math.ceil(durationMs / 2000)));
    for (let slice = 0; slice < slices; slice++) {
      await this.#clock.advance(durationMs / slices);
      await quiet(1);
    }
    if (this.#wrong !== null) throw this.#wrong;
    for (const { question, askedMs } of this.#waiting)
      if (this.#clock.now() - askedMs > REPLY_MS)
        this.#failWith(`${question}: no reply for ${this.#clock.now() - askedMs} ms`);
    const { log } = this.#world;
    for (; this.#read < log.length; this.#read++)
      if (/\[FATAL\]|TypeError|RangeError|AssertionError/.test(log[this.#read]!))
        this.#failWith(log[this.#read]!);
  }

  async #fail(): Promise<void> {
    this.report.faults++;
    const which = this.#random.integer(6);
    if (which === 0) {
      const byMs = (this.#random.integer(7200) - 3600) * 1000;
      this.#clock.setWall(byMs);
      this.#say(`the machine's clock is set by ${byMs} ms`);
    } else if (which <= 2) this.#say(await this.#cluster.fail());
    else {
      const upstream = this.#pick(UPSTREAMS);
      const fault = this.#random.integer(3) === 0 ? 'none' : this.#pick(upstreamFaults);
      this.#internet.fail(this.#clock.now(), upstream, fault);
      this.#say(`the upstream ${upstream} has the fault: ${fault}`);
    }
  }

  async #reload(): Promise<void> {
    const bad = this.#random.integer(3) === 0;
    const text = bad
      ? this.#pick(badCorefiles)
      : corefileOf(this.#settings, this.#cluster.url, this.#random);
    this.#say(`reload of ${bad ? 'a bad' : 'another'} Corefile`);
    this.#world.setCorefile(text);
    const reloading = this.#world.server.reload();
    for (let n = 0; n < 5; n++) this.#ask();
    const reloaded = await this.#clock.run(reloading);
    if (bad && reloaded) this.#failWith(`this Corefile was loaded:\n${text}`);
    if (!bad && !reloaded) this.#failWith(`this Corefile was refused:\n${text}`);
    this.report.reloads++;
    if (bad) this.report.refusedReloads++;
  }

  #ask(): void {
    const inside = this.#random.integer(2) === 0;
    const name =
      this.#random.integer(10) === 0
        ? PINNED.name
        : this.#pick(inside ? this.#cluster.names : this.#internet.names);
    const type = this.#random.integer(4) === 0 ? 'AAAA' : 'A';
    const waiting = { question: `${name} ${type}`, askedMs: this.#clock.now() };
    this.#waiting.add(waiting);
    this.report.queries++;
    const proto = this.#random.integer(5) === 0 ? 'tcp' : 'udp';
    this.#world.begin(waiting.question, { proto, id: this.#random.integer(0x10000) }).then(
      (reply) => {
        this.#waiting.delete(waiting);
        this.#judge(name, type, waiting.askedMs, reply);
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
    const oldestMs = isInside
      ? this.#knownMs - staleMs - 1000 * this.#settings.ttlSeconds
      : askedMs - staleMs - 1000 * TTL - AFTERMATH_MS;
    const { truth } = isInside ? this.#cluster : this.#internet;
    const fault = faultOf({
      name,
      type,
      reply,
      values:
        name === PINNED.name
          ? new Set([PINNED.address])
          : truth.between(oldestMs, this.#clock.now(), name),
      longestTtl: Math.max(TTL, this.#settings.ttlSeconds),
      mayFail: !isInside && this.#internet.faultyUntil > askedMs - AFTERMATH_MS,
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
    return `seed ${this.#seed}, at ${this.#clock.now() / 1000} s: ${text}\n${recent.join('\n')}`;
  }

  #say(event: string): void {
    this.#events.push(`${(this.#clock.now() / 1000).toFixed(1)} ${event}`);
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.integer(list.length)]!;
  }
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
