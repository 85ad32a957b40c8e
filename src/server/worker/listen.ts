import { FILE_MAX, readFileBytes } from '../../base/read-file.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Listener, ListenerTls, Serve } from '../../net/listener.ts';
import { openListeners } from '../../net/open.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';

/**
 * Connections at a time per listener: as many as fit comfortably in the memory limit of a cluster DNS server. Measured: 8 kB
 * each for TCP, 52 kB for TLS.
 */
const CONNECTIONS_MAX = { dns: 4096, tls: 1024, https: 1024 } as const;

/** The transports of one planned endpoint. */
export function listenAt(
  endpoint: EndpointPlan,
  serve: Serve,
  parts: {
    readonly clock: Clock;
    readonly log: Log;
    readonly transport: 'auto' | 'batched' | 'plain';
  },
): Listener {
  const { scheme, listen: address, port } = endpoint;
  const batched = ({ auto: 'auto', batched: 'on', plain: 'off' } as const)[parts.transport];
  return openListeners(
    {
      endpoint: { scheme, address, port },
      serve,
      clock: parts.clock,
      log: parts.log,
      limits: {
        readTimeoutMs: endpoint.readTimeoutMs,
        writeTimeoutMs: endpoint.writeTimeoutMs,
        idleTimeoutMs: endpoint.idleTimeoutMs,
        maxQueries: endpoint.maxTcpQueries,
        maxConnections: CONNECTIONS_MAX[scheme === 'dns' || scheme === 'tls' ? scheme : 'https'],
      },
      tls: endpoint.tls === null ? null : readTls(endpoint.tls),
    },
    { batched },
  );
}

function readTls(plan: NonNullable<EndpointPlan['tls']>): ListenerTls {
  const { certificate, key, authority, clientAuth } = plan;
  return {
    certificate: readFileBytes(certificate, FILE_MAX.small),
    key: readFileBytes(key, FILE_MAX.small),
    authority: authority === '' ? null : readFileBytes(authority, FILE_MAX.small),
    requestCert: clientAuth !== 'nocert',
    rejectUnauthorized: clientAuth === 'require_and_verify' || clientAuth === 'verify_if_given',
  };
}
