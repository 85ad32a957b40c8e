/**
 * The command line for `ndots query`, which accepts the syntax of dig (`@1.1.1.1 example.com MX +tcp`) and of doggo
 * (`MX example.com @tls://1.1.1.1 --json`).
 */
import { didYouMean } from '../../../server/base/problem.ts';
import { domainToASCII } from 'node:url';
import { parseAddress } from '../../../server/base/ip.ts';
import type { RemoteServer } from '../../../server/transport/one-exchange.ts';
import { nameOfAddress } from '../../../server/wire/reverse-name.ts';
import { TYPE, classNumber, typeNumber } from '../../../server/wire/iana.ts';
import { colourOptions } from '../colour-options.ts';
import { flag, group, one, type OptionValue, type Usage } from '../option.ts';
import { readOptions, type GivenOption } from '../option-parse.ts';
import { transports } from '../../../server/wire/transports.ts';
import {
  choice,
  duration,
  file,
  integer,
  readInteger,
  readServer as readServerAddress,
  text,
  usage,
} from '../option-values.ts';
import {
  fresh,
  sets,
  setting,
  stored,
  type Draft,
  type QueryOption,
  type QueryOptions,
  type QueryProtocol,
} from './query-draft.ts';
import { digFlags } from './query-flags.ts';
import { keyOfFile, writtenKey } from './query-key.ts';

const ports: Readonly<Record<QueryProtocol, number>> = {
  udp: transports.dns.port,
  tcp: transports.dns.port,
  tls: transports.tls.port,
  https: transports.https.port,
};

const commonTypes: readonly string[] = [
  'A AAAA ANY AXFR CAA CNAME DNSKEY DS HTTPS IXFR MX NAPTR NS',
  'NSEC PTR RRSIG SOA SRV SSHFP SVCB TLSA TXT',
].flatMap((line) => line.split(' '));

interface TypeGiven {
  readonly type: number;
  readonly serial: number | null;
}

const typeValue: OptionValue<TypeGiven> = {
  placeholder: 'TYPE',
  offers: { words: commonTypes },
  read(given) {
    const found = typeOf(given);
    if (found !== null) return found;
    throw usage(`"${given}" is not a record type`, didYouMean(given, commonTypes));
  },
};

const classValue: OptionValue<number> = {
  placeholder: 'CLASS',
  offers: { words: ['IN', 'CH', 'HS', 'ANY'] },
  read(given) {
    const number = classNumber(given.toUpperCase());
    if (number !== null) return number;
    throw usage(`"${given}" is not a class`, 'Known: IN, CH, HS, ANY, CLASS255');
  },
};

const source: OptionValue<RemoteServer> = {
  placeholder: 'IP[#PORT]',
  read(given) {
    const { server, port } = readServerAddress(given.replace(/#0$/, ''));
    return { host: server, port: port ?? 0 };
  },
};

const outputs = ['dig', 'short', 'json', 'text'] as const;

/** Options that specify a name and therefore start a new query. */
const names: ReadonlySet<string> = new Set(['name', 'reverse']);

const nothing = (): void => {};

const table: Readonly<Record<string, QueryOption>> = {
  ...group('Query', {
    name: setting(one('-q, --query', text('NAME'), 'name, even if it looks like a type'), nothing),
    type: setting(
      one('-t, --type', typeValue, 'A, MX, TYPE65280, AXFR, IXFR=SERIAL …'),
      (draft, given) => {
        if (given !== undefined) Object.assign(draft, given);
      },
    ),
    class: stored('class', one('-c, --class', classValue, 'IN, CH, HS …')),
    reverse: setting(
      one('-x, --reverse', text('IP'), 'look up the name of this address (PTR)'),
      nothing,
    ),
    server: setting(
      one('-n, --nameserver', text('SERVER'), 'same as @SERVER'),
      (draft, given = '') => {
        readServer(draft, given);
      },
    ),
    port: stored('port', one('-p, --port', integer('PORT', 1, 65_535), 'port of the server')),
    ipv4: sets('-4', 'use IPv4 for a server given by name', { family: 4 }),
    ipv6: sets('-6', 'use IPv6 for a server given by name', { family: 6 }),
    source: stored('source', one('-b, --bind', source, 'send from this local address')),
    key: stored('key', one('-y, --key', writtenKey, 'sign the query and verify the reply (TSIG)')),
    keyFile: setting(
      one('-k, --key-file', file(), 'same, with the first key of a tsig-keygen file'),
      (draft, path = '') => {
        draft.key = keyOfFile(path);
      },
    ),
    batch: setting(
      one('-f, --file', file(), 'send the queries in this file, one per line (-: standard input)'),
      nothing,
    ),
    tcp: sets('--tcp', 'use TCP', { transport: 'tcp' }),
    resolvConf: stored(
      'resolvConf',
      one(
        '--resolv-conf',
        file(),
        'take the server, and the search path for +search, from this file',
      ),
    ),
    timeout: stored(
      'timeoutMs',
      one('--timeout', duration(1, 3_600_000), 'wait this long for a reply (5s)'),
    ),
    maxRecords: stored(
      'maxRecords',
      one(
        '--max-records',
        integer('COUNT', 1, 2 ** 40),
        'stop a zone transfer after COUNT records (100 million)',
      ),
    ),
  }),
  ...group('Output', {
    output: setting(
      one('-o, --output', choice('FORMAT', outputs), 'dig (also text), short or json'),
      (draft, given) => {
        draft.output = given === undefined || given === 'text' ? 'dig' : given;
      },
    ),
    json: sets('-J, --json', 'same as -o json', { output: 'json' }),
    short: sets('--short', 'same as -o short', { output: 'short' }),
    color: stored('color', colourOptions.color),
    noColor: setting(colourOptions.noColor, (draft) => {
      draft.noColor = true;
    }),
    time: setting(flag('--time', 'accepted as in doggo; the time is always printed'), nothing),
  }),
  // The prefix avoids clashes with other options' keys.
  ...Object.fromEntries(Object.entries(digFlags).map(([key, option]) => [`+${key}`, option])),
};

export const queryUsage: Usage = {
  synopsis: '[@SERVER] NAME [TYPE] [CLASS] …',
  examples: [
    ['@10.96.0.10 kubernetes.default.svc.cluster.local', 'query as with dig'],
    ['@10.96.0.10 -x 10.96.0.1 +short', 'look up the name of an address'],
    ['MX example.com @tls://9.9.9.9 --short', 'query as with doggo'],
    ['@10.96.0.10 -f names.txt +short', 'send one query per line of a file'],
    ['@192.0.2.1 example.org AXFR -k transfer.key', 'transfer a zone, signed with TSIG'],
  ],
  style: 'gnu',
  options: table,
  brief: ['dig'],
  notes: [
    'SERVER is @IP, @IP:PORT, @NAME, @udp://…, @tcp://…, @tls://… or @https://HOST/PATH (default: the first server in /etc/resolv.conf).',
    'NAME, TYPE (A, AAAA, MX, TYPE65280, AXFR, IXFR=SERIAL …) and CLASS may come in any order. Each name starts a new query. Options before the first name apply to all queries, and to the lines of -f, which have the same syntax.',
    'Each + option has a +no form. The manual explains them: man ndots-query',
    'The name is sent as written. To apply the search path, use +search. To see what a program would send, use ndots trace.',
    'Exit codes: 0 NOERROR, 1 NXDOMAIN or an error, 2 no reply, 3 usage error.',
  ],
  words: { words: commonTypes },
};

export interface QueryLine {
  readonly queries: readonly QueryOptions[];
  /** Batch file with further queries, or null if there is none. */
  readonly batch: string | null;
  /** Settings for the lines of the batch file. */
  readonly common: Draft;
}

/**
 * Parses a command line. As in dig, options before the first name apply to all queries.
 * @param from defaults for every query on the line
 */
export function parseQueryLine(words: readonly string[], from: Draft = fresh): QueryLine {
  const done: Draft[] = [];
  let draft: Draft = { ...from, typeWord: null };
  let common: Draft | null = null;
  /** Each name begins a query. */
  const begin = (name: string): void => {
    common ??= { ...draft };
    if (draft.name !== null) {
      done.push(draft);
      draft = { ...common, typeWord: null, overridden: null };
    }
    draft.name = name;
  };
  const list = [...readOptions(table, words)];
  const file = list.findLast((given) => typeof given !== 'string' && given.key === 'batch');
  const batch = file === undefined ? null : ((file as GivenOption).value as string);
  list.forEach((given, index) => {
    if (typeof given !== 'string') {
      if (names.has(given.key)) {
        const value = given.value as string;
        begin(given.key === 'reverse' ? reverseName(value) : value);
        if (given.key === 'reverse') draft.type = TYPE.PTR;
      } else table[given.key]?.set(draft, given.value, given.on);
    } else if (given.startsWith('@')) readServer(draft, given.slice(1));
    else {
      const named = draft.name !== null || list.slice(index + 1).some(isName);
      if (!readWord(draft, given, named)) begin(given);
    }
  });
  if (batch === null) return { queries: [...done, draft].map(finished), batch, common: draft };
  if (draft.name !== null)
    throw usage(`"${draft.name}" cannot be combined with -f ${batch}`, 'Add it to the file.');
  return { queries: [], batch, common: draft };
}

/** True if the word can only be a name. */
function isName(
  given: ReturnType<typeof readOptions> extends Iterable<infer G> ? G : never,
): boolean {
  if (typeof given !== 'string') return names.has(given.key);
  return !given.startsWith('@') && typeOf(given) === null && !isClass(given);
}

function finished(draft: Draft): QueryOptions {
  const type = draft.type ?? (draft.name === null ? TYPE.NS : TYPE.A);
  // Zone transfers use TCP.
  const transfer = type === TYPE.AXFR || type === TYPE.IXFR;
  const transport = draft.transport ?? (transfer ? 'tcp' : 'udp');
  if (type === TYPE.AXFR && transport !== 'tcp' && transport !== 'tls')
    throw usage(`AXFR needs TCP or TLS, not ${transport.toUpperCase()}`);
  if (draft.trace && draft.key !== null)
    throw usage('+trace queries servers that do not share a key with you; omit -y and -k');
  return {
    ...draft,
    name: wireName(draft.name ?? '.', draft.idn),
    type,
    transport,
    port: draft.port ?? ports[transport],
  };
}

function wireName(name: string, idn: boolean): string {
  // eslint-disable-next-line no-control-regex -- matches ASCII
  if (!idn || /^[\u0000-\u007f]*$/.test(name)) return name;
  const ascii = name.includes('\uFFFD') ? '' : domainToASCII(name);
  if (ascii === '')
    throw usage(
      `"${name}" cannot be converted to xn-- form`,
      '+noidnin sends the bytes unchanged.',
    );
  return ascii;
}

/**
 * Reads a bare word as a type or class. Returns false for anything else, which must be a name.
 * @param named true if a name was given or follows; otherwise, a lowercase word is the name
 */
function readWord(draft: Draft, word: string, named: boolean): boolean {
  const could = named || !/^[a-z]/.test(word);
  const type = typeOf(word);
  if (type !== null && could) {
    if (draft.typeWord !== null && draft.type !== type.type) draft.overridden = draft.typeWord;
    draft.typeWord = word;
    Object.assign(draft, type);
    return true;
  }
  if (isClass(word) && could) {
    draft.class = classNumber(word.toUpperCase()) ?? 1;
    return true;
  }
  if (/^TYPE\d+$/i.test(word) && could)
    throw usage(`"${word}" is not a record type`, 'Type numbers go up to 65535: TYPE65535.');
  if (draft.name !== null && /^[A-Z]{2,10}$/.test(word))
    throw usage(
      `"${word}" is not a record type`,
      didYouMean(word, commonTypes, `If it is a name, write it with a dot: ${word}.`),
    );
  return false;
}

/** `MX`, `mx`, `TYPE15` or `IXFR=7`. Null if it is not a type. */
function typeOf(word: string): TypeGiven | null {
  const ixfr = /^IXFR=(\d{1,10})$/i.exec(word);
  if (ixfr !== null) return { type: TYPE.IXFR, serial: Number(ixfr[1]) >>> 0 };
  const type = typeNumber(word.toUpperCase());
  return type === null ? null : { type, serial: null };
}

/** Excludes ANY, which is read as a type here. */
function isClass(word: string): boolean {
  return /^(IN|CH|HS|CLASS\d+)$/i.test(word) && classNumber(word.toUpperCase()) !== null;
}

function readServer(draft: Draft, given: string): void {
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+]*):\/\/)?(.*)$/s.exec(given) ?? [];
  if (scheme !== undefined) {
    if (!Object.hasOwn(ports, scheme))
      throw usage(`"@${given}": ${scheme}:// is not supported`, 'Known: udp, tcp, tls, https');
    draft.transport = scheme as QueryProtocol;
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
  if (host === '') throw usage(`"@${given}" does not name a server`);
  const address = host.replace(/%.*/s, '');
  if (parseAddress(address) === null && !/^[a-z0-9]([a-z0-9._-]*[a-z0-9.])?$/i.test(host))
    throw usage(
      `"@${given}" is neither an address nor a host name`,
      'Example: @10.96.0.10:53 @[fd00::a]:53 @tls://dns.example',
    );
  draft.server = host;
  if (port !== undefined) draft.port = readInteger('port', port, 1, 65_535);
}

/** The reverse name for an address or for its first bytes. */
export function reverseName(address: string): string {
  const bytes = parseAddress(address);
  // An address's first bytes stand for a reverse zone.
  if (bytes === null && /^\d{1,3}(\.\d{1,3}){0,2}\.?$/.test(address))
    return `${address.replace(/\.$/, '').split('.').reverse().join('.')}.in-addr.arpa.`;
  if (bytes === null) throw usage(`-x takes an IP address, not "${address}"`);
  return nameOfAddress(bytes);
}
