import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import type { Replica, ReplicaAck, ReplicaBatch } from '../contract/data-set.ts';
import { followDataSet } from '../worker/follow-data-set.ts';
import { ReplicatedSet, type ReplicaLinks } from './replicated-set.ts';

/** A key either has a version or has been removed. */
interface Change {
  readonly key: number;
  /** Increases with every change to the key, including its removal. */
  readonly version: number;
  readonly there: boolean;
}

const CHANGE_BYTES = 10;
const BATCH_BYTES = 40;
const BACKLOG_BYTES = 400;

/** A worker's copy, which checks what it receives. */
class Copy implements Replica<Change, readonly number[]> {
  /** The state used for answers. */
  state = new Map<number, Change>();
  next: Map<number, Change> | null = null;
  /** The state of the set when the last part of the snapshot was read. */
  wanted: readonly string[] = [];
  wantedVersion = 0;
  snapshots = 0;
  completed = 0;
  /** The latest version received. */
  latest = 0;

  begin(): void {
    this.next = new Map();
    this.snapshots++;
  }

  apply(changes: readonly Change[]): readonly number[] {
    const state = this.next ?? this.state;
    for (const change of changes) {
      const known = state.get(change.key);
      assert.ok(known === undefined || known.version <= change.version, 'never back in time');
      state.set(change.key, change);
      this.latest = Math.max(this.latest, change.version);
    }
    return changes.map(({ version }) => version);
  }

  complete(): void {
    assert.ok(this.next !== null);
    this.state = this.next;
    this.next = null;
    this.completed++;
    this.latest = Math.max(this.latest, this.wantedVersion);
    assert.deepEqual(present(this.state), this.wanted, 'a snapshot is complete at its end');
  }
}

function present(state: ReadonlyMap<number, Change>): string[] {
  return [...state.values()]
    .filter(({ there }) => there)
    .map(({ key, version }) => `${key}@${version}`)
    .sort();
}

/** The set's handlers. */
interface Handlers {
  join: (worker: number) => void;
  leave: (worker: number) => void;
  acknowledge: (worker: number, ack: ReplicaAck) => void;
}

/** The set, and workers with delays. */
class Rig {
  readonly clock = new VirtualClock();
  readonly truth = new Map<number, Change>();
  readonly copies = new Map<number, Copy>();
  /** Versions in the order in which they were reported as applied. */
  readonly applied: number[] = [];
  /** By worker, the time in ms that a batch takes to arrive and be applied. Infinity means that the worker hangs. */
  readonly delays = new Map<number, number>();
  readonly #stuck = new Map<number, (() => void)[]>();
  readonly #underWay = new Map<number, number>();
  readonly set: ReplicatedSet<Change, readonly number[]>;
  version = 0;
  #links!: Handlers;
  /** Copies that are waiting for the end of a snapshot, by how many they have had. */
  readonly behind = new Map<Copy, number>();
  readonly #take = new Map<number, (message: unknown) => void>();

  constructor() {
    const handlers: Partial<Handlers> = {};
    const links: ReplicaLinks = {
      send: (worker, batch) => this.#deliver(worker, batch),
      onJoin: (handler) => (handlers.join = handler),
      onLeave: (handler) => (handlers.leave = handler),
      onAck: (handler) => (handlers.acknowledge = handler),
    };
    this.set = new ReplicatedSet<Change, readonly number[]>(
      {
        name: 'test',
        links,
        clock: this.clock,
        metrics: new SharedRegistry(() => undefined),
        batchBytes: BATCH_BYTES,
        backlogBytes: BACKLOG_BYTES,
      },
      {
        snapshot: () => this.#snapshot(),
        size: () => CHANGE_BYTES,
        applied: (versions) => this.#told(versions),
      },
    );
    this.#links = handlers as Handlers;
  }

  *#snapshot(): Generator<Change> {
    for (const change of this.truth.values()) if (change.there) yield change;
  }

  #told(versions: readonly number[]): void {
    for (const version of versions) {
      assert.ok(version > (this.applied.at(-1) ?? 0), 'in order, each once');
      this.applied.push(version);
    }
    for (const [worker, copy] of this.copies) {
      const slow = (this.delays.get(worker) ?? 0) >= 500;
      // A worker that has not applied it gets a snapshot, because it has just joined or has fallen too far behind.
      if (!slow && copy.latest < versions.at(-1)!) this.behind.set(copy, copy.completed);
    }
  }

  change(key: number, there: boolean): void {
    const change = { key, version: ++this.version, there };
    this.truth.set(key, change);
    this.set.publish([change]);
  }

  join(worker: number): void {
    this.leave(worker);
    const copy = new Copy();
    copy.latest = this.version;
    this.copies.set(worker, copy);
    this.#underWay.set(worker, 0);
    followDataSet(copy, {
      onMessage: (handler) => this.#take.set(worker, handler),
      post: (message) => {
        if (this.copies.get(worker) !== copy) return;
        this.#underWay.set(worker, this.#underWay.get(worker)! - 1);
        this.#links.acknowledge(worker, message as ReplicaAck);
      },
    });
    this.#links.join(worker);
  }

  leave(worker: number): void {
    if (!this.copies.delete(worker)) return;
    this.#take.delete(worker);
    this.#stuck.delete(worker);
    this.#links.leave(worker);
  }

  delay(worker: number, ms: number): void {
    this.delays.set(worker, ms);
    if (ms === Infinity) return;
    for (const run of this.#stuck.get(worker) ?? []) this.clock.after(ms, run);
    this.#stuck.delete(worker);
  }

  #deliver(worker: number, batch: ReplicaBatch): void {
    const underWay = this.#underWay.get(worker)! + 1;
    assert.ok(underWay <= 1, 'one batch at a time');
    assert.ok(batch.changes.length * CHANGE_BYTES <= BATCH_BYTES, 'a batch is bounded');
    this.#underWay.set(worker, underWay);
    const copy = this.copies.get(worker)!;
    if (batch.completes) {
      copy.wanted = present(this.truth);
      copy.wantedVersion = this.version;
    }
    const message = structuredClone(batch);
    const run = (): void => {
      if (this.copies.get(worker) === copy) this.#take.get(worker)!(message);
    };
    const ms = this.delays.get(worker) ?? 0;
    if (ms === Infinity) this.#stuck.set(worker, [...(this.#stuck.get(worker) ?? []), run]);
    else this.clock.after(ms, run);
  }
}

const workers = [0, 1, 2];
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      key: fc.nat(30),
      there: fc.boolean(),
      times: fc.nat(12),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('join' as const), worker: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), worker: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('delay' as const),
      worker: fc.nat(2),
      ms: fc.constantFrom(0, 1, 20, 700, Infinity),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(100) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function play(rig: Rig, steps: readonly Step[]): Promise<void> {
  for (const one of steps) {
    if (one.do === 'change') {
      for (let n = 0; n <= one.times; n++) rig.change((one.key + n) % 31, one.there);
    } else if (one.do === 'join') rig.join(one.worker);
    else if (one.do === 'leave') rig.leave(one.worker);
    else if (one.do === 'delay') rig.delay(one.worker, one.ms);
    else await rig.clock.advance(one.ms);
    assert.ok(rig.set.backlogBytes <= BACKLOG_BYTES, 'what is kept for slow workers is bounded');
  }
}

describe('laws of a replicated set', () => {
  test("every responsive worker ends up with the set's content, whatever it missed, and the log is then empty", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const rig = new Rig();
        rig.join(0);
        await play(rig, steps);
        for (const worker of workers) rig.delay(worker, 0);
        let told = false;
        rig.set.whenApplied(() => {
          told = true;
        });
        await rig.clock.advance(5000);
        for (const [worker, copy] of rig.copies) {
          assert.deepEqual(present(copy.state), present(rig.truth), `worker ${worker}`);
          assert.equal(copy.next, null);
          assert.ok(
            copy.completed > (rig.behind.get(copy) ?? -1),
            'all that keep up have applied it',
          );
        }
        assert.ok(told);
        assert.equal(rig.set.backlogBytes, 0);
        rig.set.close();
        assert.equal(rig.clock.pending, 0);
      }),
      { numRuns: 300 },
    );
  });

  test('a hanging worker does not delay others, and is waited for at most a second', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(2), async (steps, hung) => {
        const rig = new Rig();
        for (const worker of workers) rig.join(worker);
        rig.delay(hung, Infinity);
        await play(
          rig,
          steps.filter((one) => !('worker' in one)),
        );
        let told = false;
        rig.set.whenApplied(() => {
          told = true;
        });
        await rig.clock.advance(1000);
        const others = [...rig.copies].filter(([worker]) => worker !== hung);
        if (rig.version > 0 && others.every(([, { snapshots }]) => snapshots === 1))
          assert.equal(rig.applied.at(-1), rig.version);
        for (const worker of workers) {
          if (worker !== hung)
            assert.deepEqual(present(rig.copies.get(worker)!.state), present(rig.truth));
        }
        assert.ok(told);
      }),
      { numRuns: 200 },
    );
  });

  test('every change is reported as applied if no worker falls behind', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const rig = new Rig();
        for (const worker of workers) rig.join(worker);
        await rig.clock.advance(1);
        await play(
          rig,
          steps.filter((one) => one.do === 'change' || one.do === 'wait'),
        );
        await rig.clock.advance(1000);
        const versions = Array.from({ length: rig.version }, (_, index) => index + 1);
        if ([...rig.copies.values()].every(({ snapshots }) => snapshots === 1))
          assert.deepEqual(rig.applied, versions);
      }),
      { numRuns: 200 },
    );
  });
});
