/** The command line of `ndots query`: dig's spelling (`@1.1.1.1 example.com MX +tcp`) and doggo's (`MX example.com @tls://1.1.1.1 --json`). */
import { domainToASCII } from 'node:url';
import { parseAddress } from '../base/ip.ts';
import { nearest } from '../base/problem.ts';
import { TYPE, classNumber, typeNumber } from '../wire/iana.ts';
import { transports } from '../wire/transports.ts';
import {
  fresh,
  integer,
  usage,
  type Draft,
  type QueryOptions,
  type Transport,
} from './query-draft.ts';
import { flagNames, readFlag } from './query-flags.ts';

const ports: Readonly<Record<Transport, number>> = {
  udp: transports.dns.port,
  tcp: transports.dns.port,
  tls: transports.tls.port,
  https: transports.https.port,
};

export const queryOptionNames: readonly string[] = [
  ...['-t', '-q', '-p', '-x', '-c', '-o', '-4', '-6', '-n'],
  ...[
    '--json',
    '--short',
    '--tcp',
    '--timeout',
    '--type',
    '--class',
    '--nameserver',
    '--query',
    '--reverse',
  ],
  ...flagNames,
];

/** The queries of one command line. What stands before the first name holds for all of them, as in dig. */
export function parseQueryOptions(words: readonly string[]): readonly QueryOptions[] {
  const done: Draft[] = [];
  let draft: Draft = { ...fresh };
  let common: Draft | null = null;
  /** A name begins a query; a second one begins the next. */
  const begin = (name: string): void => {
    common ??= { ...draft };
    if (draft.name !== null) {
      done.push(draft);
      draft = { ...common };
    }
    draft.name = name;
  };
  const list = unglued(words);
  for (let i = 0; i < list.length; i++) {
    const word = list[i] ?? '';
    const value = (): string => {
      const next = list[++i];
      if (next === undefined) throw usage(`${word} needs a value`);
      return next;
    };
    if (word.startsWith('@')) readServer(draft, word.slice(1));
    else if (word.startsWith('+')) readFlag(draft, word.slice(1));
    else if (word.startsWith('-') && word.length > 1) {
      const name = readOption(draft, word, value);
      if (name === null) continue;
      begin(name);
      if (word !== '-q' && !word.startsWith('--query')) draft.type = TYPE.PTR;
    } else if (!readWord(draft, word)) begin(word);
  }
  return [...done, draft].map(finished);
}

function finished(draft: Draft): QueryOptions {
  const type = draft.type ?? (draft.name === null ? TYPE.NS : TYPE.A);
  // Zones go over streams.
  const transfer = type === TYPE.AXFR || type === TYPE.IXFR;
  const transport = draft.transport ?? (transfer ? 'tcp' : 'udp');
  if (type === TYPE.AXFR && transport !== 'tcp' && transport !== 'tls')
    throw usage(`AXFR goes over TCP or TLS, not over ${transport.toUpperCase()}`);
  return {
    ...draft,
    name: wireName(draft.name ?? '.', draft.idn),
    type,
    transport,
    port: draft.port ?? ports[transport],
  };
}

function wireName(name: string, idn: boolean): string {
  // eslint-disable-next-line no-control-regex -- everything outside ASCII
  if (!idn || /^[\u0000-\u007f]*$/.test(name)) return name;
  const ascii = name.includes('\uFFFD') ? '' : domainToASCII(name);
  if (ascii === '')
    throw usage(`"${name}" has no xn-- form`, '+noidnin sends the bytes as they are.');
  return ascii;
}

/** dig's letters may touch their value: `-p1053`, `-tMX`, `-x10.0.0.1`. */
function unglued(words: readonly string[]): readonly string[] {
  return words.flatMap((word) =>
    /^-[tqpcx]./.test(word) ? [word.slice(0, 2), word.slice(2)] : [word],
  );
}

/** A bare word is a type or a class; false if it is neither, so a name. */
function readWord(draft: Draft, word: string): boolean {
  const upper = word.toUpperCase();
  const ixfr = /^IXFR=(\d{1,10})$/.exec(upper);
  const type = ixfr === null ? typeNumber(upper) : TYPE.IXFR;
  if (type !== null && !(draft.name === null && /^[a-z]/.test(word))) {
    draft.type = type;
    if (ixfr !== null) draft.serial = Number(ixfr[1]) >>> 0;
    return true;
  }
  if (/^(IN|CH|HS|CLASS\d+)$/.test(upper) && draft.name !== null) {
    draft.class = classOf(word);
    return true;
  }
  if (draft.name !== null && /^[A-Z]{2,10}$/.test(word)) {
    const meant = nearest(word, commonTypes);
    throw usage(
      `"${word}" is no record type`,
      meant === null ? `A name? Write it with a dot: ${word}.` : `Did you mean ${meant}?`,
    );
  }
  return false;
}

const commonTypes = [
  'A',
  'AAAA',
  'ANY',
  'AXFR',
  'CAA',
  'CNAME',
  'DNSKEY',
  'DS',
  'HTTPS',
  'IXFR',
  'MX',
  'NAPTR',
  'NS',
].concat([...['NSEC', 'PTR', 'RRSIG', 'SOA', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT']]);

function readServer(draft: Draft, text: string): void {
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+]*):\/\/)?(.*)$/s.exec(text) ?? [];
  if (scheme !== undefined) {
    if (!Object.hasOwn(ports, scheme))
      throw usage(`"@${text}": ${scheme}:// is not spoken here`, 'Known: udp, tcp, tls, https');
    draft.transport = scheme as Transport;
  }
  let where = rest;
  const slash = where.indexOf('/');
  if (scheme === 'https' && slash >= 0) {
    draft.path = where.slice(slash);
    where = where.slice(0, slash);
  }
  const bracketed = /^\[([^\]]+)\](?:[:#](\d+))?$/.exec(where);
  const plain = /^([^:#]+)[:#](\d+)$/.exec(where) ?? /^([^#]+)#(\d+)$/.exec(where);
  const [host = '', port] = bracketed?.slice(1) ?? plain?.slice(1) ?? ([where, undefined] as const);
  if (host === '') throw usage(`"@${text}" names no server`);
  const address = host.replace(/%.*$/, '');
  if (parseAddress(address) === null && !/^[a-z0-9]([a-z0-9._-]*[a-z0-9.])?$/i.test(host))
    throw usage(
      `"@${text}" is neither an address nor a host name`,
      'As in: @10.96.0.10:53 @[fd00::a]:53 @tls://dns.example',
    );
  draft.server = host;
  if (port !== undefined) draft.port = integer('port', port, 1, 65_535);
}

/** One option; the name that it gives, if it gives one. */
function readOption(draft: Draft, word: string, value: () => string): string | null {
  const [key = '', inline] = word.startsWith('--') ? word.split(/=(.*)/s) : [word];
  const get = (): string => inline ?? value();
  switch (key) {
    case '-q':
    case '--query':
      return get();
    case '-x':
    case '--reverse':
      return reverseName(get());
    case '-t':
    case '--type':
      readType(draft, get());
      break;
    case '-c':
    case '--class':
      draft.class = classOf(get());
      break;
    case '-p':
      draft.port = integer('-p', get(), 1, 65_535);
      break;
    case '-n':
    case '--nameserver':
      readServer(draft, get());
      break;
    case '-o':
    case '--output': {
      const output = get();
      if (output !== 'json' && output !== 'short' && output !== 'dig' && output !== 'text')
        throw usage(`unknown output "${output}"`, 'Known: dig, short, json');
      draft.output = output === 'text' ? 'dig' : output;
      break;
    }
    case '--json':
    case '-J':
      draft.output = 'json';
      break;
    case '--short':
      draft.output = 'short';
      break;
    case '--tcp':
      draft.transport = 'tcp';
      break;
    case '--timeout':
      draft.timeoutMs = duration(get());
      break;
    case '-4':
    case '-6':
      draft.family = key === '-4' ? 4 : 6;
      break;
    case '--time':
    case '--color':
      break;
    default: {
      const meant = key.length > 2 ? nearest(key, queryOptionNames) : null;
      throw usage(`unknown option ${word}`, meant === null ? undefined : `Did you mean ${meant}?`);
    }
  }
  return null;
}

function readType(draft: Draft, text: string): void {
  const ixfr = /^IXFR=(\d{1,10})$/i.exec(text);
  if (ixfr !== null) draft.serial = Number(ixfr[1]) >>> 0;
  const type = ixfr === null ? typeNumber(text.toUpperCase()) : TYPE.IXFR;
  if (type === null) {
    const meant = nearest(text, commonTypes);
    throw usage(
      `"${text}" is no record type`,
      meant === null ? undefined : `Did you mean ${meant}?`,
    );
  }
  draft.type = type;
}

function classOf(text: string): number {
  const number = classNumber(text.toUpperCase());
  if (number === null) throw usage(`"${text}" is no class`, 'Known: IN, CH, HS, ANY, CLASS255');
  return number;
}

/** `5`, `5s`, `500ms`, `1m`: milliseconds. */
function duration(text: string): number {
  const [, number, unit = 's'] = /^(\d{1,6})(ms|s|m)?$/.exec(text) ?? [];
  const ms = Number(number) * (unit === 'ms' ? 1 : unit === 's' ? 1000 : 60_000);
  if (number === undefined || ms < 1 || ms > 3_600_000)
    throw usage(`--timeout takes a time such as 5s or 500ms, not "${text}"`);
  return ms;
}

/** The name under in-addr.arpa or ip6.arpa (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function reverseName(address: string): string {
  const bytes = parseAddress(address);
  // The first bytes of an address are a reverse zone.
  if (bytes === null && /^\d{1,3}(\.\d{1,3}){0,2}\.?$/.test(address))
    return `${address.replace(/\.$/, '').split('.').reverse().join('.')}.in-addr.arpa.`;
  if (bytes === null) throw usage(`-x takes an IP address, not "${address}"`);
  if (bytes.length === 4) return `${[...bytes].reverse().join('.')}.in-addr.arpa.`;
  const nibbles = [...bytes].flatMap((byte) => [byte >> 4, byte & 15]);
  return `${nibbles
    .reverse()
    .map((nibble) => nibble.toString(16))
    .join('.')}.ip6.arpa.`;
}
