/**
 * Agents and servers that send `top` and `console` something else than they should. Run as a program, it listens on one
 * free port of 127.0.0.1 for each kind of stream, and prints the ports:
 *
 *     node test/kit/hostile-agent.ts flood bomb
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip } from 'node:zlib';
import { emptyFrame, LINK } from '../../src/tools/capture/read/packets/frame.ts';
import { lossBlock, PcapngWriter } from '../../src/tools/capture/read/packets/pcapng.ts';
import { CONFIGURATION, LEFT_OUT, noteFrame, RELOADED } from '../../src/server/wire/dnstap.ts';
import { CONTROL, writeControl } from '../../src/server/wire/frame-stream.ts';
import { addressRecord, back, dnsMessage, udpPacket } from './packets.ts';
import { start, printed, type Child } from './child.ts';

/** Pieces of a stream, each sent when the reader has room for it. Null waits until the reader goes away. */
type Pieces = Iterable<Uint8Array | null>;

interface Behaviour {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds between pieces. If absent, they are sent as fast as the reader reads them. */
  readonly everyMs?: number;
  /** Compresses the pieces. */
  readonly isPacked?: boolean;
  /** Sends the pieces in place of an HTTP reply. */
  readonly isRaw?: boolean;
  readonly pieces: () => Pieces;
}

/** All hostile behaviours. */
export const hostileBehaviours = [
  'flood',
  'packed flood',
  'bomb',
  'zeros',
  'long block',
  'long frame',
  'slow bytes',
  'other bytes',
  'years',
  'no time',
  'swinging clock',
  'markup',
  'clients',
  'losses',
  'left out',
  'reloads',
  'wrong types',
  'redirect',
  'endless refusal',
  'endless hints',
  'silent',
  'no reply',
] as const;

export type HostileBehaviour = (typeof hostileBehaviours)[number] | 'good';

/** A queue of packets that are written as pcapng. */
class PcapngPieces {
  #blocks: Uint8Array[] = [];
  readonly #frame = { ...emptyFrame(), link: LINK.RAW };
  readonly #writer = new PcapngWriter((block) => this.#blocks.push(block), 'hostile');

  constructor() {
    this.#writer.describe(this.#frame);
  }

  /** Adds a query and its reply. */
  ask(client: string, name: string, id: number, atMs: number, server = '10.96.0.10'): void {
    const ends = { from: client, fromPort: 30_000 + (id % 20_000), to: server, toPort: 53 };
    const answer = [addressRecord(name, '192.0.2.1')];
    this.#packet(udpPacket(ends, dnsMessage(name, 'A', { id: id % 65_536 })), atMs);
    const reply = dnsMessage(name, 'A', { id: id % 65_536, reply: true, answer });
    this.#packet(udpPacket(back(ends), reply), atMs + 0.5);
  }

  #packet(bytes: Uint8Array, timeMs: number): void {
    const { length: end } = bytes;
    this.#writer.packet({ ...this.#frame, bytes, end, wireLength: end, timeMs });
  }

  take(): Uint8Array {
    const bytes = Buffer.concat(this.#blocks);
    this.#blocks = [];
    return bytes;
  }
}

const client = (number: number): string =>
  `10.${1 + ((number >> 16) & 0x7f)}.${(number >> 8) & 255}.${number & 255}`;

/** Queries of many clients, at the times that `timeOf` returns, in pieces of `size` queries. */
function* packets(
  size: number,
  timeOf: () => number = Date.now,
  name: (number: number) => string = (number) => `n${number}.flood.example.`,
): Pieces {
  const stream = new PcapngPieces();
  for (let number = 0; ;) {
    for (let at = 0; at < size; at++, number++)
      stream.ask(client(number), name(number), number, timeOf());
    yield stream.take();
  }
}

const started = (): Uint8Array => writeControl(CONTROL.START, ['protobuf:dnstap.Dnstap']);

/** Notes of a `console` directive. */
function* notes(note: (number: number) => readonly string[]): Pieces {
  yield started();
  for (let number = 0; ; number++) yield Buffer.concat(note(number).map(noteFrame));
}

function* forever(bytes: Uint8Array): Pieces {
  for (;;) yield bytes;
}

/** The beginning of a pcapng block that claims this many bytes, and then zeros. */
function* longBlock(length: number): Pieces {
  const stream = new PcapngPieces();
  yield stream.take();
  const head = Buffer.alloc(8);
  head.writeUInt32LE(6, 0);
  head.writeUInt32LE(length, 4);
  yield head;
  yield* forever(Buffer.alloc(64 * 1024));
}

/** A Corefile that shares no line with that of another number. */
const otherCorefile = (number: number, lines: number): string =>
  JSON.stringify([
    {
      file: '\u001b[31mCorefile<script>',
      text: Array.from({ length: lines }, (_, line) => `${number}-${line}`).join('\n'),
    },
  ]);

/** All behaviours, by name. */
const behaviours: Readonly<Record<HostileBehaviour, Behaviour>> = {
  /** Not hostile: 50 queries a second by five clients. */
  good: {
    everyMs: 100,
    *pieces() {
      const stream = new PcapngPieces();
      for (let number = 0; ;) {
        for (let at = 0; at < 5; at++, number++)
          stream.ask(`10.0.0.${at}`, 'shop.example.com.', number, Date.now(), '10.96.0.11');
        yield stream.take();
      }
    },
  },
  flood: { pieces: () => packets(500) },
  'packed flood': { isPacked: true, pieces: () => packets(500) },
  /** Valid blocks that compress a thousandfold: a name resolution block of zeros. */
  bomb: {
    isPacked: true,
    *pieces() {
      yield new PcapngPieces().take();
      const block = Buffer.alloc(64 * 1024);
      block.writeUInt32LE(4, 0);
      block.writeUInt32LE(block.length, 4);
      block.writeUInt32LE(block.length, block.length - 4);
      yield* forever(Buffer.concat(Array.from({ length: 64 }, () => block)));
    },
  },
  zeros: { isPacked: true, pieces: () => forever(Buffer.alloc(1024 * 1024)) },
  'long block': { pieces: () => longBlock(16 * 1024 * 1024) },
  'long frame': {
    *pieces() {
      yield started();
      yield Buffer.from([0, 0x10, 0, 0]);
      yield* forever(Buffer.alloc(64 * 1024));
    },
  },
  'slow bytes': {
    everyMs: 1000,
    *pieces() {
      for (const byte of longBlock(1024 * 1024)) for (const each of byte!) yield Buffer.of(each);
    },
  },
  'other bytes': { pieces: () => forever(Buffer.alloc(4096, 0xff)) },
  years: { everyMs: 20, pieces: () => packets(1, () => Date.now() + 20 * 365 * 86_400_000) },
  /** Times that no calendar has. */
  'no time': { everyMs: 20, pieces: () => packets(1, () => 2 ** 62 / 1000) },
  'swinging clock': {
    everyMs: 20,
    *pieces() {
      let step = 0;
      yield* packets(1, () => Date.now() + (step++ % 2 === 0 ? 1 : -1) * 10 * 365 * 86_400_000);
    },
  },
  markup: {
    everyMs: 20,
    pieces: () => packets(1, Date.now, () => '\\027[31m<script>alert\\0401\\041</script>.example.'),
  },
  clients: { everyMs: 200, pieces: () => packets(10_000) },
  /** Claims to have dropped more packets than numbers can count. */
  losses: {
    everyMs: 100,
    *pieces() {
      const stream = new PcapngPieces();
      yield stream.take();
      for (let number = 0; ; number++)
        yield lossBlock(number % 2 === 0 ? Number.MAX_SAFE_INTEGER : 0, Date.now());
    },
  },
  'left out': {
    everyMs: 100,
    pieces: () =>
      notes((number) =>
        ['9007199254740991', '-5', 'NaN', '1e308', '9'.repeat(400)].map(
          (count) => `${LEFT_OUT}${number % 2 === 0 ? count : '0'}`,
        ),
      ),
  },
  reloads: {
    pieces: () =>
      notes((number) => [
        `${CONFIGURATION}${otherCorefile(number, 20_000)}`,
        `${RELOADED}${Date.now()}`,
      ]),
  },
  'wrong types': {
    everyMs: 20,
    pieces: () =>
      notes((number) => [
        `${CONFIGURATION}${['null', '[null]', '{}', '[{"file":1,"text":{}}]', '[', '1e999'][number % 6]}`,
        `${RELOADED}${['1e308', '-1', 'NaN', '8640000000000001', '9007199254740991', ''][number % 6]}`,
      ]),
  },
  redirect: {
    status: 302,
    headers: { location: '/v1/exchanges', 'ndots-stream': '1' },
    pieces: () => [Buffer.from('elsewhere')],
  },
  'endless refusal': {
    status: 503,
    everyMs: 100,
    pieces: () => forever(Buffer.from('\u001b[31m<b>'.repeat(100))),
  },
  /** Interim responses, which may come before a reply, and no reply. */
  'endless hints': {
    isRaw: true,
    pieces: () =>
      forever(Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(1000))),
  },
  silent: { pieces: () => [null] },
  'no reply': { status: 0, pieces: () => [] },
};

async function send(behaviour: Behaviour, response: ServerResponse): Promise<void> {
  const { status = 200, headers = { 'ndots-stream': '1' }, everyMs } = behaviour;
  const { isPacked = false, isRaw = false } = behaviour;
  if (status === 0) return;
  if (!isRaw) {
    response.writeHead(status, { ...headers, ...(isPacked && { 'content-encoding': 'gzip' }) });
    response.flushHeaders();
  }
  const out = isPacked ? createGzip() : isRaw ? response.socket! : response;
  if (isPacked) out.pipe(response);
  out.on('error', () => undefined);
  for (const piece of behaviour.pieces()) {
    if (piece === null) return;
    if (response.destroyed) return;
    const hasRoom = out.write(piece);
    if (!hasRoom)
      await new Promise<void>((resolve) => {
        out.once('drain', resolve);
        response.once('close', resolve);
      });
    await new Promise((resolve) =>
      everyMs === undefined ? setImmediate(resolve) : setTimeout(resolve, everyMs),
    );
  }
  out.end();
}

/** Starts agents in a process of their own, and returns their ports. */
export async function hostileAgents(
  names: readonly HostileBehaviour[],
): Promise<{ readonly ports: readonly number[]; readonly child: Child }> {
  const child = start('agents', [process.execPath, import.meta.filename, ...names]);
  await printed(child, /^[\d ]+\n/);
  return { ports: child.output().trim().split(' ').map(Number), child };
}

async function listen(behaviour: Behaviour): Promise<number> {
  const server = createServer((_request, response) => void send(behaviour, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

if (import.meta.main) {
  const names = process.argv.slice(2) as HostileBehaviour[];
  const ports = await Promise.all(names.map((name) => listen(behaviours[name])));
  process.stdout.write(`${ports.join(' ')}\n`);
}
