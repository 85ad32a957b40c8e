import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { queryBytes, replyWith } from '../../../test/kit/loopback.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { makeLog } from '../base/log.ts';
import { readMessage, type Message } from '../wire/message.ts';
import type { Query } from './query.ts';
import { failure, overloaded, type Reply, type Rest } from '../wire/reply.ts';
import { Intake, type IntakeLimits } from './intake.ts';
import { listenerCounters, type ListenerCounters } from './listener-counters.ts';
import type { Serve } from './listener.ts';
import { OutletPending, type Outlet } from './outlet.ts';

/** An outlet that records everything written to it. The way back for each query is the query's number. */
class Slate implements Outlet<number> {
  readonly pending = new OutletPending();
  readonly out = new Uint8Array(70_000);
  readonly at = 7;
  full = false;
  held = 0;
  flushes = 0;
  taken = 0;
  readonly sent: { readonly way: number | null; readonly message: Message }[] = [];

  identify(query: Query): void {
    this.taken++;
    query.proto = 'tcp';
  }

  reserve(): void {}

  send(length: number, way: number | null): void {
    const message = readMessage(this.out.slice(this.at, this.at + length));
    this.sent.push({ way, message });
  }

  keepSilent(): void {}

  wayBack(): number {
    return this.taken;
  }

  hold(): void {
    this.held = Math.max(this.held, this.pending.bytes);
  }

  flush(): void {
    this.flushes++;
  }
}

interface Bench {
  readonly intake: Intake;
  readonly counters: ListenerCounters;
  /** Sends a query for this name. */
  ask(outlet: Slate, name: string, id?: number): void;
  /** Ends the oldest wait. */
  answer(reply?: (query: Query) => Reply): void;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Answers names in `cluster.` at once and lets all others wait. Replies to `zone.cluster.` continue with `rest`. */
function bench(
  limits: Partial<IntakeLimits> = {},
  rest: Rest | null = null,
  clock: Clock = systemClock,
): Bench {
  const waiting: { query: Query; resolve: (reply: Reply) => void }[] = [];
  const serve: Serve = (query) => {
    if (query.name === 'zone.cluster.') return replyWith(query).with({ rest });
    if (query.name.endsWith('cluster.')) return replyWith(query);
    const kept = query.keep();
    return new Promise((resolve) => waiting.push({ query: kept, resolve }));
  };
  const counters = listenerCounters(null, '')('tcp');
  const intake = new Intake({
    proto: 'tcp',
    serve,
    clock,
    log: makeLog(() => {}),
    counters,
    limits: { waiting: 10, heldBytes: 1 << 20, ...limits },
  });
  return {
    intake,
    counters,
    ask(outlet, name, id = 1) {
      const bytes = queryBytes(name, id, 1232);
      intake.take(outlet, bytes, 0, bytes.length, 0);
    },
    answer(reply = replyWith) {
      const { query, resolve } = waiting.shift()!;
      resolve(reply(query));
    },
  };
}

describe('the intake', () => {
  test('with many transfers, one continues in each turn, and all finish', async () => {
    let made = 0;
    const last = failure(0, 'zone');
    const { ask, counters } = bench({ waiting: 1000 }, () => (++made < 300 ? null : last));
    for (let id = 0; id < 200; id++) ask(new Slate(), 'zone.cluster.', id);
    const most = [];
    for (let i = 0; i < 50; i++) {
      const before = made;
      await turn();
      most.push(made - before);
    }
    assert.equal(Math.max(...most), 1);
    while (counters.waiting.value > 0) await turn();
    assert.equal(made, 499);
  });

  test('a transfer pauses before each message while queries arrive, and otherwise continues at once', async () => {
    const clock = new VirtualClock();
    let made = 0;
    const rest: Rest = () => failure(0, `message ${++made}`).with({ rest });
    const { ask } = bench({}, rest, clock);
    const outlet = new Slate();
    ask(outlet, 'zone.cluster.');
    await clock.advance(1);
    for (let i = 0; i < 10; i++) await turn();
    const alone = made;
    assert.ok(alone >= 9, `${alone} messages in ten turns`);
    for (let i = 0; i < 10; i++) {
      ask(new Slate(), 'a.cluster.');
      await turn();
    }
    assert.ok(made <= alone + 2, `${made - alone} messages in ten turns beside queries`);
    await clock.advance(1);
    await turn();
    assert.ok(made > alone);
    outlet.pending.closed = true;
  });

  test('when too many queries wait, only the newest ones that would have to wait are refused', async () => {
    const { ask, answer, counters } = bench({ waiting: 3 });
    const outlet = new Slate();
    for (let id = 0; id < 6; id++) {
      ask(outlet, 'outside.example.', id);
      ask(outlet, 'svc.cluster.', 100 + id);
    }
    assert.equal(counters.waiting.value, 3);
    assert.equal(counters.shed.value, 3);
    const refused = outlet.sent.filter(({ message }) => message.rcode === 5);
    assert.deepEqual(
      refused.map(({ message }) => message.id),
      [3, 4, 5],
    );
    const answered = outlet.sent.filter(({ message }) => message.answer.length === 1);
    assert.equal(answered.length, 6, 'names that need not wait are answered');
    answer();
    await turn();
    ask(outlet, 'outside.example.', 7);
    assert.equal(counters.waiting.value, 3, 'where one has been answered there is room again');
    assert.equal(counters.shed.value, 3);
  });

  test('a refused client gets the reason', () => {
    const { ask } = bench({ waiting: 0 });
    const outlet = new Slate();
    ask(outlet, 'outside.example.');
    const [option] = outlet.sent[0]!.message.edns!.options;
    assert.equal(option!.code, 15);
    assert.match(Buffer.from(option!.data).toString(), /too many queries wait/);
  });

  test('a reply that cannot be written because of a bug is SERVFAIL, at once and later', async () => {
    const broken = (query: Query): Reply => {
      const reply = replyWith(query);
      Object.defineProperty(reply, 'bytes', { value: null });
      return reply;
    };
    const lines: string[] = [];
    let resolve = (_reply: Reply): void => undefined;
    const intake = new Intake({
      proto: 'tcp',
      serve: (query) => {
        if (query.name.startsWith('now.')) return broken(query);
        const kept = query.keep();
        return new Promise<Reply>((done) => (resolve = done)).then(() => broken(kept));
      },
      clock: systemClock,
      log: makeLog((line) => lines.push(line)),
      counters: listenerCounters(null, '')('tcp'),
      limits: { waiting: 10, heldBytes: 1 << 20 },
    });
    const outlet = new Slate();
    for (const name of ['now.example.', 'later.example.']) {
      const bytes = queryBytes(name, 7, 1232);
      intake.take(outlet, bytes, 0, bytes.length, 0);
    }
    resolve(overloaded);
    await turn();
    assert.deepEqual(
      outlet.sent.map(({ message }) => [message.id, message.rcode]),
      [
        [7, 2],
        [7, 2],
      ],
    );
    assert.equal(lines.length, 2);
    assert.match(lines[0]!, /a reply cannot be written: TypeError/);
  });

  test('a plugin that detects the lack of room refuses without starting any work', () => {
    let begun = 0;
    const counters = listenerCounters(null, '')('udp');
    const intake = new Intake({
      proto: 'udp',
      serve: (query) => {
        if (!query.mayWait) return overloaded;
        begun++;
        query.keep();
        return new Promise(() => {});
      },
      clock: systemClock,
      log: makeLog(() => {}),
      counters,
      limits: { waiting: 1, heldBytes: 1 << 20 },
    });
    const outlet = new Slate();
    const bytes = queryBytes('outside.example.');
    for (let i = 0; i < 5; i++) intake.take(outlet, bytes, 0, bytes.length, 0);
    assert.equal(begun, 1);
    assert.equal(counters.shed.value, 4);
    assert.equal(outlet.sent.length, 4);
  });

  test('few but long waiting queries are limited, too', () => {
    const { ask, counters } = bench({ waiting: 1000, heldBytes: 200 });
    const outlet = new Slate();
    for (let id = 0; id < 20; id++) ask(outlet, 'outside.example.', id);
    assert.ok(counters.waiting.value <= 6, `${counters.waiting.value} of 44 bytes each`);
    assert.equal(counters.waiting.value + counters.shed.value, 20);
  });

  test('a changed limit applies from the next query on', () => {
    const { intake, ask, counters } = bench({ waiting: 1 });
    const outlet = new Slate();
    ask(outlet, 'a.');
    ask(outlet, 'b.');
    assert.equal(counters.shed.value, 1);
    intake.adopt({ waiting: 2, heldBytes: 1 << 20 });
    ask(outlet, 'c.');
    assert.equal(counters.shed.value, 1);
  });

  test('replies that arrive in one turn are written together, each with its way back', async () => {
    const { ask, answer } = bench();
    const outlet = new Slate();
    for (let id = 1; id <= 3; id++) ask(outlet, 'outside.example.', id);
    for (let i = 0; i < 3; i++) answer();
    await turn();
    assert.equal(outlet.flushes, 1);
    assert.deepEqual(
      outlet.sent.map(({ way, message }) => [way, message.id]),
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    );
  });

  test('replies to a client that does not read are counted before any is written, and wait', async () => {
    const { intake, ask, answer } = bench();
    const outlet = new Slate();
    for (let id = 1; id <= 4; id++) ask(outlet, 'outside.example.', id);
    outlet.full = true;
    for (let i = 0; i < 4; i++) answer((query) => replyWith(query, 500));
    await turn();
    assert.equal(outlet.sent.length, 0);
    assert.ok(outlet.held >= 4 * 16 * 500, `${outlet.held} bytes told`);
    outlet.full = false;
    intake.resume(outlet);
    assert.equal(outlet.sent.length, 4);
    assert.equal(outlet.pending.bytes, 0);
    assert.equal(outlet.pending.size, 0);
  });

  test('one reply that many queries wait for counts once', async () => {
    const { ask, answer } = bench();
    const outlet = new Slate();
    outlet.full = true;
    for (let id = 1; id <= 4; id++) ask(outlet, 'outside.example.', id);
    const queries = outlet.pending.bytes;
    let shared: Reply | null = null;
    for (let i = 0; i < 4; i++) answer((query) => (shared ??= replyWith(query, 500)));
    await turn();
    assert.equal(outlet.pending.bytes, queries + shared!.size);
  });

  test('each of several replies in one slab counts', async () => {
    const { ask, answer } = bench();
    const outlet = new Slate();
    outlet.full = true;
    for (let id = 1; id <= 4; id++) ask(outlet, 'outside.example.', id);
    const queries = outlet.pending.bytes;
    const replies: Reply[] = [];
    const slab = new Uint8Array(65_536);
    for (let i = 0; i < 4; i++) {
      answer((query) => {
        const reply = replyWith(query, 50);
        const start = i * reply.size;
        slab.set(reply.bytes.subarray(reply.start, reply.end), start);
        replies.push(reply.with({ bytes: slab, start, end: start + reply.size }));
        return replies[i]!;
      });
    }
    await turn();
    assert.equal(outlet.pending.bytes, queries + 4 * replies[0]!.size);
  });

  test('a reply to a closed outlet is dropped and counted', async () => {
    const { intake, ask, answer, counters } = bench();
    const outlet = new Slate();
    for (let id = 1; id <= 3; id++) ask(outlet, 'outside.example.', id);
    outlet.full = true;
    answer();
    await turn();
    intake.drop(outlet);
    answer();
    answer();
    await turn();
    assert.equal(counters.dropped.value, 3);
    assert.equal(counters.waiting.value, 0);
    assert.equal(outlet.sent.length, 0);
  });

  test('it becomes quiet when nothing waits, or after the grace period', async () => {
    const { intake, ask, answer } = bench();
    await intake.quiet(10_000);
    const outlet = new Slate();
    ask(outlet, 'outside.example.');
    let isEarly = true;
    setTimeout(() => (isEarly = false), 20);
    await intake.quiet(30);
    assert.equal(isEarly, false);
    const quiet = intake.quiet(10_000);
    answer(() => failure(2, 'test'));
    await quiet;
    assert.equal(outlet.sent.length, 1, 'the last reply has been written by then');
  });
});
