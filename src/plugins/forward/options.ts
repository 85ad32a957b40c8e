/** What a line of `forward` may say. */
import { isIP } from '../../base/ip.ts';
import { tlsFiles, type TlsFiles } from '../../corefile/tls-files.ts';
import { limit, type Limit } from '../../base/limits.ts';
import { parseDuration } from '../../base/duration.ts';
import type { Place, Problem } from '../../base/problem.ts';
import { oneZone, rest, type Position } from '../../corefile/positions.ts';
import {
  chained,
  custom,
  flag,
  list,
  setting,
  zoneList,
  type PropertySchema,
} from '../../corefile/properties.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { directive, type Occurrence, type Syntax } from '../../corefile/syntax.ts';
import {
  choice,
  domainName,
  duration,
  integer,
  ip,
  value,
  word,
  worded,
  wrong,
  wrongForm,
} from '../../corefile/values.ts';
import { absoluteName } from '../../corefile/zones.ts';
import { rcodeNumber } from '../../wire/iana.ts';
import { printTo, readTo, type ForwardDestination } from './address.ts';

/** CoreDNS's number; more would only mean that a query is tried longer than any client waits. */
export const upstreamsLimit: Limit = limit({ default: 15, min: 1, max: 15 });

/** Queries under way at a time per worker where `max_concurrent` says nothing: each holds 3 to 4 KB, measured, with `log`, `errors` and `cache`. */
export const waitingLimit: Limit = limit({ default: 16_384, min: 1, max: 1_000_000 });
/** UDP sockets per upstream and worker; a busy upstream has all of them. */
const sourcePortsLimit = limit({ default: 256, min: 1, max: 4096 });
const connectionsLimit = limit({ default: 256, min: 1, max: 10_000 });
/** A socket's buffer holds 160 to 270 queries where the system's default stands; up to twice as many may lie there. */
const burstLimit = limit({ default: 100, min: 1, max: 65_536 });

const to = value<ForwardDestination>(
  'TO',
  ({ text }) => {
    const found = readTo(text);
    return found.kind === 'wrong' ? wrongForm(found.text, found.hint) : found;
  },
  () => '',
);

const count = (name: string, show = 'N') =>
  worded(integer(show, { min: 0 }), (text, reason) =>
    /^-\d+$/.test(text) ? `${name} can't be negative: ${text}` : reason,
  );

const time = (name: string) =>
  worded(duration('DURATION', { minMs: 0 }), (text, reason) =>
    (parseDuration(text) ?? 0) < 0 ? `${name} can't be negative: ${text}` : reason,
  );

const patience = worded(duration('DURATION', { minMs: 1 }), (text, reason) =>
  (parseDuration(text) ?? 1) <= 0 ? `read_timeout must be positive: ${text}` : reason,
);

/** `10.0.0.1`, `10.0.0.1:5353`, `[2001:db8::1]:53`: as `Resolver.setServers` takes them. */
const resolver = value<string>('IP[:PORT]', ({ text }) => {
  const read = isIP(text) === 0 ? readTo(text) : null;
  const address = read?.kind === 'address' && !text.includes('://');
  return isIP(text) !== 0 || address
    ? text
    : wrong(
        `resolver must be an IP address or IP:port: ${JSON.stringify(text)}`,
        'A resolver is written like 10.0.0.10, 10.0.0.10:5353 or [2001:db8::10]:53.',
      );
});

const rcode = value<number>(
  'RCODE',
  ({ text }) =>
    (/^\d/.test(text) ? null : rcodeNumber(text)) ??
    wrongForm(
      `${text} is not a valid rcode`,
      'Result codes are written like NXDOMAIN or SERVFAIL.',
    ),
  String,
);

/** What `health_check` says: how often a failed upstream is probed, with RD or without, and for which name (absolute). */
export interface HealthOptions {
  readonly intervalMs: number;
  readonly recursion: boolean;
  readonly domain: string;
  /** What stood there, if it was a path of the old `proxy` directive. */
  readonly old: string | null;
}

const healthCheck = custom<HealthOptions>(
  'health_check',
  'DURATION [no_rec] [domain FQDN]',
  (words, refuse) => {
    const [first, ...more] = words;
    if (first === undefined)
      return refuse("Wrong argument count or unexpected line ending after 'health_check'");
    const ms = parseDuration(first.text);
    if (ms === null) {
      if (!first.text.includes('/') && !/^:?\d+$/.test(first.text)) {
        return refuse(`time: invalid duration ${JSON.stringify(first.text)}`, first.place);
      }
      const every = more[0] === undefined ? null : parseDuration(more[0].text);
      return { intervalMs: every ?? 500, recursion: true, domain: '.', old: first.text };
    }
    if (ms < 0) return refuse(`health_check can't be negative: ${first.text}`, first.place);
    let recursion = true;
    let domain = '.';
    for (let at = 0; at < more.length; at++) {
      const { text, place } = more[at]!;
      if (text === 'no_rec') recursion = false;
      else if (text === 'domain') {
        const name = more[++at];
        if (name === undefined) return refuse('health_check: domain must have a name', place);
        const read = domainName('FQDN').read(name);
        if (typeof read !== 'string')
          return refuse(`health_check: invalid domain name ${name.text}`, name.place);
        domain = absoluteName(read);
      } else return refuse(`health_check: unknown option ${text}`, place);
    }
    return { intervalMs: ms, recursion, domain, old: null };
  },
  {
    default: { intervalMs: 500, recursion: true, domain: '.', old: null },
    defaultText: '0.5s',
    help: 'how often an upstream is probed after it failed, until it answers; `no_rec`: without RD, `domain`: instead of the root',
  },
);

const tls = tlsFiles(
  "client certificate and authorities for tls:// and https:// upstreams; none: the system's authorities",
  (words) => `Wrong argument count or unexpected line ending after '${words.at(-1)!}'`,
);

const protocol = custom<readonly string[]>(
  'protocol',
  'dns|force_tcp|https_google|grpc',
  (words, refuse) => {
    const [first = '', ...more] = words.map(({ text }) => text);
    if (!['dns', 'force_tcp', 'https_google', 'grpc'].includes(first))
      return refuse(`unknown protocol '${first}'`);
    return [first, ...more];
  },
  {
    help: 'of the old `proxy`: `dns force_tcp` is force_tcp today; https_google and grpc are gone',
  },
);

const policies = ['random', 'round_robin', 'sequential', 'latency', 'least_conn', 'first'] as const;

const args: {
  from: Position<string>;
  to: Position<readonly ForwardDestination[]>;
} = {
  from: oneZone('FROM', { help: 'names below it are forwarded' }),
  to: rest(to, {
    min: 1,
    help: 'IP[:PORT], tls://IP[%SERVERNAME], https://HOST, a host name, or a file like /etc/resolv.conf, whose changes are followed',
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
  source: PropertySchema<string | null>;
  dohMethod: PropertySchema<'GET' | 'POST'>;
  maxPps: PropertySchema<number | null>;
  protocol: PropertySchema<readonly string[] | null>;
} = {
  except: zoneList('except', { show: 'NAMES', help: 'names that are not forwarded' }),
  forceTcp: flag('force_tcp', { help: 'always TCP' }),
  preferUdp: flag('prefer_udp', { help: 'UDP even for clients that came over TCP' }),
  expireMs: chained(
    setting('expire', time('expire'), {
      default: 10_000,
      help: 'idle connections are closed after this',
    }),
  ),
  maxAgeMs: chained(
    setting('max_age', time('max_age'), {
      default: 0,
      help: 'connections are not used longer; 0: no limit',
    }),
  ),
  maxIdle: chained(
    setting('max_idle_conns', count('max_idle_conns'), {
      default: 0,
      help: 'idle connections kept per upstream; 0: no limit',
    }),
  ),
  maxFails: chained(
    setting('max_fails', count('max_fails'), {
      default: 2,
      help: 'an upstream is down when more probes in a row than this have failed; 0: never',
    }),
  ),
  maxAttempts: chained(
    setting('max_connect_attempts', count('max_connect_attempts'), {
      help: 'failed tries per query; 0: as many as fit into 5 s. Twice the number of upstreams if not said',
    }),
  ),
  readTimeoutMs: chained(
    setting('read_timeout', patience, {
      default: 2000,
      help: 'time for one try',
    }),
  ),
  tls,
  tlsServerName: chained(
    setting('tls_servername', word('NAME'), {
      help: 'name that the certificates of tls:// upstreams must have',
    }),
  ),
  policy: chained(
    setting('policy', choice(...policies), {
      default: 'random',
      help: 'which upstream comes first; `latency`: the one that answered fastest of late. (least_conn and first are of the old `proxy`)',
    }),
  ),
  health: healthCheck,
  maxConcurrent: chained(
    setting('max_concurrent', count('max_concurrent', 'MAX'), {
      default: 0,
      help: `queries under way at a time, in each worker; further ones are REFUSED; 0: ${waitingLimit.default}`,
    }),
  ),
  sourcePorts: setting('source_ports', integer('PORTS', sourcePortsLimit), {
    default: sourcePortsLimit.default,
    help: 'UDP ports per upstream and worker among which each query draws its own; they are replaced all the time',
  }),
  maxConnections: setting('max_connections', integer('N', connectionsLimit), {
    default: connectionsLimit.default,
    help: 'TCP and TLS connections per upstream and worker; each carries up to 16 queries at a time',
  }),
  burst: setting('max_burst', integer('QUERIES', burstLimit), {
    default: burstLimit.default,
    help: 'queries that leave for an upstream over UDP before it answers; further ones follow as it answers, so that no burst overruns its socket',
  }),
  next: list('next', rcode, {
    help: 'with these result codes the next forward of the block is asked',
  }),
  nextOnNodata: flag('next_on_nodata', {
    help: 'the next forward is asked when there is no data, too',
  }),
  failover: list('failover', rcode, {
    help: 'with these result codes the next upstream is asked',
  }),
  failfast: flag('failfast_all_unhealthy_upstreams', {
    help: 'SERVFAIL at once when all upstreams are down',
  }),
  resolver: list('resolver', resolver, {
    lastLineCounts: true,
    help: 'servers that look up host names among TO when the configuration is loaded',
  }),
  source: chained(setting('source_address', ip('IP'), { help: 'local address to send from' })),
  dohMethod: chained(
    setting('doh_method', choice('GET', 'POST'), {
      default: 'POST',
      help: 'of https:// upstreams',
    }),
  ),
  maxPps: setting('max_pps', integer('PACKETS', { min: 10 }), {
    help: 'packets per second to each upstream, over all workers; for resolvers that drop what exceeds a limit',
  }),
  protocol,
};

/** One forward line. */
export type ForwardSaid = Occurrence<typeof args, typeof properties>;

/** What a forward line may say, with CoreDNS's words, limits and defaults. */
export const syntax: Syntax<typeof args, typeof properties, 'gather'> = directive({
  name: 'forward',
  summary: 'sends queries to other DNS servers',
  repeat: 'gather',
  args,
  properties,
  retired: {
    fail_timeout:
      'an upstream that failed is probed until it answers; `health_check DURATION` says how often.',
    spray: 'when all upstreams are down, one is tried at random anyway.',
    health_check_port: 'upstreams are probed with a DNS query on their own port.',
  },
  formerly: {
    proxy: 'the directive is called `forward` today.',
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
      'Take one of the two away: tls_servername holds for all TOs, %NAME for its own.',
    );
  }
  if (failover.includes(0))
    complain('NoError cannot be used in failover', 'List codes that stand for failures.');
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
      `'health_check ${health.old}' probes no web page today: upstreams are sent a DNS query`,
      'Write: health_check 500ms',
    );
  }
  if (spoken !== null) old(...protocolAdvice(spoken));
  if (forceTcp && preferUdp) warnings.push(conflict(at));
  const blind = places.some(
    (place) =>
      place.kind === 'address' &&
      place.upstream.scheme === 'tls' &&
      place.upstream.serverName === '',
  );
  if (blind && tlsServerName === null) {
    warnings.push(
      pluginRemark(
        'forward',
        at,
        'the certificates of tls:// upstreams are checked against their IP address',
        {
          code: 'forward-tls-name',
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
    return ["'protocol … force_tcp' is a property of its own today", 'Write: force_tcp'];
  if (first === 'dns')
    return ["'protocol dns' is what forward always speaks", 'Take the line away.'];
  if (first === 'grpc')
    return [
      "'protocol grpc' is ignored: upstreams are asked by plain DNS",
      'Write tls://IP or https://HOST as TO.',
    ];
  return [
    "'protocol https_google' is ignored: upstreams are asked by plain DNS",
    'Write https://HOST as TO.',
  ];
}

function conflict(at: Place): Problem {
  return pluginRemark('forward', at, 'prefer_udp does nothing beside force_tcp', {
    remedy: 'Keep one of them.',
  });
}
