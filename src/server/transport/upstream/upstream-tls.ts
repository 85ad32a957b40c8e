import type { ConnectionOptions } from 'node:tls';

import type { UpstreamParts } from '../upstream-address.ts';

/** Returns TLS options for an upstream. Without a server name, the certificate must contain the IP address. */
export function tlsOptions({ address, tls }: UpstreamParts): ConnectionOptions {
  const { authority = null, certificate = null, key = null } = tls ?? {};
  return {
    minVersion: 'TLSv1.2',
    ...(address.serverName !== '' && { servername: address.serverName }),
    ...(authority !== null && { ca: authority }),
    ...(certificate !== null && { cert: certificate }),
    ...(key !== null && { key }),
  };
}
