/** `grpc_server`: limits for gRPC listeners. */
import { directive } from '../../corefile/syntax.ts';
import { limits } from '../../transport/limits/limits.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { maximum, unlessZero } from '../../corefile/maximum.ts';

/** More than a connection can ever have, because stream IDs are odd 31-bit numbers. */
const STREAMS_MOST = 0x7fff_ffff;

const syntax = directive({
  name: 'grpc_server',
  summary: 'limits the streams and connections of gRPC listeners',
  repeat: 'first',
  properties: {
    maxStreams: maximum(
      'max_streams',
      'maximum number of simultaneous queries on each connection',
      String(limits.streams.default),
    ),
    maxConnections: maximum(
      'max_connections',
      'maximum number of simultaneous connections',
      String(limits.secureConnections.default),
    ),
  },
});

/** Only affects configuration. */
export const grpcServer: Plugin = definePlugin({
  syntax,
  plan({ maxStreams, maxConnections }, plan) {
    plan.limits.of.grpc = {
      ...(maxStreams !== null && { streams: Math.min(STREAMS_MOST, unlessZero(maxStreams)) }),
      ...(maxConnections !== null && { connections: unlessZero(maxConnections) }),
    };
  },
});
