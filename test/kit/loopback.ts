/** Queries, replies and clients on loopback, for testing listeners and upstreams. */
import type { EventEmitter } from 'node:events';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { systemClock } from '../../src/server/base/clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import {
  limits as allLimits,
  usualLimits,
  type ListenerLimits,
} from '../../src/server/transport/limits/limits.ts';
import {
  listenerCounters,
  type ListenerCounters,
} from '../../src/server/transport/listener-counters.ts';
import type {
  ListenAddress,
  ListenerParts,
  ListenerTls,
  Serve,
} from '../../src/server/transport/listener.ts';
import { FLAG, HEADER, TYPE } from '../../src/server/wire/iana.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { makeQuery, type Query } from '../../src/server/transport/query.ts';
import { Reply } from '../../src/server/wire/reply.ts';

/** Encodes an A query. `edns` adds an OPT record with that UDP payload size. */
export function queryBytes(name: string, id = 1, edns = 0): Buffer {
  const query = makeQuery(parseName(name), TYPE.A, 1, id);
  const plain = Buffer.from(query.bytes.slice(query.start, query.end));
  if (edns === 0) return plain;
  plain[HEADER.ARCOUNT + 1] = 1;
  return Buffer.concat([plain, Buffer.from([0, 0, 41, edns >> 8, edns & 0xff, 0, 0, 0, 0, 0, 0])]);
}

/** Builds a reply to the query with `count` A records: 10.0.0.1, 10.0.0.2 … */
export function replyWith(query: Query, count = 1, flags: number = FLAG.AA): Reply {
  const bytes = new Uint8Array(query.questionEnd + 16 * count);
  bytes[2] = (FLAG.QR | flags) >> 8;
  bytes[3] = flags & 0xff;
  bytes[5] = 1;
  bytes[6] = count >> 8;
  bytes[7] = count & 0xff;
  const from = query.start + HEADER.SIZE;
  bytes.set(query.bytes.subarray(from, from + query.nameLength + 4), HEADER.SIZE);
  for (let i = 0; i < count; i++) {
    const at = query.questionEnd + 16 * i;
    bytes.set(
      [0xc0, HEADER.SIZE, 0, TYPE.A, 0, 1, 0, 0, 0, 30, 0, 4, 10, 0, (i + 1) >> 8, i + 1],
      at,
    );
  }
  return new Reply(bytes, 0, bytes.length, 0, 'test');
}

export const answerOne: Serve = (query) => replyWith(query);

/** A listener's parts and the state that tests can observe. `lines` are its log lines. */
export interface TestParts extends ListenerParts {
  readonly lines: string[];
  /** Totals over all protocols. */
  readonly counts: ListenerCounters;
}

/** Parts for a listener on 127.0.0.1, on a port chosen by the system. */
export function listenerParts(
  serve: Serve,
  endpoint: Partial<ListenAddress> = {},
  limits: Partial<ListenerLimits> = {},
  tls: ListenerTls | null = null,
): TestParts {
  const lines: string[] = [];
  const counts = listenerCounters(null, '')('udp');
  return {
    endpoint: { scheme: 'dns', address: '127.0.0.1', port: 0, ...endpoint },
    serve,
    clock: systemClock,
    log: makeLog((line) => lines.push(line)),
    terms: {
      limits: { ...usualLimits, connections: allLimits.connections.default, ...limits },
      tls,
      proxy: null,
    },
    counters: () => counts,
    counts,
    lines,
  };
}

/** A UDP client that stores the datagrams it receives. */
export class UdpClient {
  readonly #socket: UdpSocket;
  #closed = false;
  readonly #arrived: { bytes: Buffer; address: string; port: number }[] = [];
  #wake: (() => void) | null = null;

  private constructor(socket: UdpSocket) {
    this.#socket = socket;
    socket.on('message', (bytes, { address, port }) => {
      this.#arrived.push({ bytes, address, port });
      this.#wake?.();
    });
  }

  static async open(address = '127.0.0.1'): Promise<UdpClient> {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    socket.bind(0, address);
    await once(socket, 'listening');
    return new UdpClient(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  send(bytes: Uint8Array, port: number, address = '127.0.0.1'): void {
    this.#socket.send(bytes, port, address);
  }

  /** Returns the next datagram, or null if none arrives within `waitMs`. */
  async next(waitMs = 2000): Promise<{ bytes: Buffer; address: string; port: number } | null> {
    const end = performance.now() + waitMs;
    while (this.#arrived.length === 0) {
      const left = end - performance.now();
      if (left <= 0) return null;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#arrived.shift()!;
  }

  async ask(bytes: Uint8Array, port: number, address = '127.0.0.1'): Promise<Buffer | null> {
    this.send(bytes, port, address);
    return (await this.next())?.bytes ?? null;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }
}

/** Prepends the message's two length bytes. */
export function framed(message: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
}

/** A client that exchanges framed messages over a byte stream. */
export class StreamClient {
  readonly socket: Socket;
  #bytes = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#wake?.();
    });
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on('end', end);
    socket.on('close', end);
    socket.on('error', end);
  }

  static async open(port: number, address = '127.0.0.1'): Promise<StreamClient> {
    const socket = connect({ port, host: address, allowHalfOpen: true });
    await once(socket, 'connect');
    return new StreamClient(socket);
  }

  send(...messages: Uint8Array[]): void {
    this.socket.write(Buffer.concat(messages.map(framed)));
  }

  /** Returns the next message, or null at the end of the stream or after `waitMs`. */
  async next(waitMs = 2000): Promise<Buffer | null> {
    const end = performance.now() + waitMs;
    for (;;) {
      const size = this.#bytes.length >= 2 ? this.#bytes.readUInt16BE(0) : -1;
      if (size >= 0 && this.#bytes.length >= 2 + size) {
        const message = this.#bytes.subarray(2, 2 + size);
        this.#bytes = this.#bytes.subarray(2 + size);
        return message;
      }
      const left = end - performance.now();
      if (this.#ended || left <= 0) return null;
      await this.#changed(left);
    }
  }

  /** True if the server ends the stream within `waitMs`. */
  async ended(waitMs = 2000): Promise<boolean> {
    const end = performance.now() + waitMs;
    while (!this.#ended && performance.now() < end) await this.#changed(end - performance.now());
    return this.#ended;
  }

  close(): void {
    this.socket.destroy();
  }

  #changed(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Resolves when it closes, even after an error. `once` from `node:events` would reject in that case. */
export function closed(emitter: EventEmitter): Promise<void> {
  return new Promise((resolve) => emitter.once('close', () => resolve()));
}
