import type { ConnectionOptions } from 'node:tls';

import type { UpstreamParts } from './network.ts';

/** How to speak TLS with an upstream. Without a server name the certificate must carry the IP address. */
export function tlsOptions({ address, tls }: UpstreamParts): ConnectionOptions {
  return {
    minVersion: 'TLSv1.2',
    ...(address.serverName !== '' && { servername: address.serverName }),
    ...(tls?.authority != null && { ca: tls.authority }),
    ...(tls?.certificate != null && { cert: tls.certificate }),
    ...(tls?.key != null && { key: tls.key }),
  };
}
