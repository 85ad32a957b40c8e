import { createSocket } from 'node:dgram';

import { packetLoop } from '../linux/packet-loop.ts';
import { SystemError } from '../linux/libc.ts';
import { UdpSocket } from '../linux/udp-socket.ts';
import type { Query } from '../wire/query.ts';
import { writeQuery } from './match-reply.ts';
import type { UpstreamParts } from './network.ts';

/** A UDP socket towards one upstream, from a port that the system chose at random. */
export interface UdpPort {
  /** Errors come through `onError`, perhaps at once. */
  send(query: Query, id: number): void;
  /** While held it keeps the event loop alive. */
  hold(): void;
  release(): void;
  close(): void;
}

export interface UdpPortParts {
  readonly upstream: UpstreamParts;
  /** Bytes are valid during the call only. `cut`: the datagram was longer. */
  readonly onDatagram: (bytes: Uint8Array, start: number, end: number, cut: boolean) => void;
  /** The system says that what was sent did not arrive, or could not be sent. */
  readonly onError: (error: Error) => void;
}

export type OpenUdpPort = (parts: UdpPortParts) => UdpPort;

/** Batches that one port may take before others have their turn. */
const ROUNDS = 4;

/** A port on the packet loop. @throws SystemError (no more files, no route) */
export function batchedUdpPort({ upstream, onDatagram, onError }: UdpPortParts): UdpPort {
  const loop = packetLoop();
  const { host, port } = upstream.address;
  const socket = new UdpSocket({ family: host.includes(':') ? 6 : 4 });
  try {
    if (upstream.source !== '') socket.bind(upstream.source, 0);
    socket.connect(host, port);
  } catch (error) {
    socket.close();
    throw error;
  }
  let open = true;
  const drain = (): void => {
    const { receiving } = loop;
    loop.settle();
    for (let round = 0; open && round < ROUNDS; round++) {
      const count = receiving.receive(socket.fd);
      if (count < 0) {
        if (!receiving.isEmpty(count)) onError(new SystemError('read', -count));
        return;
      }
      for (let i = 0; i < count; i++) {
        const start = i * receiving.slot;
        onDatagram(receiving.slab, start, start + receiving.length(i), receiving.isCut(i));
      }
      if (!receiving.isFull(count)) return;
    }
  };
  const watch = loop.watch(socket.fd, drain);
  watch.unref();
  return {
    send(query, id) {
      const { outgoing } = loop;
      const length = writeQuery(query, id, outgoing.bytes, 0);
      const failed = socket.send(outgoing, length);
      if (failed !== null) onError(failed);
    },
    hold: () => watch.ref(),
    release: () => {
      if (open) watch.unref();
    },
    close() {
      if (!open) return;
      open = false;
      watch.close();
      socket.close();
    },
  };
}

/** A port through `node:dgram`. What is sent before it is connected waits. */
export function plainUdpPort({ upstream, onDatagram, onError }: UdpPortParts): UdpPort {
  const { host, port } = upstream.address;
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  let waiting: Uint8Array[] | null = [];
  let open = true;
  socket.unref();
  const sent = (error: Error | null): void => {
    if (error !== null && open) onError(error);
  };
  socket.on('error', (error) => {
    if (open) onError(error);
  });
  socket.on('message', (bytes) => {
    if (open) onDatagram(bytes, 0, bytes.length, false);
  });
  socket.bind(
    { port: 0, exclusive: true, ...(upstream.source !== '' && { address: upstream.source }) },
    () => {
      if (!open) return;
      socket.connect(port, host, (error?: Error) => {
        if (!open) return;
        if (error !== undefined && error !== null) return onError(error);
        const early = waiting ?? [];
        waiting = null;
        for (const bytes of early) socket.send(bytes, sent);
      });
    },
  );
  return {
    send(query, id) {
      const bytes = new Uint8Array(query.end - query.start);
      writeQuery(query, id, bytes, 0);
      if (waiting !== null) waiting.push(bytes);
      else socket.send(bytes, sent);
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
}
