/** The syntax of the `etcd` directive. */
import { tlsFiles } from '../../corefile/tls-files.ts';
import { parseDuration } from '../../base/duration.ts';
import { limit } from '../../base/limits.ts';
import { zones, type Position } from '../../corefile/positions.ts';
import {
  chained,
  custom,
  fallthrough,
  flag,
  setting,
  type PropertySchema,
} from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { byteSize, duration, integer, value, word, wrong } from '../../corefile/word-values.ts';
import { parseEndpoint, type EtcdEndpoint, type EtcdTlsFiles } from '../../etcd/endpoint.ts';

const DEFAULT_ENDPOINT = 'http://localhost:2379';

/** Each record uses about 150 bytes of memory, and as much again in each worker. */
const keysLimit = limit({ default: 1_000_000, min: 1, max: 100_000_000 });
/** etcd accepts at most 1.5 MiB, and a DNS message is limited to 64 KiB. */
const valueLimit = limit({ default: 64 * 1024, min: 64, max: 4 * 1024 * 1024 });
const memoryLimit = { min: 64 * 1024, max: 2 ** 36 };
/** Examining a key takes about 0.2 µs, so a query takes 2 ms at most. */
const searchLimit = limit({ default: 10_000, min: 1, max: 10_000_000 });
/** Each waiting read uses about 1 KB, and etcd answers thousands per second. */
const waitingLimit = limit({ default: 4096, min: 1, max: 1_000_000 });
/** The defaults are CoreDNS's. */
const MIN_LEASE_TTL = 30;
/** Maximum lease duration in seconds; longer ones are treated as this long. */
const MAX_LEASE_TTL = 86_400;
/** Maximum value of a TTL option in seconds, which has 32 bits. */
const SECONDS_MAX = 4_294_967_295;

const endpoint = value<EtcdEndpoint>(
  'ENDPOINT',
  ({ text }) =>
    parseEndpoint(text) ??
    wrong(
      `not an etcd endpoint: ${JSON.stringify(text)}`,
      'Endpoints are written like http://10.0.0.1:2379 or https://etcd-0:2379',
    ),
);

/** Seconds, as a number or a Go duration. Fractions are discarded, and 0 means the default, as in CoreDNS. */
const leaseTtl = (name: string, byDefault: number) =>
  value<number>(
    'DURATION',
    ({ text }) => {
      const refuse = (why: string) => wrong(`invalid ${name} value: ${why}`);
      const ms = parseDuration(/^\d+$/.test(text) ? `${text}s` : text);
      if (ms === null || !Number.isFinite(ms))
        return refuse("invalid TTL format, use format like '30', '30s', '5m', '1h', or '2h30m'");
      if (ms < 0) return refuse('TTL must be non-negative');
      const seconds = Math.trunc(ms / 1000);
      return seconds > SECONDS_MAX
        ? refuse(`TTL too large, maximum is ${SECONDS_MAX} seconds`)
        : seconds || byDefault;
    },
    (seconds) => `${seconds}s`,
  );

const endpoints = custom<readonly EtcdEndpoint[]>(
  'endpoint',
  'ENDPOINT…',
  (words, refuse) => {
    if (words.length === 0)
      return refuse("Wrong argument count or unexpected line ending after 'endpoint'");
    return words.map((found) => {
      const read = endpoint.read(found);
      return 'host' in read ? read : refuse(read.text, found.place, { hint: read.hint });
    });
  },
  {
    default: [parseEndpoint(DEFAULT_ENDPOINT)!],
    defaultText: DEFAULT_ENDPOINT,
    help: 'client addresses of the etcd members; the first one that answers is used until it fails',
  },
);

const tls = tlsFiles(
  "client certificate, and CA for etcd's certificate (default: the system's CAs); the files are read again for each connection",
  (words) => `maximum of three arguments allowed for TLS config, found ${words.length}`,
);

const credentials = custom<{ readonly user: string; readonly password: string }>(
  'credentials',
  'USERNAME PASSWORD',
  (words, refuse) => {
    if (words.length === 0)
      return refuse("Wrong argument count or unexpected line ending after 'credentials'");
    if (words.length !== 2)
      return refuse('credentials requires 2 arguments, username and password');
    return { user: words[0]!.text, password: words[1]!.text };
  },
  { help: 'user and password for etcd; the login token is renewed when it expires' },
);

export const syntax: Syntax<
  { zones: Position<readonly string[]> },
  {
    path: PropertySchema<string>;
    endpoints: PropertySchema<readonly EtcdEndpoint[]>;
    credentials: PropertySchema<{ readonly user: string; readonly password: string } | null>;
    tls: PropertySchema<EtcdTlsFiles | null>;
    fallthrough: PropertySchema<readonly string[] | null>;
    minLeaseTtl: PropertySchema<number>;
    maxLeaseTtl: PropertySchema<number>;
    perQuery: PropertySchema<boolean>;
    startupTimeoutMs: PropertySchema<number>;
    maxKeys: PropertySchema<number>;
    maxValueBytes: PropertySchema<number>;
    maxBytes: PropertySchema<number | null>;
    maxSearch: PropertySchema<number>;
    maxWaiting: PropertySchema<number>;
  },
  'each'
> = directive({
  name: 'etcd',
  summary: 'serves service records (SkyDNS) from etcd',
  repeat: 'each',
  args: { zones: zones({ help: 'zones to serve' }) },
  properties: {
    path: chained(
      setting('path', word('PATH'), {
        default: '/skydns',
        help: 'prefix of all keys',
      }),
    ),
    endpoints,
    credentials,
    tls,
    fallthrough: fallthrough(),
    minLeaseTtl: chained(
      setting('min-lease-ttl', leaseTtl('min-lease-ttl', MIN_LEASE_TTL), {
        default: MIN_LEASE_TTL,
        help: 'minimum TTL of records with a lease',
      }),
    ),
    maxLeaseTtl: chained(
      setting('max-lease-ttl', leaseTtl('max-lease-ttl', MAX_LEASE_TTL), {
        default: MAX_LEASE_TTL,
        help: 'maximum TTL of records with a lease',
      }),
    ),
    perQuery: flag('per_query', {
      help: 'read from etcd for every query, as CoreDNS does, instead of watching it',
    }),
    startupTimeoutMs: setting('startup_timeout', duration('DURATION', { minMs: 0 }), {
      default: 5000,
      help: 'how long the server waits for the first complete listing before it starts to answer',
    }),
    maxKeys: setting('max_keys', integer('COUNT', keysLimit), {
      default: keysLimit.default,
      help: 'maximum number of keys; further keys are ignored',
    }),
    maxValueBytes: setting('max_value', byteSize('SIZE', valueLimit), {
      default: valueLimit.default,
      help: 'maximum size of a value; larger values are ignored',
    }),
    maxBytes: setting('max_bytes', byteSize('SIZE', memoryLimit), {
      help: "memory for keys and values; keys that do not fit are ignored. Default: a quarter of the container's memory above 95 MiB (with a limit of 170 MiB, this is 18 MiB or about 180 000 records), or 1 GiB without a memory limit",
    }),
    maxSearch: setting('max_search', integer('COUNT', searchLimit), {
      default: searchLimit.default,
      help: 'maximum number of keys that one query may read (wildcards and short names include many); queries that need more get SERVFAIL',
    }),
    maxWaiting: setting('max_waiting', integer('COUNT', waitingLimit), {
      default: waitingLimit.default,
      help: 'with `per_query`, maximum number of simultaneous reads from etcd per worker; further queries get SERVFAIL',
    }),
  },
  retired: {
    stubzones: 'use `forward` to forward zones; delete the line',
    upstream: 'targets outside the zone are always resolved through this server; delete the line',
    debug: 'it has no effect; delete the line',
  },
});

export type EtcdOptions = Options<typeof syntax>;
