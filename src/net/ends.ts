import type { Socket } from 'node:net';

import { parseAddress } from '../base/ip.ts';
import type { Proto, Query } from '../wire/query.ts';

/** The ends of a connection as a proxy tells them. */
export interface NamedEnds {
  /** 4 or 16 bytes. */
  readonly peer: Uint8Array;
  readonly peerPort: number;
  readonly local: string;
  readonly localPort: number;
}

const named = new WeakMap<Socket, NamedEnds>();

/** What is said of the connection's ends holds from now on, before anybody makes `ConnectionEnds` of it. */
export function nameEnds(socket: Socket, ends: NamedEnds): void {
  named.set(socket, ends);
}

/** The encrypted socket has the ends of the one below. */
export function inheritEnds(socket: Socket, below: Socket): void {
  const ends = named.get(below);
  if (ends !== undefined) named.set(socket, ends);
}

/** Who asks over a connection, and which address was asked: as the system says, or a proxy that is believed. */
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

/** An address as sockets tell it, without its zone, and IPv4 in its own form; `''` for none. */
export function bareAddress(text: string | undefined): string {
  if (text === undefined) return '';
  const zone = text.indexOf('%');
  const address = zone < 0 ? text : text.slice(0, zone);
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
