/** Values for `forward` and its properties, which are parsed here and rejected in CoreDNS's wording. */
import { parseDuration } from '../../base/duration.ts';
import { isIP } from '../../base/ip.ts';
import { custom, type PropertySchema } from '../../corefile/properties.ts';
import { tlsFiles, type TlsFiles } from '../../corefile/tls-files.ts';
import {
  domainName,
  duration,
  integer,
  value,
  worded,
  wrong,
  wrongForm,
  type Value,
} from '../../corefile/word-values.ts';
import { absoluteName } from '../../corefile/zones.ts';
import { rcodeNumber } from '../../wire/iana.ts';
import { readTo, type ForwardDestination } from './address.ts';

/** One TO, which is an address, a host name or a file. */
export const to: Value<ForwardDestination> = value(
  'TO',
  ({ text }) => {
    const found = readTo(text);
    return found.kind === 'wrong' ? wrongForm(found.text, found.hint) : found;
  },
  () => '',
);

/**
 * A number of at least 0; a negative one is rejected in CoreDNS's wording.
 * @param name the property
 * @param show its placeholder
 * @param example a usual value
 */
export const count = (name: string, show = 'N', example = 1): Value<number> =>
  worded(integer(show, { min: 0, example }), (text, reason) =>
    /^-\d+$/.test(text) ? `${name} can't be negative: ${text}` : reason,
  );

/**
 * A duration of at least 0, converted to milliseconds; a negative one is rejected in CoreDNS's wording.
 * @param name the property
 */
export const time = (name: string): Value<number> =>
  worded(duration('DURATION', { minMs: 0 }), (text, reason) =>
    (parseDuration(text) ?? 0) < 0 ? `${name} can't be negative: ${text}` : reason,
  );

/** The value of `read_timeout`, in milliseconds. */
export const patience: Value<number> = worded(duration('DURATION', { minMs: 1 }), (text, reason) =>
  (parseDuration(text) ?? 1) <= 0 ? `read_timeout must be positive: ${text}` : reason,
);

/** A resolver address for `Resolver.setServers`: `10.0.0.1`, `10.0.0.1:5353`, `[2001:db8::1]:53`. */
export const resolver: Value<string> = value('IP[:PORT]', ({ text }) => {
  const read = isIP(text) === 0 ? readTo(text) : null;
  const address = read?.kind === 'address' && !text.includes('://');
  return isIP(text) !== 0 || address
    ? text
    : wrong(
        `resolver must be an IP address or IP:port: ${JSON.stringify(text)}`,
        'A resolver is written like 10.0.0.10, 10.0.0.10:5353 or [2001:db8::10]:53.',
      );
});

export const rcode: Value<number> = value(
  'RCODE',
  ({ text }) =>
    (/^\d/.test(text) ? null : rcodeNumber(text)) ??
    wrongForm(
      `${text} is not a valid rcode`,
      'Result codes are written like NXDOMAIN or SERVFAIL.',
    ),
  String,
);

/** Options for `health_check`: how often to probe a failed upstream, the (absolute) name to query, and RD. */
export interface HealthOptions {
  readonly intervalMs: number;
  readonly recursion: boolean;
  readonly domain: string;
  /** The path at this point in the old `proxy` directive, or null. */
  readonly old: string | null;
}

export const healthCheck: PropertySchema<HealthOptions> = custom<HealthOptions>(
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
    help: 'how often to probe a failed upstream until it answers; `no_rec`: without RD; `domain`: query FQDN instead of the root',
  },
);

export const tls: PropertySchema<TlsFiles | null> = tlsFiles(
  "client certificate and CA for tls:// and https:// upstreams (default: the system's CAs)",
  (words) => `Wrong argument count or unexpected line ending after '${words.at(-1)!}'`,
);

/** The old `proxy` directive's `protocol` property, which has no effect. */
export const protocol: PropertySchema<readonly string[] | null> = custom<readonly string[]>(
  'protocol',
  'dns|force_tcp|https_google|grpc',
  (words, refuse) => {
    const [first = '', ...more] = words.map(({ text }) => text);
    if (!['dns', 'force_tcp', 'https_google', 'grpc'].includes(first))
      return refuse(`unknown protocol '${first}'`);
    return [first, ...more];
  },
  {
    help: 'option of the old `proxy`; `dns force_tcp` means force_tcp, while https_google and grpc are no longer supported',
  },
);
