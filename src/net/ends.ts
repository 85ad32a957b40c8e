import type { Socket } from 'node:net';

import { parseAddress } from '../base/ip.ts';
import type { Proto, Query } from '../wire/query.ts';

/** Who asks over a connection, and which address was asked. */
export class Ends {
  readonly #peer: Uint8Array;
  readonly #peerPort: number;
  readonly #local: string;
  readonly #localPort: number;

  constructor(socket: Socket) {
    this.#peer = parseAddress(bareAddress(socket.remoteAddress)) ?? new Uint8Array(4);
    this.#peerPort = socket.remotePort ?? 0;
    this.#local = bareAddress(socket.localAddress);
    this.#localPort = socket.localPort ?? 0;
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
