import { isIP } from '../../base/ip.ts';
import type { Span } from './span.ts';

/** The reporting service, for collectors. */
export interface Reporter {
  readonly service: string;
  /** Listen address; `''` and 0 mean all addresses, or that it is unknown. */
  readonly address: string;
  readonly port: number;
}

/** Encodes spans as Zipkin JSON, version 2 (`/api/v2/spans`). Trace IDs have 16 digits, as in CoreDNS. */
export function zipkinBody(spans: readonly Span[], { service, address, port }: Reporter): Buffer {
  const family = isIP(address);
  const localEndpoint = {
    serviceName: service,
    ...(family === 4 && { ipv4: address }),
    ...(family === 6 && { ipv6: address }),
    ...(port > 0 && { port }),
  };
  const list = spans.map(({ trace, id, parent, name, startMs, tookMs, tags, error }) => ({
    traceId: trace.slice(16),
    id,
    ...(parent === null ? { kind: 'SERVER' } : { parentId: parent }),
    name,
    timestamp: Math.round(startMs * 1000),
    // Zipkin reads 0 as an unknown duration.
    duration: Math.max(1, Math.round(tookMs * 1000)),
    localEndpoint,
    tags: error === null ? tags : { ...tags, error },
  }));
  return Buffer.from(JSON.stringify(list));
}
