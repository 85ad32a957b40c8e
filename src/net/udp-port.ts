import { createSocket } from 'node:dgram';

import { packetLoop } from '../linux/packet-loop.ts';
import { SystemError } from '../linux/libc.ts';
import { BATCH } from '../linux/receive-batch.ts';
import { UdpSocket } from '../linux/udp-socket.ts';
import type { Query } from '../wire/query.ts';
import { writeQuery } from './match-reply.ts';
import type { UpstreamParts } from './network.ts';

/** A UDP socket towards one upstream, from a port that the system chose at random. */
export interface UdpPort {
  /** Errors come through `onError`, later. */
  send(query: Query, id: number): void;
  /** Whether more can be given now that will leave with what was given before, at hardly any cost. */
  readonly gathering: boolean;
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
  const queries: Query[] = [];
  const ids: number[] = [];
  const flush = (): void => {
    const { sending } = loop;
    sending.flush(socket.fd);
    if (sending.errno !== 0) onError(new SystemError('write', sending.errno));
  };
  /** What was gathered leaves. An error of the socket may be one that an earlier query met (an ICMP message). */
  const depart = (): void => {
    const { sending } = loop;
    for (let i = 0; i < queries.length; i++) {
      const query = queries[i]!;
      if (!sending.hasRoom(query.end - query.start)) flush();
      // An error may close the port.
      if (!open) break;
      sending.addToPeer(writeQuery(query, ids[i]!, sending.slab, sending.at));
    }
    queries.length = 0;
    ids.length = 0;
    if (open && sending.count > 0) flush();
  };
  const drain = (): void => {
    const { receiving } = loop;
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
      ids.push(id);
      if (queries.push(query) === 1) loop.whenTurnEnds(depart);
    },
    get gathering() {
      return queries.length > 0 && queries.length < BATCH;
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
    gathering: false,
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
