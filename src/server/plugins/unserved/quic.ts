/** CoreDNS directives for QUIC transports. */
import { setting } from '../../corefile/properties.ts';
import { integer, value, Wrong, wrong, type Value } from '../../corefile/word-values.ts';
import type { Plugin } from '../../engine/contract/plugin.ts';
import { refusing } from './unserved.ts';

/** Parses an integer, using CoreDNS's wording for these directives. */
function limit(property: string, least: 0 | 1): Value<number> {
  const kind = least === 0 ? 'a non-negative integer' : 'a positive integer';
  return value('N', (token) => {
    const found = integer('N').read(token);
    if (found instanceof Wrong)
      return wrong(`invalid ${property} value '${token.text}': ${found.text}`);
    return found >= least ? found : wrong(`${property} must be ${kind}: ${found}`);
  });
}

const why =
  'the runtime does not support QUIC, and no npm package provides it for all supported machines.';
const instead =
  'Serve `tls://` (DNS over TLS) or `https://` (DNS over HTTPS); clients that speak QUIC also speak one of these.';

/** Limits for `quic://` listeners. */
export const quic: Plugin = refusing({
  shape: {
    name: 'quic',
    summary: 'limits of DNS over QUIC',
    args: {},
    properties: {
      maxStreams: setting('max_streams', limit('max_streams', 1)),
      workers: setting('worker_pool_size', limit('worker_pool_size', 1)),
    },
  },
  why,
  instead,
});

/** Limits for `https3://` listeners. */
export const https3: Plugin = refusing({
  shape: {
    name: 'https3',
    summary: 'limits of DNS over HTTP/3',
    args: {},
    properties: {
      maxStreams: setting('max_streams', limit('max_streams', 0)),
      maxConnections: setting('max_connections', limit('max_connections', 0)),
    },
  },
  why,
  instead,
});
