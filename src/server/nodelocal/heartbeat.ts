/** Sends DNS queries to the cache itself, to show that it is answering. */
import { createSocket, type Socket } from 'node:dgram';
import { every, type Clock, type Timer } from '../base/clock.ts';
import { parseName } from '../wire/name.ts';
import { makeQueryMessage, QueryMessage } from '../wire/query-message.ts';
import { HEARTBEAT_SOURCE } from './packet-rules.ts';

/** The zone of the heartbeat query. It does not exist anywhere (RFC 6761), and the cache itself answers for it. */
export const HEARTBEAT_ZONE = 'node-cache-heartbeat.invalid.';

/** Milliseconds between heartbeats. Five or six fit into a lease, because a busy machine may delay some. */
const PERIOD_MS = 150;
/** Milliseconds without a reply after which an address is considered not to answer. */
const SILENCE_MS = 1000;

export interface HeartbeatParts {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly clock: Clock;
  /** Called when an address has started or stopped answering. */
  readonly onChange: (address: string, answers: boolean) => void;
}

/**
 * Queries every local address several times a second. The kernel sees the replies and renews the lease on their source
 * address. A lease therefore ends even if this process is dead.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts;
  readonly #sockets: readonly { readonly family: 4 | 6; readonly socket: Socket }[];
  readonly #query = makeQueryMessage(
    new QueryMessage(),
    parseName(HEARTBEAT_ZONE),
    1,
  ).bytes.slice();
  /** Time of each address's last answer. */
  readonly #last = new Map<string, number>();
  readonly #answering = new Set<string>();
  #timer: Timer | null = null;
  #stopped = false;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
    const families = new Set(parts.addresses.map((address) => (address.includes(':') ? 6 : 4)));
    this.#sockets = [...families].map((family) => ({ family, socket: this.#open(family) }));
  }

  get answers(): boolean {
    return this.#answering.size === this.#parts.addresses.length;
  }

  start(): void {
    this.#timer ??= every(this.#parts.clock, PERIOD_MS, () => this.#beat());
    this.#beat();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    for (const { socket } of this.#sockets) socket.close();
  }

  #open(family: 4 | 6): Socket {
    const socket = createSocket(family === 4 ? 'udp4' : 'udp6');
    socket.unref();
    socket.on('error', () => undefined);
    socket.on('message', (_, { address }) => this.#heard(address.replace(/%.*/, '')));
    socket.bind({ port: 0, address: HEARTBEAT_SOURCE[family], exclusive: true });
    return socket;
  }

  #beat(): void {
    const { addresses, port, clock } = this.#parts;
    const now = clock.now();
    for (const address of addresses) {
      const socket = this.#sockets.find(
        ({ family }) => (family === 6) === address.includes(':'),
      )!.socket;
      socket.send(this.#query, port, address, () => undefined);
      if (now - (this.#last.get(address) ?? -Infinity) > SILENCE_MS) this.#show(address, false);
    }
  }

  #heard(address: string): void {
    this.#last.set(address, this.#parts.clock.now());
    this.#show(address, true);
  }

  #show(address: string, answers: boolean): void {
    if (this.#answering.has(address) === answers) return;
    if (answers) this.#answering.add(address);
    else this.#answering.delete(address);
    this.#parts.onChange(address, answers);
  }
}
