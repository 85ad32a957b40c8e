/** The options of a `grpc` line. */
import { limit } from '../../base/limits.ts';
import { tlsFiles, type TlsFiles } from '../../corefile/tls-files.ts';
import { oneZone, rest, type Position } from '../../corefile/positions.ts';
import {
  chained,
  fallthrough,
  setting,
  zoneList,
  type PropertySchema,
} from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { choice, integer, value, word, worded, wrongForm } from '../../corefile/word-values.ts';
import { readTo, type GrpcDestination } from './grpc-upstreams.ts';

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

/** The `grpc` directive, with CoreDNS's words, limits and defaults. */
export const syntax: Syntax<
  { from: Position<string>; to: Position<readonly GrpcDestination[]> },
  {
    except: PropertySchema<readonly string[] | null>;
    tls: PropertySchema<TlsFiles | null>;
    tlsServerName: PropertySchema<string | null>;
    policy: PropertySchema<'random' | 'round_robin' | 'sequential'>;
    maxConcurrent: PropertySchema<number>;
    fallthrough: PropertySchema<readonly string[] | null>;
  },
  'once'
> = directive({
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

export type GrpcOptions = Options<typeof syntax>;
