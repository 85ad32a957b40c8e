import { printHostPort } from '../../base/ip.ts';
import { createSocket } from 'node:dgram';

import { ConnectedSocket } from '../../runtime/connected-socket.ts';
import type { Query } from '../query.ts';
import { sizeUpstream, writeQuery } from '../upstream/write-query.ts';
import type { UpstreamParts } from '../upstream-address.ts';

/** A UDP socket connected to one upstream, with a random port chosen by the system. */
export interface UdpPort {
  /** @returns the reason why nothing can be sent from this port; later errors are reported to the owner */
  send(query: Query, id: number): Error | null;
  /** `10.0.0.1:40000`; empty until chosen by the system. */
  readonly local: string;
  hold(): void;
  release(): void;
  close(): void;
}

/** Receives the datagrams that arrive at a port. */
export interface UdpPortOwner {
  /** Number of expected replies. */
  readonly waiting: number;
  /**
   * The datagram is `bytes[start, end)`, which is valid only during the call. `cut` is true if it was longer than that.
   */
  onDatagram(bytes: Uint8Array, start: number, end: number, cut: boolean): void;
  /** Called when the system reports that something could not be sent or did not arrive. */
  onError(error: Error): void;
  /**
   * Called when sending the query with this id failed. The owner may only record this, and must not send anything
   * during the call.
   * @param left true if the query was sent, so the error belongs to an earlier one
   */
  onUnsent(id: number, error: Error, left: boolean): void;
}

/** Opens a port for queries to an upstream. */
export type OpenUdpPort = (upstream: UdpPeer, owner: UdpPortOwner) => UdpPort;

/** The upstream that a port is connected to, and the local address to send from. */
export type UdpPeer = Pick<UpstreamParts, 'address' | 'source'>;

/**
 * A port on the packet loop. It is a class because V8 would give each object literal with getters a shape of its own.
 */
class BatchedUdpPort implements UdpPort {
  readonly #socket: ConnectedSocket;

  constructor({ address, source }: UdpPeer, owner: UdpPortOwner) {
    this.#socket = new ConnectedSocket(source, address.host, address.port, owner);
  }

  send(query: Query, id: number): null {
    const at = this.#socket.reserve(sizeUpstream(query));
    this.#socket.send(writeQuery(query, id, this.#socket.out, at), id);
    return null;
  }

  get local(): string {
    return this.#socket.local;
  }

  hold(): void {
    this.#socket.ref();
  }

  release(): void {
    this.#socket.unref();
  }

  close(): void {
    this.#socket.close();
  }
}

/** @throws SystemError (no more files, no route) */
export const batchedUdpPort: OpenUdpPort = (upstream, owner) => new BatchedUdpPort(upstream, owner);

/** A port that uses `node:dgram`. Messages wait until it is connected. If it cannot connect, nothing is sent. */
export const plainUdpPort: OpenUdpPort = ({ address, source }, owner) => {
  const { host, port } = address;
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  let waiting: Uint8Array[] | null = [];
  let broken: Error | null = null;
  let open = true;
  socket.unref();
  const sent = (error: Error | null): void => {
    if (error !== null && open) owner.onError(error);
  };
  const failed = (error: Error): void => {
    if (!open) return;
    if (waiting !== null) broken = error;
    owner.onError(error);
  };
  socket.on('error', failed);
  socket.on('message', (bytes) => {
    if (open) owner.onDatagram(bytes, 0, bytes.length, false);
  });
  socket.bind({ port: 0, exclusive: true, ...(source !== '' && { address: source }) }, () => {
    if (!open) return;
    socket.connect(port, host, (error?: Error) => {
      if (!open) return;
      if (error !== undefined && error !== null) return failed(error);
      const early = waiting ?? [];
      waiting = null;
      for (const bytes of early) socket.send(bytes, sent);
    });
  });
  return {
    send(query, id) {
      if (broken !== null) return broken;
      const bytes = new Uint8Array(sizeUpstream(query));
      writeQuery(query, id, bytes, 0);
      if (waiting !== null) waiting.push(bytes);
      else socket.send(bytes, sent);
      return null;
    },
    get local() {
      if (waiting !== null) return '';
      const { address: from, port: at } = socket.address();
      return printHostPort(from, at);
    },
    hold: () => {
      socket.ref();
    },
    release: () => {
      if (open) socket.unref();
    },
    close() {
      if (!open) return;
      open = false;
      waiting = null;
      socket.close();
    },
  };
};
