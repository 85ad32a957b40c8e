import { Http2Connection } from '../http2/http2-connection.ts';
import type { ListenerParts } from '../listener.ts';
import { StreamListener } from '../stream/stream-listener.ts';
import { GrpcService } from './grpc-service.ts';

/**
 * DNS over gRPC on one address. Uses HTTP/2 over TLS if there is a certificate, otherwise HTTP/2 with prior knowledge
 * (RFC 9113 section 3.3).
 */
export function grpcListener(parts: ListenerParts): StreamListener {
  const service = new GrpcService();
  return new StreamListener(parts, {
    proto: 'grpc',
    alpn: ['h2'],
    connect: (socket, host) => new Http2Connection(socket, host, service),
  });
}
