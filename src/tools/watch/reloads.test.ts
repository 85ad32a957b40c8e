import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigurationFile } from '../../server/wire/dnstap.ts';
import { typeNumber } from '../../server/wire/iana.ts';
import { writeMessage } from '../../server/wire/message.ts';
import type { LiveInput } from './live-input.ts';
import { LiveModel } from './live-model.ts';
import type { ChangedAnswer } from './reload-shape.ts';
import { PrivateViews } from './view-privacy.ts';

const START = Date.UTC(2026, 10, 1, 12);
const peer = { address: '10.244.0.5', port: 53 };
const other = { address: '10.244.1.7', port: 53 };

/** An answer as `NXDOMAIN`, `NOERROR` (without records), or addresses. */
type Given = 'NXDOMAIN' | 'SERVFAIL' | 'NOERROR' | readonly string[];

/** A model in virtual time that reads the streams of ndots servers. */
class World {
  nowMs = START;
  readonly model: LiveModel;
  readonly #frames = new Map<LiveInput, number>();

  constructor(limits: ConstructorParameters<typeof LiveModel>[0] = {}) {
    this.model = new LiveModel(limits);
    this.model.advance(this.nowMs);
  }

  open(server = peer): LiveInput {
    const input = this.model.open(`server ${server.address}`, { server });
    this.#frames.set(input, 0);
    return input;
  }

  /** Sends a query and its reply through the input's stream. */
  ask(
    input: LiveInput,
    name: string,
    answer: Given,
    {
      client = '10.244.1.1',
      ttl = 30,
      server = peer,
      sentMs = this.nowMs,
    }: { client?: string; ttl?: number; server?: typeof peer; sentMs?: number } = {},
  ): void {
    const frame = this.#frames.get(input)! + 1;
    this.#frames.set(input, frame);
    const rcodes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3 };
    const records = typeof answer === 'string' ? [] : answer;
    const question = [{ name, type: typeNumber('A')!, class: 1 }];
    const message = (isReply: boolean): Uint8Array =>
      writeMessage({
        ...{ id: frame & 0xffff, flags: isReply ? 0x8180 : 0x0100 },
        rcode: isReply && typeof answer === 'string' ? rcodes[answer] : 0,
        question,
        answer: !isReply
          ? []
          : records.map((address) => ({ name, type: 1, class: 1, ttl, data: { address } })),
        ...{ authority: [], additional: [], edns: null },
      });
    for (const isReply of [false, true]) {
      const bytes = message(isReply);
      const [from, to] = isReply ? [server.address, client] : [client, server.address];
      input.reading.takeMessage({
        ...{ timeMs: sentMs + (isReply ? 1 : 0), frame, protocol: 'udp', bytes, start: 0 },
        ...{ end: bytes.length, size: bytes.length, family: 4, addressesAt: 0, ttl: 0 },
        head: Uint8Array.from([...from.split('.'), ...to.split('.')].map(Number)),
        sourcePort: isReply ? server.port : 40_000,
        targetPort: isReply ? 40_000 : server.port,
        ...{ ipId: frame, port: 0, cut: false },
      });
    }
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left -= 1000) {
      this.nowMs += Math.min(left, 1000);
      this.model.advance(this.nowMs);
    }
  }

  reload(input: LiveInput, files: readonly ConfigurationFile[] | null = null): void {
    this.pass(1000);
    this.model.reloaded(input, { fromMs: this.nowMs, toMs: this.nowMs }, files);
    this.pass(1000);
  }

  /** The answers changed by the latest reload, as `name: before -> after`. */
  get changes(): readonly string[] {
    return this.model.reloads().rows[0]!.answers.map(changeText);
  }
}

function changeText({ name, before, after }: ChangedAnswer): string {
  const text = ({ rcode, records }: ChangedAnswer['before']): string =>
    [rcode, ...records].join(' ');
  return `${name}: ${text(before)} -> ${text(after)}`;
}

const corefile = (text: string): readonly ConfigurationFile[] => [{ file: '/etc/Corefile', text }];

describe('answers that a reload changed', () => {
  test('other addresses, and names that appear or vanish, are listed with the number of clients', () => {
    const world = new World();
    const input = world.open();
    for (let at = 0; at < 6; at++) {
      world.ask(input, 'a.example.', ['192.0.2.1'], { client: `10.244.1.${at % 3}` });
      world.ask(input, 'new.example.', 'NXDOMAIN');
      if (at < 2) world.ask(input, 'old.example.', ['192.0.2.3']);
      world.ask(input, 'same.example.', ['192.0.2.9']);
      world.pass(1000);
    }
    world.reload(input);
    for (let at = 0; at < 3; at++) {
      world.ask(input, 'a.example.', ['192.0.2.2'], { client: '10.244.1.8' });
      world.ask(input, 'new.example.', ['192.0.2.4']);
      world.ask(input, 'old.example.', 'NXDOMAIN');
      world.ask(input, 'same.example.', ['192.0.2.9']);
      world.pass(1000);
    }
    assert.deepEqual(world.changes, [
      'a.example.: NOERROR A 192.0.2.1 -> NOERROR A 192.0.2.2',
      'new.example.: NXDOMAIN -> NOERROR A 192.0.2.4',
      'old.example.: NOERROR A 192.0.2.3 -> NXDOMAIN',
    ]);
    const [row] = world.model.reloads().rows;
    assert.deepEqual([row!.compared, row!.changed], [4, 3]);
    const [first] = row!.answers;
    assert.deepEqual(
      [first!.kind, first!.clients, first!.repliesBefore, first!.repliesAfter, first!.servers],
      ['records', 4, 6, 3, 1],
    );
    assert.equal(row!.answers[1]!.kind, 'rcode');
  });

  test('TTLs, the order of records, and subsets of the same records are not changes', () => {
    const world = new World();
    const input = world.open();
    const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'];
    const send = (ttl: number, turn: number): void => {
      for (let at = 0; at < 5; at++) {
        const from = (at + turn) % 5;
        const rotated = [...all.slice(from), ...all.slice(0, from)];
        world.ask(input, 'order.example.', rotated, { ttl: ttl + at });
        world.ask(input, 'subset.example.', rotated.slice(0, 2), { ttl });
        world.pass(1000);
      }
    };
    send(30, 0);
    world.reload(input);
    send(5, 2);
    assert.deepEqual(world.changes, []);
    assert.equal(world.model.reloads().rows[0]!.compared, 2);
  });

  test('subsets of other records are a change', () => {
    const world = new World();
    const input = world.open();
    const send = (prefix: string): void => {
      for (let at = 0; at < 6; at++) {
        const pair = [at % 3, (at + 1) % 3].map((last) => `${prefix}.${last + 1}`);
        world.ask(input, 'subset.example.', pair);
        world.pass(1000);
      }
    };
    send('192.0.2');
    world.reload(input);
    send('198.51.100');
    assert.equal(world.changes.length, 1);
  });

  test('a name whose addresses are replaced all the time is not a change', () => {
    const world = new World();
    const input = world.open();
    for (let at = 0; at < 8; at++) {
      if (at === 4) world.reload(input);
      world.ask(input, 'cdn.example.', [`198.51.100.${at}`]);
      world.pass(1000);
    }
    assert.deepEqual(world.changes, []);
  });

  test('an error that also occurred before is not a change, and a new one is', () => {
    const world = new World();
    const input = world.open();
    world.ask(input, 'flaps.example.', ['192.0.2.1']);
    world.ask(input, 'flaps.example.', 'SERVFAIL');
    world.ask(input, 'broken.example.', ['192.0.2.1']);
    world.ask(input, 'recovers.example.', ['192.0.2.1']);
    world.reload(input);
    world.ask(input, 'flaps.example.', 'SERVFAIL');
    world.ask(input, 'broken.example.', 'SERVFAIL');
    world.ask(input, 'recovers.example.', 'SERVFAIL');
    world.ask(input, 'recovers.example.', ['192.0.2.1']);
    world.pass(1000);
    assert.deepEqual(world.changes, ['broken.example.: NOERROR A 192.0.2.1 -> SERVFAIL']);
  });

  test('answers that arrive before the report of their reload belong to the new configuration', () => {
    const world = new World();
    const input = world.open();
    world.ask(input, 'a.example.', ['192.0.2.1']);
    world.pass(2000);
    const reloadMs = world.nowMs;
    world.ask(input, 'a.example.', ['192.0.2.2'], { sentMs: reloadMs + 20 });
    world.pass(1000);
    world.model.reloaded(input, { fromMs: reloadMs, toMs: reloadMs + 10 }, null);
    assert.deepEqual(world.changes, ['a.example.: NOERROR A 192.0.2.1 -> NOERROR A 192.0.2.2']);
  });

  test('replies while the workers switch, which can come from either configuration, do not count', () => {
    const world = new World();
    const input = world.open();
    world.ask(input, 'a.example.', ['192.0.2.1']);
    world.pass(2000);
    const fromMs = world.nowMs;
    for (const [atMs, address] of [
      [5, '192.0.2.1'],
      [10, '192.0.2.2'],
      [15, '192.0.2.1'],
      [60, '192.0.2.2'],
    ] as const)
      world.ask(input, 'a.example.', [address], { sentMs: fromMs + atMs });
    world.pass(1000);
    world.model.reloaded(input, { fromMs, toMs: fromMs + 20 }, null);
    world.ask(input, 'a.example.', ['192.0.2.1'], { sentMs: fromMs + 18 });
    world.pass(1000);
    assert.deepEqual(world.changes, ['a.example.: NOERROR A 192.0.2.1 -> NOERROR A 192.0.2.2']);
  });

  test('a reload between two steps of the model is dated by the server', () => {
    const world = new World();
    const input = world.open();
    world.ask(input, 'a.example.', ['192.0.2.1'], { sentMs: world.nowMs + 400 });
    world.model.reloaded(input, { fromMs: world.nowMs + 600, toMs: world.nowMs + 610 }, null);
    world.ask(input, 'a.example.', ['192.0.2.1'], { sentMs: world.nowMs + 590 });
    world.ask(input, 'a.example.', ['192.0.2.2'], { sentMs: world.nowMs + 700 });
    world.pass(1000);
    assert.deepEqual(world.changes, ['a.example.: NOERROR A 192.0.2.1 -> NOERROR A 192.0.2.2']);
  });

  test('queries to upstreams, and those before the window, are not compared', () => {
    const world = new World({ limits: { windowMs: 60_000 } });
    const input = world.open();
    const upstream = { address: '192.0.2.53', port: 53 };
    world.ask(input, 'a.example.', ['192.0.2.1'], { server: upstream, client: peer.address });
    world.ask(input, 'b.example.', ['192.0.2.1']);
    world.pass(120_000);
    world.reload(input);
    world.ask(input, 'a.example.', ['192.0.2.2'], { server: upstream, client: peer.address });
    world.ask(input, 'b.example.', ['192.0.2.2']);
    world.pass(1000);
    assert.equal(world.model.reloads().rows[0]!.compared, 0);
  });

  test('a second reload starts a new comparison, and the result of the first one stays', () => {
    const world = new World();
    const input = world.open();
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.2']) {
      world.ask(input, 'a.example.', [address]);
      world.reload(input);
    }
    world.ask(input, 'a.example.', ['192.0.2.2']);
    world.pass(1000);
    const rows = world.model
      .reloads()
      .rows.map(({ id, changed, compared }) => [id, changed, compared]);
    assert.deepEqual(rows, [
      [3, 0, 1],
      [2, 0, 1],
      [1, 1, 1],
    ]);
  });
});

describe('the list of reloads', () => {
  const before = corefile('.:53 {\n    forward . 192.0.2.53\n}\n');
  const after = corefile('.:53 {\n    forward . 198.51.100.53\n}\n');

  test('shows a unified diff of the Corefile, and replicas with the same change together', () => {
    const world = new World();
    const inputs = [world.open(), world.open(other)];
    for (const input of inputs) world.model.configured(input, before);
    for (const [at, input] of inputs.entries())
      world.ask(input, 'a.example.', ['192.0.2.1'], { server: [peer, other][at]! });
    for (const input of inputs) world.reload(input, after);
    for (const [at, input] of inputs.entries())
      world.ask(input, 'a.example.', ['192.0.2.2'], { server: [peer, other][at]! });
    world.pass(1000);
    const { rows } = world.model.reloads();
    assert.equal(rows.length, 1);
    const [{ servers, diff, answers, atMs }] = rows as [(typeof rows)[0]];
    assert.deepEqual(servers, ['server 10.244.0.5', 'server 10.244.1.7']);
    assert.match(
      diff,
      /^--- \/etc\/Corefile\n\+\+\+ [^]*-    forward \. 192\.0\.2\.53\n\+    forward/,
    );
    assert.deepEqual([answers.length, answers[0]!.servers, answers[0]!.clients], [1, 2, 1]);
    assert.ok(atMs < world.nowMs);
  });

  test('Now has a mark and the number of changed answers', () => {
    const world = new World();
    const input = world.open();
    world.ask(input, 'a.example.', ['192.0.2.1']);
    world.reload(input);
    const text = (): string => world.model.view({ view: 'now' }).changes.rows[0]!.text;
    assert.equal(text(), 'server 10.244.0.5 serves a new configuration');
    world.ask(input, 'a.example.', 'NXDOMAIN');
    world.pass(1000);
    assert.equal(text(), 'server 10.244.0.5 serves a new configuration: 1 answer changed');
    const [mark] = world.model.view({ view: 'now' }).reloads;
    assert.deepEqual([mark!.changed, mark!.answers.length], [1, 1]);
  });

  test('a configuration loaded while the stream was interrupted counts as a reload', () => {
    const world = new World();
    const input = world.open();
    world.model.configured(input, before);
    world.model.configured(input, before);
    assert.equal(world.model.reloads().rows.length, 0);
    world.model.configured(input, after);
    assert.match(world.model.reloads().rows[0]!.diff, /\+    forward/);
  });

  test('packets and logs do not report reloads', () => {
    const world = new World();
    world.model.open('interface eth0, port 53');
    assert.equal(world.model.reloads().isReported, false);
    assert.equal(world.model.memory.usedBytes, 0);
  });

  test('memory is bounded for any number of names, answers, clients and reloads', () => {
    const world = new World({ limits: { answers: 16, reloads: 3 } });
    const input = world.open();
    const send = (turn: number): void => {
      for (let at = 0; at < 400; at++)
        world.ask(input, `n${at % 50}.example.`, [`192.0.${turn}.${at % 250}`], {
          client: `10.${turn}.${at >> 8}.${at & 255}`,
        });
    };
    for (let turn = 0; turn < 8; turn++) {
      send(turn);
      world.reload(input, corefile(`# ${turn}\n`));
      world.pass(30_000);
    }
    const { rows, leftOut } = world.model.reloads();
    assert.equal(rows.length, 3);
    assert.equal(leftOut, 5);
    for (const { compared } of rows) assert.ok(compared <= 16);
    assert.ok(world.model.memory.usedBytes <= world.model.memory.limitBytes);
  });
});

test('a server that reports reloads without end does not displace those of other servers', () => {
  const world = new World({ limits: { reloads: 6 } });
  const [quiet, noisy] = [world.open(), world.open()];
  world.reload(quiet);
  for (let turn = 0; turn < 100; turn++) world.reload(noisy, corefile(`# ${turn}\n`));
  const { rows } = world.model.reloads();
  assert.equal(rows.filter(({ id }) => id === 1).length, 1);
  const changes = world.model.changes.rows.filter(({ kind }) => kind === 'reload');
  // Five in quick succession, and then one every 30 s.
  assert.ok(changes.length <= 1 + 5 + 200 / 30, `${changes.length}`);
  assert.match(noisy.remarks.join(), /more reloads than a server can make/);
});

test('--privacy no-clients hides addresses of clients, and counts hides names and files', () => {
  const world = new World();
  const input = world.open();
  world.ask(input, 'headless.example.', ['10.244.1.1']);
  world.model.configured(input, corefile('one'));
  world.reload(input, corefile('two'));
  world.ask(input, 'headless.example.', ['10.244.9.9']);
  world.pass(1000);
  const text = (level: 'no-clients' | 'counts'): string =>
    JSON.stringify(new PrivateViews(world.model, level, 'key').reloads());
  assert.doesNotMatch(text('no-clients'), /10\.244\.(?:1\.1|9\.9)/);
  assert.match(text('no-clients'), /headless\.example/);
  assert.doesNotMatch(text('counts'), /headless|one|two|10\.244/);
  assert.match(text('counts'), /"changed":1/);
  const now = JSON.stringify(new PrivateViews(world.model, 'counts', 'key').view({ view: 'now' }));
  assert.doesNotMatch(now, /headless/);
});
