import { FramedConnection } from './framed-connection.ts';
import type { ListenerParts } from '../listener.ts';
import { StreamListener } from './stream-listener.ts';

/** DNS over TCP (RFC 7766) on one address. */
export function tcpListener(parts: ListenerParts): StreamListener {
  return framedListener(parts, 'tcp');
}

/** DNS over TLS (RFC 7858) on one address. As in CoreDNS, clients need not name the protocol in the handshake. */
export function tlsListener(parts: ListenerParts): StreamListener {
  return framedListener(parts, 'tls');
}

function framedListener(parts: ListenerParts, proto: 'tcp' | 'tls'): StreamListener {
  return new StreamListener(parts, {
    proto,
    alpn: [],
    connect: (socket, host) => new FramedConnection(socket, host),
  });
}
