/** The command line of `ndots query`: dig's spelling (`@1.1.1.1 example.com MX +tcp`) and doggo's (`MX example.com @tls://1.1.1.1 --json`). */
import { Problem, nearest } from '../base/problem.ts';
import { parseAddress } from '../base/ip.ts';
import { classNumber, typeNumber } from '../wire/iana.ts';

export type Transport = 'udp' | 'tcp' | 'tls' | 'https';

export interface QueryOptions {
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly transport: Transport;
  /** Host or address; null = the first server of /etc/resolv.conf. */
  readonly server: string | null;
  readonly port: number;
  /** Path of a DoH server. */
  readonly path: string;
  readonly recursion: boolean;
  readonly dnssec: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  /** Bytes offered by EDNS; null = no OPT record. */
  readonly bufferSize: number | null;
  readonly timeoutMs: number;
  readonly tries: number;
  /** Stay with the truncated answer. */
  readonly ignoreTruncation: boolean;
  readonly output: 'dig' | 'short' | 'json';
}

const ports: Readonly<Record<Transport, number>> = { udp: 53, tcp: 53, tls: 853, https: 443 };

export const queryOptionNames: readonly string[] = [
  '-t',
  '-q',
  '-p',
  '-x',
  '-c',
  '-o',
  '-4',
  '-6',
  '--json',
  '--short',
  '--tcp',
  '--timeout',
  '--type',
  '--nameserver',
  '--query',
  '+short',
  '+tcp',
  '+dnssec',
  '+norecurse',
  '+noedns',
  '+bufsize=',
  '+timeout=',
  '+tries=',
  '+ignore',
  '+cd',
  '+ad',
];

interface Draft {
  name: string | null;
  type: number | null;
  class: number;
  transport: Transport | null;
  server: string | null;
  port: number | null;
  path: string;
  recursion: boolean;
  dnssec: boolean;
  authenticData: boolean;
  checkingDisabled: boolean;
  bufferSize: number | null;
  timeoutMs: number;
  tries: number;
  ignoreTruncation: boolean;
  output: 'dig' | 'short' | 'json';
}

export function parseQueryOptions(words: readonly string[]): QueryOptions {
  const draft: Draft = {
    name: null,
    type: null,
    class: 1,
    transport: null,
    server: null,
    port: null,
    path: '/dns-query',
    recursion: true,
    dnssec: false,
    authenticData: true,
    checkingDisabled: false,
    bufferSize: 1232,
    timeoutMs: 5000,
    tries: 3,
    ignoreTruncation: false,
    output: 'dig',
  };
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const value = (): string => {
      const next = words[++i];
      if (next === undefined) throw usage(`${word} needs a value`);
      return next;
    };
    if (word.startsWith('@')) readServer(draft, word.slice(1));
    else if (word.startsWith('+')) readFlag(draft, word.slice(1));
    else if (word.startsWith('-') && word.length > 1) readOption(draft, word, value);
    else readWord(draft, word);
  }
  const transport = draft.transport ?? 'udp';
  return {
    ...draft,
    name: draft.name ?? '.',
    type: draft.type ?? (draft.name === null ? 2 : 1),
    transport,
    port: draft.port ?? ports[transport],
  };
}

/** A bare word is a type, a class or the name. */
function readWord(draft: Draft, word: string): void {
  const type = typeNumber(word.toUpperCase());
  if (type !== null && draft.type === null && !(draft.name === null && /^[a-z]/.test(word))) {
    draft.type = type;
    return;
  }
  if (/^(IN|CH|HS)$/i.test(word) && draft.name !== null) {
    draft.class = classNumber(word.toUpperCase()) ?? 1;
    return;
  }
  if (draft.name === null) draft.name = word;
  else if (type !== null) draft.type = type;
  else
    throw usage(
      `one name, please: "${draft.name}" or "${word}"?`,
      'A record type? Write it as -t TYPE or TYPE65280.',
    );
}

function readServer(draft: Draft, text: string): void {
  const match = /^(?:(udp|tcp|tls|https):\/\/)?(.*)$/s.exec(text);
  const scheme = match?.[1] as Transport | undefined;
  let rest = match?.[2] ?? '';
  if (scheme !== undefined) draft.transport = scheme;
  if (scheme === 'https') {
    const slash = rest.indexOf('/');
    if (slash >= 0) {
      draft.path = rest.slice(slash);
      rest = rest.slice(0, slash);
    }
  }
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(rest);
  const plain = /^([^:]+):(\d+)$/.exec(rest);
  const [host, port] =
    bracketed !== null
      ? [bracketed[1], bracketed[2]]
      : plain !== null
        ? [plain[1], plain[2]]
        : [rest, undefined];
  if (host === undefined || host === '') throw usage(`"@${text}" names no server`);
  draft.server = host;
  if (port !== undefined) draft.port = integer('port', port, 1, 65_535);
}

function readOption(draft: Draft, word: string, value: () => string): void {
  const [key, inline] = word.startsWith('--') ? word.split(/=(.*)/s) : [word];
  const get = (): string => inline ?? value();
  switch (key) {
    case '-t':
    case '--type':
      draft.type = typeOf(get());
      return;
    case '-q':
    case '--query':
      draft.name = get();
      return;
    case '-c':
      draft.class = classNumber(get().toUpperCase()) ?? 1;
      return;
    case '-p':
      draft.port = integer('-p', get(), 1, 65_535);
      return;
    case '-x':
      draft.name = reverseName(get());
      draft.type ??= 12;
      return;
    case '-n':
    case '--nameserver':
      readServer(draft, get());
      return;
    case '-o':
    case '--output': {
      const output = get();
      if (output !== 'json' && output !== 'short' && output !== 'dig' && output !== 'text')
        throw usage(`unknown output "${output}"`, 'Known: dig, short, json');
      draft.output = output === 'text' ? 'dig' : output;
      return;
    }
    case '--json':
    case '-J':
      draft.output = 'json';
      return;
    case '--short':
      draft.output = 'short';
      return;
    case '--tcp':
      draft.transport = 'tcp';
      return;
    case '--timeout':
      draft.timeoutMs = integer('--timeout', get().replace(/s$/, ''), 1, 3600) * 1000;
      return;
    case '-4':
    case '-6':
    case '--time':
    case '--color':
      return;
    default: {
      const meant = nearest(key ?? '', queryOptionNames);
      throw usage(`unknown option ${word}`, meant === null ? undefined : `Did you mean ${meant}?`);
    }
  }
}

/** dig's `+[no]word[=value]`. */
function readFlag(draft: Draft, text: string): void {
  const [word = '', value] = text.split(/=(.*)/s);
  const on = !word.startsWith('no');
  const name = on ? word : word.slice(2);
  switch (name) {
    case 'short':
      draft.output = on ? 'short' : 'dig';
      return;
    case 'json':
      draft.output = on ? 'json' : 'dig';
      return;
    case 'tcp':
    case 'vc':
      draft.transport = on ? 'tcp' : 'udp';
      return;
    case 'tls':
    case 'https':
      if (on) draft.transport = name;
      if (value !== undefined && name === 'https') draft.path = value;
      return;
    case 'dnssec':
    case 'do':
      draft.dnssec = on;
      return;
    case 'recurse':
    case 'rec':
    case 'rdflag':
      draft.recursion = on;
      return;
    case 'adflag':
    case 'ad':
      draft.authenticData = on;
      return;
    case 'cdflag':
    case 'cd':
      draft.checkingDisabled = on;
      return;
    case 'edns':
      draft.bufferSize = on ? (draft.bufferSize ?? 1232) : null;
      return;
    case 'bufsize':
      draft.bufferSize = integer('+bufsize', value ?? '1232', 0, 65_535);
      return;
    case 'timeout':
    case 'time':
      draft.timeoutMs = integer('+timeout', value ?? '5', 1, 3600) * 1000;
      return;
    case 'tries':
      draft.tries = integer('+tries', value ?? '3', 1, 100);
      return;
    case 'retry':
      draft.tries = integer('+retry', value ?? '2', 0, 99) + 1;
      return;
    case 'ignore':
      draft.ignoreTruncation = on;
      return;
    // How dig lays out its text; there is nothing to lay out here.
    case 'all':
    case 'answer':
    case 'authority':
    case 'additional':
    case 'question':
    case 'comments':
    case 'stats':
    case 'cmd':
    case 'multiline':
    case 'ttlid':
    case 'class':
    case 'search':
    case 'cookie':
    case 'showsearch':
    case 'idnout':
      return;
    default:
      throw usage(
        `unknown flag +${text}`,
        'ndots query knows +short +tcp +dnssec +norecurse +noedns +bufsize= +timeout= +tries= +ignore +cd +ad.',
      );
  }
}

function typeOf(text: string): number {
  const type = typeNumber(text.toUpperCase());
  if (type === null) throw usage(`"${text}" is no record type`);
  return type;
}

/** The name under in-addr.arpa or ip6.arpa (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function reverseName(address: string): string {
  const bytes = parseAddress(address);
  if (bytes === null) throw usage(`-x takes an IP address, not "${address}"`);
  if (bytes.length === 4) return `${[...bytes].reverse().join('.')}.in-addr.arpa.`;
  const nibbles = [...bytes].flatMap((byte) => [byte >> 4, byte & 15]);
  return `${nibbles
    .reverse()
    .map((nibble) => nibble.toString(16))
    .join('.')}.ip6.arpa.`;
}

function integer(what: string, text: string, least: number, most: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw usage(`${what} takes a whole number from ${least} to ${most}, not "${text}"`);
}

function usage(text: string, hint?: string): Problem {
  return new Problem({
    code: 'usage',
    text,
    hint,
    remedy: 'ndots query --help shows the options.',
  });
}
