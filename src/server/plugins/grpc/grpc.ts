/** `grpc`: forwards queries to other DNS servers over gRPC. */
import type { Maybe } from '../../base/maybe.ts';
import type { UpstreamTls } from '../../transport/upstream-address.ts';
import { retireUpstreams } from '../../transport/upstream/retire-upstreams.ts';
import { sendAsOurs } from '../../transport/upstream/write-query.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import type { NamedFiles } from '../../engine/contract/named-files.ts';
import { upstreamOrder } from '../../engine/contract/upstream-order.ts';
import { readUpstreamTls } from '../../engine/contract/upstream-tls.ts';
import { isInZone, ZoneMatch } from '../../engine/contract/zone-match.ts';
import { foldName, parseName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { overloaded, type Reply } from '../../wire/reply.ts';
import { GrpcExchange, reachableFirst, type GrpcTarget } from './grpc-exchange.ts';
import { GrpcMetrics } from './grpc-counters.ts';
import { syntax, type GrpcOptions } from './grpc-options.ts';
import { findUpstreams, type GrpcUpstreamSpec } from './grpc-upstreams.ts';

/** Sends queries to other servers over gRPC (see grpc.md). */
export const grpc: Plugin = definePlugin({
  syntax,
  plan(_, plan) {
    plan.anyClass = true;
  },
  control(options, context) {
    // Reports errors before anything is opened.
    upstreamsOf(options, context);
    tlsOf(options, context);
  },
  setup,
});

function setup(options: GrpcOptions, context: WorkerContext, next: Next): Next {
  const { clock, random, writer } = context;
  const metrics = new GrpcMetrics(context.metrics);
  const tls = tlsOf(options, context);
  const targets = upstreamsOf(options, context).map((spec): GrpcTarget => ({
    to: spec.to,
    upstream: context.network.upstream({
      address: { host: spec.host, port: spec.port, serverName: options.tlsServerName ?? '' },
      proto: 'grpc',
      tls,
      ...unused,
      inFlightMax: options.maxConcurrent,
      counters: metrics.upstream(spec.to),
    }),
    shunnedUntil: 0,
  }));
  context.onStop(() =>
    retireUpstreams(
      clock,
      targets.map(({ upstream }) => upstream),
    ),
  );
  const order = upstreamOrder<GrpcTarget>(options.policy, random);
  const from = foldName(parseName(options.from));
  const except = new ZoneMatch(options.except ?? []);
  const zones = options.fallthrough === null ? null : new ZoneMatch(options.fallthrough);
  // If no other plugin follows, this reply is better than none.
  const through = (query: Query): Next | null =>
    !context.last && zones !== null && zones.holds(query) ? next : null;
  const parts = { clock, metrics, writer, through };
  return (query: Query): Maybe<Reply> => {
    const apex = query.nameLength === from.length;
    if (!isInZone(query, from) || (!apex && except.holds(query))) return next(query);
    if (!query.mayWait) return overloaded;
    const now = clock.now();
    const kept = query.keep();
    sendAsOurs(kept);
    return new GrpcExchange(parts, kept, reachableFirst(order(targets), now), now).reply;
  };
}

const unused = {
  expireMs: 0,
  maxAgeMs: 0,
  maxIdle: 0,
  sourcePorts: 0,
  maxConnections: 1,
  burst: 0,
  source: '',
  httpMethod: 'POST',
} as const;

function upstreamsOf({ to, at }: GrpcOptions, files: NamedFiles): readonly GrpcUpstreamSpec[] {
  return findUpstreams(to, at, (file) => files.file(file).toString('utf8'));
}

/**
 * Returns the TLS settings; setting `tls_servername` alone also enables TLS.
 * @throws Problem
 */
function tlsOf(options: GrpcOptions, files: NamedFiles): UpstreamTls | null {
  const tls = readUpstreamTls('grpc', options, files);
  if (tls !== null || options.tlsServerName === null) return tls;
  return { certificate: null, key: null, authority: null };
}
