import type { TLSSocket } from 'node:tls';

import { Http1Connections } from './http1-connections.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { HttpsService } from '../http2/https-service.ts';
import type { ListenerParts } from '../listener.ts';
import { StreamListener } from '../stream/stream-listener.ts';

/**
 * DNS over HTTPS (RFC 8484) on one address. With a certificate it serves HTTP/2 and HTTP/1.1; without one, it serves
 * plain HTTP/1.1 behind a proxy that terminates TLS.
 */
export function httpsListener(parts: ListenerParts): StreamListener {
  const service = new HttpsService();
  let http1: Http1Connections | null = null;
  return new StreamListener(parts, {
    proto: 'https',
    alpn: ['h2', 'http/1.1'],
    connect: (socket, host) =>
      (socket as Partial<TLSSocket>).alpnProtocol === 'h2'
        ? new Http2Connection(socket, host, service)
        : (http1 ??= new Http1Connections(service)).connect(socket, host),
  });
}
