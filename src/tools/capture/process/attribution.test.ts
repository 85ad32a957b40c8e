/** Determines which socket sent a query, under races that a real kernel does not reproduce. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Peer } from '../../../server/wire/exchange.ts';
import type { SeenExchange, SeenLookup } from '../pair/seen-exchange.ts';
import type { Asker } from '../pair/asker.ts';
import { processAsker } from '../../../../test/kit/askers.ts';
import { Attribution } from './attribution.ts';
import { NetworkSpaces, type KernelSocket } from './network-spaces.ts';
import { SentQueries, type SentNote } from './sent-queries.ts';
import { SocketHolders } from './socket-holders.ts';

/** A machine with one namespace, whose sockets are defined by the test. */
class Machine {
  nowMs = 1000;
  socket: KernelSocket | null = null;
  /** The processes that hold the socket, or null for one that is named after the socket. */
  holders: Asker | null = null;
  lookups = 0;
  find: (local: Peer) => KernelSocket | null = () => this.socket;
  readonly notes: SentNote[] = [];
  /** The IDs of the exchanges that were passed on, each with its processes. */
  readonly shown: (readonly number[] | 'lookup')[] = [];
  readonly attribution: Attribution;

  constructor({ bpf = false, spaces = 1, refused = false } = {}) {
    const found = new NetworkSpaces(
      {
        sockets: () => ({
          find: (_, local) => {
            this.lookups++;
            return this.find(local);
          },
          close: () => undefined,
        }),
        list: () => ({ paths: new Map(), refused }),
        addresses: () => (spaces === 1 ? ['10.0.0.1', '10.0.0.2', 'fe80::1%eth0'] : []),
      },
      { name: 'net:[1]', path: '/nowhere' },
    );
    const holders = new SocketHolders({ tree: null, pods: null, sinceBootMs: () => this.nowMs });
    holders.find = ({ inode }) => this.holders ?? processAsker(inode);
    holders.describe = ({ pids, command }) => ({
      ...processAsker(pids[0]!),
      processes: pids.map((pid) => ({ pid, command, commandLine: '', parent: null })),
    });
    const source = {
      drain: (take: (note: SentNote) => void) => this.notes.splice(0).forEach(take),
      close: () => undefined,
    };
    const sent = bpf ? new SentQueries(source) : null;
    this.attribution = new Attribution(
      {
        ...{ spaces: found, holders, sent, translations: [] },
        isUpstreamShown: false,
        nowMs: () => this.nowMs,
        sinceBootMs: () => this.nowMs,
      },
      {
        ended: ({ id, asker }) => this.shown.push([id, ...pidsOf(asker!)]),
        lookup: () => this.shown.push('lookup'),
      },
    );
  }

  query(
    sentMs: number,
    id = 1,
    port = 40_000,
    client = '10.0.0.1',
    server = '192.0.2.53',
  ): SeenExchange {
    const exchange = {
      protocol: 'udp',
      client: { address: client, port },
      server: { address: server, port: 53 },
      sentMs,
      id,
      repliedMs: null,
      ending: 'waiting',
      hops: [],
      stray: null,
    } as unknown as SeenExchange;
    this.attribution.ready();
    this.attribution.begun(exchange);
    return exchange;
  }

  reply(exchange: SeenExchange, repliedMs: number | null): Asker {
    exchange.repliedMs = repliedMs;
    exchange.ending = repliedMs === null ? 'lost' : 'answered';
    const before = this.shown.length;
    this.attribution.ended(exchange);
    assert.equal(this.shown.length, before + 1);
    return exchange.asker!;
  }
}

const socket = (inode: number, cookie = BigInt(inode)): KernelSocket => ({
  inode,
  cookie,
  uid: 0,
  cgroup: 1n,
  listens: false,
});
const pidsOf = ({ processes }: Asker): number[] => processes.map(({ pid }) => pid);

test('a socket that is found before the reply comes has sent the query', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1001;
  const exchange = machine.query(1000);
  assert.deepEqual(pidsOf(machine.reply(exchange, 1002)), [7]);
});

test('a socket that is found after the reply may be another one with the same port', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1003;
  const exchange = machine.query(1000);
  const asker = machine.reply(exchange, 1002);
  assert.deepEqual([asker.why, asker.processes], ['closed', []]);
  assert.deepEqual(machine.attribution.counts, { attributed: 0, unknown: { closed: 1 } });
});

test('a socket that existed before the query and after its reply has sent it', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1001;
  machine.reply(machine.query(1000), 1002);
  machine.nowMs = 1020;
  const second = machine.query(1010, 2);
  assert.deepEqual(pidsOf(machine.reply(second, 1011)), [7]);
});

test('another socket at the same port, by its cookie, has not sent earlier queries', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1001;
  machine.reply(machine.query(1000), 1002);
  machine.socket = socket(8);
  machine.nowMs = 1020;
  const second = machine.query(1010, 2);
  assert.equal(machine.reply(second, 1011).why, 'closed');
  machine.nowMs = 1030;
  assert.deepEqual(pidsOf(machine.reply(machine.query(1025, 3), 1026)), [8]);
});

test('a query without a reply belongs to the socket that waits for one', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1049;
  const exchange = machine.query(1000);
  assert.deepEqual(pidsOf(machine.reply(exchange, null)), [7]);
});

test('a query without a reply may have been given up before its socket is found, and its port used by another program', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1051;
  const exchange = machine.query(1000);
  assert.equal(machine.reply(exchange, null).why, 'closed');
});

test('a socket that is passed on to another process names that one from then on', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1001;
  assert.deepEqual(pidsOf(machine.reply(machine.query(1000), 1002)), [7]);
  machine.holders = processAsker(8);
  machine.nowMs = 1101;
  // Either of the two may have sent this one.
  assert.deepEqual(pidsOf(machine.reply(machine.query(1100, 2), 1102)), [7, 8]);
  machine.nowMs = 1201;
  assert.deepEqual(pidsOf(machine.reply(machine.query(1200, 3), 1202)), [8]);
});

test('the last queries of a busy socket have no process if it is passed on before the lookup', () => {
  const machine = busyMachine();
  const shown = sendsMore(machine);
  machine.holders = processAsker(8);
  machine.nowMs = 1030;
  machine.attribution.settle();
  assert.deepEqual(shown, [[20], [21], [22], [23], [24]]);
  machine.nowMs = 1041;
  assert.deepEqual(pidsOf(machine.reply(machine.query(1040, 30), 1042)), [8]);
});

test('a reply from another address than the queried one comes from the process there', () => {
  const machine = new Machine();
  const local: string[] = [];
  machine.find = (each) => {
    local.push(`${each.address}:${each.port}`);
    return socket(7);
  };
  const exchange = machine.query(1000, 1, 40_000, '192.0.2.1', '10.0.0.1');
  exchange.stray = { address: '10.0.0.2', port: 53 };
  exchange.isStrayReply = true;
  machine.reply(exchange, 1002);
  assert.deepEqual(local, ['10.0.0.2:53']);
});

test('a server that is found long after its reply may have taken the port from the one that replied', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1060;
  const late = machine.query(1000, 1, 40_000, '192.0.2.1', '10.0.0.1');
  machine.reply(late, 1002);
  assert.equal(late.answerer!.why, 'closed');
  machine.nowMs = 1120;
  const known = machine.query(1100, 2, 40_001, '192.0.2.1', '10.0.0.1');
  machine.reply(known, 1102);
  assert.deepEqual(pidsOf(known.answerer!), [7]);
  machine.nowMs = 1203;
  machine.socket = socket(8);
  const soon = machine.query(1200, 3, 40_002, '192.0.2.1', '10.0.0.1');
  machine.reply(soon, 1202);
  assert.deepEqual(pidsOf(soon.answerer!), [8]);
});

test('queries that are read together need one lookup of sockets', () => {
  const machine = new Machine();
  machine.socket = socket(7);
  machine.nowMs = 1001;
  machine.query(1000);
  machine.nowMs = 1100;
  const before = machine.lookups;
  const all = [1050, 1060, 1070].map((sentMs, at) => machine.query(sentMs, at + 2));
  assert.equal(machine.lookups - before, 1);
  for (const each of all) assert.deepEqual(pidsOf(machine.reply(each, 1080)), [7]);
});

/** A machine with a socket that just became busy, by sending one query every millisecond. */
function busyMachine(): Machine {
  const machine = new Machine();
  machine.socket = socket(7);
  for (let at = 0; at < 17; at++) {
    machine.nowMs = 1000.1 + at;
    machine.reply(machine.query(1000 + at, at), 1000.2 + at);
  }
  return machine;
}

/** Sends five more queries, and returns what has been passed on since. */
function sendsMore(machine: Machine): Machine['shown'] {
  machine.shown.length = 0;
  for (let at = 0; at < 5; at++) {
    const exchange = machine.query(1020 + at, 20 + at);
    exchange.repliedMs = 1020.2 + at;
    exchange.ending = 'answered';
    machine.attribution.ended(exchange);
  }
  return machine.shown;
}

test('a socket that sends query after query is looked up once for many of them', () => {
  const machine = busyMachine();
  const before = machine.lookups;
  const shown = sendsMore(machine);
  machine.attribution.lookup({ exchanges: [] } as unknown as SeenLookup);
  assert.deepEqual([machine.lookups - before, shown], [0, []]);
  machine.nowMs = 1030;
  machine.attribution.settle();
  assert.equal(machine.lookups - before, 1);
  assert.deepEqual(shown, [[20, 7], [21, 7], [22, 7], [23, 7], [24, 7], 'lookup']);
});

test('the last queries of a busy socket have no process if it is gone by then, or if its port belongs to another socket', () => {
  for (const next of [null, socket(8)]) {
    const machine = busyMachine();
    const shown = sendsMore(machine);
    machine.socket = next;
    machine.nowMs = 1030;
    machine.attribution.settle();
    assert.deepEqual(shown, [[20], [21], [22], [23], [24]]);
    assert.deepEqual(machine.attribution.counts, { attributed: 17, unknown: { closed: 5 } });
  }
});

test('a busy socket is looked up soon, without further packets', async () => {
  const machine = busyMachine();
  const shown = sendsMore(machine);
  machine.nowMs = 1030;
  await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual(shown, [
    [20, 7],
    [21, 7],
    [22, 7],
    [23, 7],
    [24, 7],
  ]);
});

test('a busy socket whose query gets no reply is looked up soon, too', async () => {
  const machine = busyMachine();
  const exchange = machine.query(1020, 20);
  machine.nowMs = 1030;
  await new Promise((done) => setTimeout(done, 100));
  machine.socket = null;
  assert.deepEqual(pidsOf(machine.reply(exchange, null)), [7]);
});

test('the first query after a pause is looked up at once, because the socket may be closed after the reply', () => {
  const machine = busyMachine();
  const before = machine.lookups;
  machine.nowMs = 6000.1;
  const exchange = machine.query(6000, 30);
  assert.equal(machine.lookups - before, 1);
  machine.socket = null;
  assert.deepEqual(pidsOf(machine.reply(exchange, 6003)), [7]);
});

test('an address that no namespace has is elsewhere, unless some cannot be read, and a listening socket did not send the query', () => {
  const far = new Machine({ spaces: 0 });
  assert.equal(far.reply(far.query(1000), 1002).why, 'elsewhere');
  const hidden = new Machine({ spaces: 0, refused: true });
  assert.equal(hidden.reply(hidden.query(1000), 1002).why, 'refused');
  const machine = new Machine();
  machine.socket = { ...socket(7), listens: true };
  assert.equal(machine.reply(machine.query(1000), 1002).why, 'closed');
});

const note = (pid: number, id: number, parts: Partial<SentNote> = {}): SentNote => ({
  protocol: 'udp',
  bytes: Uint8Array.of(10, 0, 0, 1, 192, 0, 2, 53),
  sourceAt: 0,
  targetAt: 4,
  addressSize: 4,
  sourcePort: 40_000,
  targetPort: 53,
  id,
  cookieHigh: 0,
  cookieLow: pid,
  pid,
  senderPid: pid,
  sentBootMs: 1000,
  notedBootMs: 1000,
  cgroup: 1n,
  command: `p${pid}`,
  ...parts,
});

test('a note of the kernel names the process of a closed socket', () => {
  const machine = new Machine({ bpf: true });
  machine.notes.push(note(9, 5));
  machine.nowMs = 1010;
  assert.deepEqual(pidsOf(machine.reply(machine.query(1000, 5), 1001)), [9]);
  assert.equal(machine.lookups, 0);
  assert.equal(machine.reply(machine.query(1000, 6), 1001).why, 'closed');
});

test('a note of an earlier packet with the same ports and ID, or of an old connection, does not count', () => {
  for (const protocol of ['udp', 'tcp'] as const) {
    const machine = new Machine({ bpf: true });
    machine.notes.push(note(9, 5, { protocol }));
    machine.nowMs = 6001;
    const exchange = { ...machine.query(6001, 5), protocol };
    machine.attribution.begun(exchange);
    assert.equal(machine.reply(exchange, 6002).why, 'closed', protocol);
    // Another socket uses the port by now.
    machine.notes.push(note(11, 5, { protocol, sentBootMs: 6050 }));
    machine.nowMs = 6051;
    const next = { ...machine.query(6050, 5), protocol };
    machine.attribution.begun(next);
    assert.deepEqual(pidsOf(machine.reply(next, 6052)), [11], protocol);
  }
});

test('a socket that two processes use has both, the sender first', () => {
  const machine = new Machine({ bpf: true });
  machine.notes.push(note(9, 5, { senderPid: 10 }));
  assert.deepEqual(pidsOf(machine.reply(machine.query(1000, 5), 1001)), [10, 9]);
});

test('sockets of several namespaces with the same addresses and id are ambiguous', () => {
  const machine = new Machine({ bpf: true });
  machine.notes.push(note(9, 5), note(11, 5));
  assert.equal(machine.reply(machine.query(1000, 5), 1001).why, 'several');
});

test('notes are bounded: the oldest are dropped first', () => {
  const machine = new Machine({ bpf: true });
  machine.notes.push(note(9, 5), note(10, 6));
  for (let i = 0; i < 99_999; i++)
    machine.notes.push(note(12, i & 0xffff, { sourcePort: 1 + (i >> 4) }));
  assert.equal(machine.reply(machine.query(1000, 5), 1001).why, 'closed');
  assert.deepEqual(pidsOf(machine.reply(machine.query(1000, 6), 1001)), [10]);
});

test('sockets are distinguished by all 64 bits of their cookie', () => {
  const machine = new Machine({ bpf: true });
  machine.notes.push(note(9, 5), note(9, 5, { cookieHigh: 1 }));
  assert.equal(machine.reply(machine.query(1000, 5), 1001).why, 'several');
});

test('IPv6 notes are found, and those of TCP connections apart from queries', () => {
  const machine = new Machine({ bpf: true });
  const [client, server] = ['2001:db8::1', '2001:db8::53'];
  const bytes = new Uint8Array(32);
  bytes.set([0x20, 1, 0xd, 0xb8], 0);
  bytes.set([0x20, 1, 0xd, 0xb8], 16);
  bytes[15] = 1;
  bytes[31] = 0x53;
  const place = { bytes, targetAt: 16, addressSize: 16 } as const;
  machine.notes.push(note(9, 5, place), note(11, 0, { ...place, protocol: 'tcp' }));
  machine.attribution.ready();
  const tcp = machine.attribution.sender(
    'tcp',
    { address: client, port: 40_000 },
    { address: server, port: 53 },
    1000,
  );
  assert.deepEqual(pidsOf(tcp), [11]);
  const udp = machine.query(1000, 5, 40_000, client, server);
  assert.deepEqual(pidsOf(machine.reply(udp, 1001)), [9]);
});
