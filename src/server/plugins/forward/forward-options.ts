/**
 * The syntax of `forward`: its arguments and properties with their defaults and limits, and which combinations are
 * valid.
 */
import { limit, type Limit } from '../../base/limits.ts';
import type { Place, Problem } from '../../base/problem.ts';
import { oneZone, rest, type Position } from '../../corefile/positions.ts';
import {
  chained,
  flag,
  list,
  setting,
  zoneList,
  type PropertySchema,
} from '../../corefile/properties.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { directive, type Occurrence, type Syntax } from '../../corefile/syntax.ts';
import type { TlsFiles } from '../../corefile/tls-files.ts';
import { choice, integer, ip, word } from '../../corefile/word-values.ts';
import { printTo, type ForwardDestination } from './address.ts';
import { isCertified } from './certified.ts';
import {
  count,
  healthCheck,
  patience,
  protocol,
  rcode,
  resolver,
  time,
  tls,
  to,
  type HealthOptions,
} from './option-values.ts';

/** Maximum number of upstreams, as in CoreDNS. Trying even more would take longer than any client waits. */
export const upstreamsLimit: Limit = limit({ default: 15, min: 1, max: 15 });

/**
 * Maximum number of queries in progress per worker, unless `max_concurrent` is set. Each uses 3 to 4 KB, as measured
 * with `log`, `errors` and `cache`.
 */
export const waitingLimit: Limit = limit({ default: 16_384, min: 1, max: 1_000_000 });
/** Maximum number of UDP sockets per upstream and worker, all of which a busy upstream uses. */
const sourcePortsLimit = limit({ default: 256, min: 1, max: 4096 });
const connectionsLimit = limit({ default: 256, min: 1, max: 10_000 });
/**
 * Maximum number of queries sent before a reply arrives. At the system's default size, a socket's receive buffer has
 * room for 160 to 270 replies, and it may contain up to twice this limit.
 */
const burstLimit = limit({ default: 100, min: 1, max: 65_536 });

const policies = ['random', 'round_robin', 'sequential', 'latency', 'least_conn', 'first'] as const;

const args: {
  from: Position<string>;
  to: Position<readonly ForwardDestination[]>;
} = {
  from: oneZone('FROM', { help: 'zone to forward, including all names under it' }),
  to: rest(to, {
    min: 1,
    help: 'upstreams: IP[:PORT], tls://IP[%SERVERNAME], https://HOST, a host name, or a file like /etc/resolv.conf, which is watched for changes',
  }),
};

const properties: {
  except: PropertySchema<readonly string[] | null>;
  forceTcp: PropertySchema<boolean>;
  preferUdp: PropertySchema<boolean>;
  expireMs: PropertySchema<number>;
  maxAgeMs: PropertySchema<number>;
  maxIdle: PropertySchema<number>;
  maxFails: PropertySchema<number>;
  maxAttempts: PropertySchema<number | null>;
  readTimeoutMs: PropertySchema<number>;
  tls: PropertySchema<TlsFiles | null>;
  tlsServerName: PropertySchema<string | null>;
  policy: PropertySchema<
    'round_robin' | 'sequential' | 'random' | 'first' | 'latency' | 'least_conn'
  >;
  health: PropertySchema<HealthOptions>;
  maxConcurrent: PropertySchema<number>;
  sourcePorts: PropertySchema<number>;
  maxConnections: PropertySchema<number>;
  burst: PropertySchema<number>;
  next: PropertySchema<readonly number[]>;
  nextOnNodata: PropertySchema<boolean>;
  failover: PropertySchema<readonly number[]>;
  failfast: PropertySchema<boolean>;
  resolver: PropertySchema<readonly string[]>;
  resolveIntervalMs: PropertySchema<number>;
  resolveHoldMs: PropertySchema<number>;
  source: PropertySchema<string | null>;
  dohMethod: PropertySchema<'GET' | 'POST'>;
  maxPps: PropertySchema<number | null>;
  protocol: PropertySchema<readonly string[] | null>;
} = {
  except: zoneList('except', { show: 'NAMES', help: 'names that are not forwarded' }),
  forceTcp: flag('force_tcp', { help: 'always use TCP' }),
  preferUdp: flag('prefer_udp', { help: 'use UDP even for queries that arrived over TCP' }),
  expireMs: chained(
    setting('expire', time('expire'), {
      default: 10_000,
      help: 'close idle connections after this time',
    }),
  ),
  maxAgeMs: chained(
    setting('max_age', time('max_age'), {
      default: 0,
      help: 'maximum lifetime of connections; 0: no limit',
    }),
  ),
  maxIdle: chained(
    setting('max_idle_conns', count('max_idle_conns'), {
      default: 0,
      help: 'maximum number of idle connections per upstream; 0: no limit',
    }),
  ),
  maxFails: chained(
    setting('max_fails', count('max_fails'), {
      default: 2,
      help: 'an upstream is considered down after more than this many probes in a row have failed; 0: never',
    }),
  ),
  maxAttempts: chained(
    setting('max_connect_attempts', count('max_connect_attempts'), {
      help: 'maximum number of failed tries per query; 0: as many as fit into 5 s (default: twice the number of upstreams)',
    }),
  ),
  readTimeoutMs: chained(
    setting('read_timeout', patience, {
      default: 2000,
      help: 'timeout for each try',
    }),
  ),
  tls,
  tlsServerName: chained(
    setting('tls_servername', word('NAME'), {
      help: "name required in tls:// upstreams' certificates",
    }),
  ),
  policy: chained(
    setting('policy', choice(...policies), {
      default: 'random',
      help: 'which upstream to try first; `latency`: the one with the fastest recent replies (least_conn and first come from the old `proxy`)',
    }),
  ),
  health: healthCheck,
  maxConcurrent: chained(
    setting('max_concurrent', count('max_concurrent', 'MAX', 1000), {
      default: 0,
      help: `maximum number of in-flight queries per worker; further queries are REFUSED; 0: ${waitingLimit.default}`,
    }),
  ),
  sourcePorts: setting('source_ports', integer('PORTS', sourcePortsLimit), {
    default: sourcePortsLimit.default,
    help: 'number of UDP source ports per upstream and worker; each query uses a random port, and ports are replaced continuously',
  }),
  maxConnections: setting('max_connections', integer('N', connectionsLimit), {
    default: connectionsLimit.default,
    help: 'maximum number of TCP and TLS connections per upstream and worker; each carries up to 16 queries at a time',
  }),
  burst: setting('max_burst', integer('QUERIES', burstLimit), {
    default: burstLimit.default,
    help: 'number of UDP queries sent to an upstream before it replies; more are sent as replies arrive, so that a burst does not overflow its socket buffer',
  }),
  next: list('next', rcode, {
    help: 'result codes after which the next forward in the block is tried',
  }),
  nextOnNodata: flag('next_on_nodata', {
    help: 'also try the next forward after a reply without data',
  }),
  failover: list('failover', rcode, {
    help: 'result codes after which the next upstream is tried',
  }),
  failfast: flag('failfast_all_unhealthy_upstreams', {
    help: 'answer SERVFAIL immediately if all upstreams are down',
  }),
  resolver: list('resolver', resolver, {
    lastLineCounts: true,
    help: "servers that resolve host names in TO (default: the system's resolver)",
  }),
  resolveIntervalMs: setting('resolve_interval', time('resolve_interval'), {
    default: 30_000,
    help: 'minimum time between two lookups of a host name in TO; 0: look it up only when the configuration is loaded',
  }),
  resolveHoldMs: setting('resolve_hold', time('resolve_hold'), {
    default: 300_000,
    help: "maximum time that the TTL of a host name's records can delay its next lookup",
  }),
  source: chained(setting('source_address', ip('IP'), { help: 'local address to send from' })),
  dohMethod: chained(
    setting('doh_method', choice('GET', 'POST'), {
      default: 'POST',
      help: 'HTTP method for https:// upstreams',
    }),
  ),
  maxPps: setting('max_pps', integer('PACKETS', { min: 10 }), {
    help: 'maximum number of packets per second to each upstream from all workers together, for resolvers that drop packets above a limit',
  }),
  protocol,
};

export type ForwardSaid = Occurrence<typeof args, typeof properties>;

/** A line without the old `proxy` directive's words, and with a limit for in-flight queries. */
export interface ForwardLine extends Omit<ForwardSaid, 'policy'> {
  readonly policy: Exclude<ForwardSaid['policy'], 'least_conn' | 'first'>;
}

export function plainLine(said: ForwardSaid): ForwardLine {
  const { policy, forceTcp, protocol: spoken, maxConcurrent } = said;
  const renamed = { least_conn: 'latency', first: 'sequential' } as const;
  return {
    ...said,
    policy: policy === 'least_conn' || policy === 'first' ? renamed[policy] : policy,
    forceTcp: forceTcp || (spoken?.includes('force_tcp') ?? false),
    maxConcurrent: maxConcurrent === 0 ? waitingLimit.default : maxConcurrent,
  };
}

/** The syntax of a forward line, with CoreDNS's words, limits and defaults. */
export const syntax: Syntax<typeof args, typeof properties, 'gather'> = directive({
  name: 'forward',
  summary: 'forwards queries to other DNS servers',
  repeat: 'gather',
  args,
  properties,
  retired: {
    fail_timeout:
      'a failed upstream is probed until it answers, and `health_check DURATION` sets the interval.',
    spray: 'if all upstreams are down, a random one is tried anyway.',
    health_check_port: 'upstreams are probed with a DNS query on their own port.',
  },
  formerly: {
    proxy: 'the directive is now called `forward`.',
  },
  check: (all) => all.flatMap((options) => findProblems(options)),
  warn: (all) => all.flatMap((options) => findWarnings(options)),
});

function findProblems({
  to: places,
  maxAgeMs,
  expireMs,
  failover,
  tlsServerName,
  at,
}: ForwardSaid): readonly Problem[] {
  const problems: Problem[] = [];
  const complain = (text: string, remedy: string): void => {
    problems.push(pluginProblem('forward', at, text, { remedy }));
  };
  if (places.length > upstreamsLimit.max) {
    complain(
      `more than ${upstreamsLimit.max} TOs configured: ${places.length}`,
      'Put a load balancer in front of them, or split the zone.',
    );
  }
  if (maxAgeMs > 0 && maxAgeMs < expireMs) {
    complain(
      `max_age (${maxAgeMs / 1000}s) must not be less than expire (${expireMs / 1000}s)`,
      'Lower expire too.',
    );
  }
  for (const place of places) {
    if (place.kind === 'wrong' || tlsServerName === null) continue;
    const { scheme, serverName } = place.kind === 'address' ? place.upstream : place;
    if (scheme !== 'tls' || serverName === '') continue;
    complain(
      `both forward ('${tlsServerName}') and proxy level ('${serverName}') TLS servernames are set for upstream proxy '${printTo(place)}'`,
      'Remove one of the two: tls_servername applies to all TOs, %NAME to one.',
    );
  }
  if (failover.includes(0))
    complain('NoError cannot be used in failover', 'List codes of failures.');
  return problems;
}

function findWarnings(said: ForwardSaid): readonly Problem[] {
  const {
    policy,
    health,
    protocol: spoken,
    at,
    forceTcp,
    preferUdp,
    to: places,
    tlsServerName,
    tls: files,
  } = said;
  const warnings: Problem[] = [];
  const old = (text: string, remedy: string): void => {
    warnings.push(pluginRemark('forward', at, text, { code: 'property-retired', remedy }));
  };
  if (policy === 'least_conn')
    old("'policy least_conn' is read as 'policy latency'", 'Write: policy latency');
  if (policy === 'first')
    old("'policy first' is read as 'policy sequential'", 'Write: policy sequential');
  if (health.old !== null) {
    old(
      `'health_check ${health.old}' no longer probes a web page; upstreams are sent a DNS query instead`,
      'Write: health_check 500ms',
    );
  }
  if (spoken !== null) old(...protocolAdvice(spoken));
  if (forceTcp && preferUdp) warnings.push(conflict(at));
  const blind = places.some(
    (place) =>
      place.kind === 'address' &&
      place.upstream.scheme === 'tls' &&
      place.upstream.serverName === '' &&
      !isCertified(place.upstream.host),
  );
  if (blind && tlsServerName === null) {
    warnings.push(
      pluginRemark(
        'forward',
        at,
        'the certificates of tls:// upstreams are checked against their IP address',
        {
          code: (files?.authority ?? '') !== '' ? 'forward-tls-authority' : 'forward-tls-name',
          remedy:
            'Add tls_servername NAME, or write tls://IP%NAME, unless the certificates name the addresses.',
        },
      ),
    );
  }
  return warnings;
}

function protocolAdvice([first = '', second = '']: readonly string[]): [string, string] {
  if (first === 'force_tcp' || second === 'force_tcp')
    return ["'protocol … force_tcp' is now a separate property", 'Write: force_tcp'];
  if (first === 'dns') return ["forward always uses 'protocol dns'", 'Remove the line.'];
  if (first === 'grpc')
    return [
      "'protocol grpc’ is ignored, and upstreams are queried over plain DNS",
      'Write tls://IP or https://HOST as TO.',
    ];
  return [
    "'protocol https_google’ is ignored, and upstreams are queried over plain DNS",
    'Write https://HOST as TO.',
  ];
}

function conflict(at: Place): Problem {
  return pluginRemark('forward', at, 'prefer_udp has no effect with force_tcp', {
    remedy: 'Keep one of them.',
  });
}
