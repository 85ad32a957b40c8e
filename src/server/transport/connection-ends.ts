import type { Socket } from 'node:net';

import { parseAddress, unmapped } from '../base/ip.ts';
import type { Query } from './query.ts';
import type { Proto } from '../wire/query-message.ts';

/** Both ends of a proxied connection, as given in the proxy's header. */
export interface NamedEnds {
  /** 4 or 16 bytes. */
  readonly peer: Uint8Array;
  readonly peerPort: number;
  readonly local: string;
  readonly localPort: number;
}

const named = new WeakMap<Socket, NamedEnds>();

/** Overrides a connection's ends. Call it before creating the socket's first `ConnectionEnds`. */
export function nameEnds(socket: Socket, ends: NamedEnds): void {
  named.set(socket, ends);
}

/** Copies the ends of a TCP socket to the TLS socket on top of it. */
export function inheritEnds(socket: Socket, below: Socket): void {
  const ends = named.get(below);
  if (ends !== undefined) named.set(socket, ends);
}

/** The client's address and the address it queried, taken from the socket or from a trusted proxy's header. */
export class ConnectionEnds {
  readonly #peer: Uint8Array;
  readonly #peerPort: number;
  readonly #local: string;
  readonly #localPort: number;

  constructor(socket: Socket) {
    const ends = named.get(socket) ?? {
      peer: parseAddress(bareAddress(socket.remoteAddress)) ?? new Uint8Array(4),
      peerPort: socket.remotePort ?? 0,
      local: bareAddress(socket.localAddress),
      localPort: socket.localPort ?? 0,
    };
    this.#peer = ends.peer;
    this.#peerPort = ends.peerPort;
    this.#local = ends.local;
    this.#localPort = ends.localPort;
  }

  identify(query: Query, proto: Proto): void {
    query.proto = proto;
    query.family = this.#peer.length === 4 ? 4 : 6;
    query.peer = this.#peer;
    query.peerAt = 0;
    query.peerPort = this.#peerPort;
    query.local = this.#local;
    query.localPort = this.#localPort;
  }
}

/** Returns a socket address without its zone. IPv4-mapped addresses are returned as IPv4, and undefined as `''`. */
export function bareAddress(text: string | undefined): string {
  if (text === undefined) return '';
  const zone = text.indexOf('%');
  return unmapped(zone < 0 ? text : text.slice(0, zone));
}
