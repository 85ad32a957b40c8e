import type { Limit } from '../base/limits.ts';
import { Problem } from '../base/problem.ts';
import { batchedUdp } from '../runtime/packet-loop.ts';
import { transports, type Scheme } from '../wire/transports.ts';
import { limits } from './limits/limits.ts';
import type { MakeListener } from './listener.ts';

/** Selects batched system calls for UDP. `auto` uses them where they work, and `batched` fails if they do not work. */
export type UdpMode = 'auto' | 'batched' | 'plain';

export interface TransportService {
  /** Default, minimum and maximum number of connections per listener. */
  readonly connections: Limit;
  /** Creates a listener for each of the transport's sockets. The code is loaded on first use. */
  listeners(udp: UdpMode): Promise<readonly MakeListener[]>;
}

/** The transports that are served. To add another, add a row here and its protocol or listener. */
const table: Readonly<Partial<Record<Scheme, TransportService>>> = {
  dns: {
    connections: limits.connections,
    listeners: async (mode) => [await udp(mode), (await import('./stream/tcp.ts')).tcpListener],
  },
  tls: {
    connections: limits.secureConnections,
    listeners: async () => [(await import('./stream/tcp.ts')).tlsListener],
  },
  https: {
    connections: limits.secureConnections,
    listeners: async () => [(await import('./https/https.ts')).httpsListener],
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

/**
 * Returns the UDP listener to use.
 * @throws Problem (`batched-udp-not-available`) if batched system calls are required but do not work
 */
async function udp(mode: UdpMode): Promise<MakeListener> {
  const plain = async (): Promise<MakeListener> =>
    (await import('./udp/udp-plain.ts')).plainUdpListener;
  if (mode === 'plain') return plain();
  const found = batchedUdp();
  if (found.available) return (await import('./udp/udp-batch.ts')).batchedUdpListener;
  if (mode === 'auto') return plain();
  throw new Problem({
    code: 'batched-udp-not-available',
    text: `batched UDP is not available here: ${found.reason}`,
    remedy:
      'Install the optional dependency koffi, or let ndots choose the transport automatically.',
  });
}
