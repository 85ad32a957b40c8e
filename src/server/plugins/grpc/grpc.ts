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
import {
  findUpstreams,
  type GrpcUpstreamSpec,
  readTo,
  type GrpcDestination,
} from './grpc-upstreams.ts';
import { limit } from '../../base/limits.ts';
import { tlsFiles } from '../../corefile/tls-files.ts';
import { oneZone, rest } from '../../corefile/positions.ts';
import { chained, fallthrough, setting, zoneList } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { choice, integer, value, word, worded, wrongForm } from '../../corefile/word-values.ts';

/** An unanswered query waits for two seconds at most and uses about 3 KB. */
const inFlightLimit = limit({ default: 4096, min: 1, max: 1_000_000 });
/** The same as in CoreDNS. */
const UPSTREAMS_MAX = 15;

const to = value<GrpcDestination>(
  'TO',
  ({ text }) =>
    readTo(text) ??
    wrongForm(
      `not an IP address or file ${JSON.stringify(text)}`,
      'Upstreams are written like 10.0.0.1:9005, [2001:db8::1]:9005, unix:///path or /etc/resolv.conf.',
    ),
  () => '',
);

const policy = worded(
  choice('random', 'round_robin', 'sequential'),
  (text) => `unknown policy '${text}'`,
);

const syntax = directive({
  name: 'grpc',
  summary: 'forwards queries to other DNS servers over gRPC',
  repeat: 'once',
  args: {
    from: oneZone('FROM', { help: 'zone to forward, including all names under it' }),
    to: rest(to, {
      min: 1,
      help: `up to ${UPSTREAMS_MAX} upstreams: IP[:PORT] (default port 53), grpc://IP[:PORT] (443), unix:///PATH, or a file like /etc/resolv.conf`,
    }),
  },
  properties: {
    except: zoneList('except', { show: 'NAMES', help: 'names that are not forwarded' }),
    tls: tlsFiles(
      "use TLS, with this client certificate and this CA for the upstreams' certificates (default: the system's CAs)",
      (words) => `Wrong argument count or unexpected line ending after '${words.at(-1)!}'`,
    ),
    tlsServerName: chained(
      setting('tls_servername', word('NAME'), {
        help: "use TLS, and require this name in the upstreams' certificates",
      }),
    ),
    policy: chained(
      setting('policy', policy, {
        default: 'random',
        help: 'which upstream to try first',
      }),
    ),
    maxConcurrent: setting('max_concurrent', integer('MAX', inFlightLimit), {
      default: inFlightLimit.default,
      help: 'maximum number of in-flight queries per upstream and worker; further queries go to the next upstream',
    }),
    fallthrough: fallthrough({
      help: 'pass names that do not exist, or that no upstream has answered, to the next plugin; if ZONES are given, only names in these zones',
    }),
  },
  check: (options) =>
    options.to.length > UPSTREAMS_MAX
      ? [
          pluginProblem(
            'grpc',
            options.at,
            `more than ${UPSTREAMS_MAX} TOs configured: ${options.to.length}`,
            { remedy: 'Put a load balancer in front of them, or split the zone.' },
          ),
        ]
      : [],
});

type GrpcOptions = Options<typeof syntax>;

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
