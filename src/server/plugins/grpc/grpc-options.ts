/** What a line of `grpc` may say. */
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

/** What an upstream has not answered waits for two seconds at most, and takes some 3 KB. */
const inFlightLimit = limit({ default: 4096, min: 1, max: 1_000_000 });
/** CoreDNS's number. */
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

/** The directive `grpc`, with CoreDNS's words, limits and defaults. */
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
  summary: 'sends queries to other DNS servers over gRPC',
  repeat: 'once',
  args: {
    from: oneZone('FROM', { help: 'names below it are sent on' }),
    to: rest(to, {
      min: 1,
      help: `IP[:PORT] (port 53 unless another is given), grpc://IP[:PORT] (443), unix:///PATH, or a file like /etc/resolv.conf; at most ${UPSTREAMS_MAX}`,
    }),
  },
  properties: {
    except: zoneList('except', { show: 'NAMES', help: 'names that are not sent on' }),
    tls: tlsFiles(
      "speak TLS: client certificate, and who signed the upstreams'; none: the system's authorities",
      (words) => `Wrong argument count or unexpected line ending after '${words.at(-1)!}'`,
    ),
    tlsServerName: chained(
      setting('tls_servername', word('NAME'), {
        help: "speak TLS; the name that the upstreams' certificates must have",
      }),
    ),
    policy: chained(
      setting('policy', policy, {
        default: 'random',
        help: 'which upstream is asked first',
      }),
    ),
    maxConcurrent: setting('max_concurrent', integer('MAX', inFlightLimit), {
      default: inFlightLimit.default,
      help: 'queries under way to one upstream at a time, in each worker; for further ones the next upstream is asked',
    }),
    fallthrough: fallthrough({
      help: 'hand names that do not exist, or for which no upstream has a reply, to the next plugin; with zones only names in these zones',
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

/** One grpc line. */
export type GrpcOptions = Options<typeof syntax>;
