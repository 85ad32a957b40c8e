import type { Limit } from '../base/limits.ts';
import { Problem } from '../base/problem.ts';
import { batchedUdp } from '../linux/packet-loop.ts';
import { transports, type Scheme } from '../wire/transports.ts';
import { limits } from './limits.ts';
import type { MakeListener } from './listener.ts';

/** Whether UDP goes through batched system calls: `auto` where they work, `batched` insists. */
export type UdpMode = 'auto' | 'batched' | 'plain';

/** How a transport is served. */
export interface TransportService {
  /** Connections at a time per listener when nobody says otherwise. */
  readonly connections: Limit;
  /** What is bound at the port, one for each of the transport's sockets. Loaded when it is first used. */
  listeners(udp: UdpMode): Promise<readonly MakeListener[]>;
}

/** The transports that are served. One more is a row here, and its own protocol or listener. */
const table: Readonly<Partial<Record<Scheme, TransportService>>> = {
  dns: {
    connections: limits.connections,
    listeners: async (mode) => [await udp(mode), (await import('./tcp.ts')).tcpListener],
  },
  tls: {
    connections: limits.secureConnections,
    listeners: async () => [(await import('./tcp.ts')).tlsListener],
  },
  https: {
    connections: limits.secureConnections,
    listeners: async () => [(await import('./https.ts')).httpsListener],
  },
  grpc: {
    connections: limits.secureConnections,
    listeners: async () => [(await import('./grpc/grpc-listener.ts')).grpcListener],
  },
};

/** The names of the transports that are served. */
export const servedSchemes: readonly Scheme[] = (Object.keys(transports) as Scheme[]).filter(
  (scheme) => scheme in table,
);

/** @throws Problem (`transport-not-supported`) */
export function served(scheme: Scheme): TransportService {
  const found = table[scheme];
  if (found !== undefined) return found;
  throw new Problem({
    code: 'transport-not-supported',
    text: `transport ${scheme}:// is not supported`,
    remedy: `Use one of ${servedSchemes.map((name) => `${name}://`).join(', ')}.`,
  });
}

/** The UDP listener to use here. @throws Problem (`batched-udp-not-available`) if it is insisted on in vain */
async function udp(mode: UdpMode): Promise<MakeListener> {
  const plain = async (): Promise<MakeListener> =>
    (await import('./udp-plain.ts')).plainUdpListener;
  if (mode === 'plain') return plain();
  const found = batchedUdp();
  if (found.available) return (await import('./udp-batch.ts')).batchedUdpListener;
  if (mode === 'auto') return plain();
  throw new Problem({
    code: 'batched-udp-not-available',
    text: `batched UDP is not available here: ${found.reason}`,
    remedy: 'Install the optional dependency koffi, or let the transport be chosen automatically.',
  });
}
