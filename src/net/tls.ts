import { builtins } from '../base/builtins.ts';
import type { TlsOptions } from 'node:tls';

import { Problem } from '../base/problem.ts';
import type { Listener, ListenerParts } from './listener.ts';
import { StreamListener } from './stream-listener.ts';

/** Connections that may be shaking hands beside those that count. */
const HANDSHAKES_MAX = 256;

/** DNS over TLS (RFC 7858) at one address. */
export function tlsListener(parts: ListenerParts): Listener {
  return new StreamListener(parts, 'tls', ({ counters }, accept) => {
    const server = withCertificate(parts, (options) =>
      builtins.tls().createServer({
        ...options,
        allowHalfOpen: true,
        noDelay: true,
        handshakeTimeout: parts.limits.readTimeoutMs,
      }),
    );
    // Connections count once they have shown that they speak TLS; before that they are bounded here.
    server.maxConnections = parts.limits.maxConnections + HANDSHAKES_MAX;
    server.on('secureConnection', accept);
    server.on('tlsClientError', () => {
      if (counters !== undefined) counters.ignored++;
    });
    return server;
  });
}

/** What a TLS server needs of the listener's certificate. */
function serverTls({ tls }: ListenerParts): TlsOptions {
  if (tls === null) {
    throw new Problem({
      code: 'tls-missing',
      text: 'this listener needs a certificate',
      remedy: 'Add "tls CERT KEY" to the server block.',
    });
  }
  return {
    minVersion: 'TLSv1.2',
    cert: tls.certificate,
    key: tls.key,
    requestCert: tls.requestCert,
    rejectUnauthorized: tls.rejectUnauthorized,
    ...(tls.authority !== null && { ca: tls.authority }),
  };
}

/** Makes a server with the listener's certificate. @throws Problem (`tls-certificate`) if the files do not fit */
export function withCertificate<T>(parts: ListenerParts, make: (options: TlsOptions) => T): T {
  const options = serverTls(parts);
  try {
    return make(options);
  } catch (error) {
    throw new Problem({
      code: 'tls-certificate',
      text: `the TLS certificate can't be used: ${error instanceof Error ? error.message : String(error)}`,
      hint: 'The key does not belong to the certificate, or one of the files is not PEM.',
      remedy: 'Compare "openssl x509 -noout -pubkey -in CERT" with "openssl pkey -pubout -in KEY".',
      cause: error,
    });
  }
}
