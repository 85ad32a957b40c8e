/** dig's `+[no]word[=value]` flags for `ndots query`. */
import { parseAddress } from '../../../server/base/ip.ts';
import { secureRandom } from '../../../server/base/random.ts';
import type { EdnsOption } from '../../../server/wire/edns.ts';
import { writeOption } from '../../../server/wire/edns-option.ts';
import { OPCODE, OPTION } from '../../../server/wire/iana.ts';
import { flag, group, maybe, one, type OptionValue } from '../option.ts';
import { integer, readInteger, text, usage } from '../option-values.ts';
import {
  sets,
  setting,
  stored,
  type Draft,
  type PrintedParts,
  type QueryOption,
} from './query-draft.ts';

type Toggle = {
  [K in keyof Draft]: Draft[K] extends boolean ? K : never;
}[keyof Draft];

/** A flag that sets a boolean property. */
function toggle(names: string, key: Toggle, help: string): QueryOption {
  return setting(flag(names, help), (draft, _value, on) => void (draft[key] = on));
}

function part(names: string, key: keyof PrintedParts, help: string): QueryOption {
  return setting(flag(names, help), (draft, _value, on) => {
    draft.show = { ...draft.show, [key]: on };
  });
}

function edns<T>(
  names: string,
  code: number,
  value: OptionValue<T> | null,
  help: string,
  write: (value: T | undefined) => EdnsOption,
): QueryOption {
  const option = value === null ? flag(names, help) : maybe(names, value, help);
  return setting<never>(option as never, (draft, given, on) => {
    const others = draft.ednsOptions.filter((each) => each.code !== code);
    draft.ednsOptions = on ? [...others, write(given)] : others;
  });
}

const hex: OptionValue<Uint8Array> = {
  placeholder: 'HEX',
  read: (given, name) => readHex(name, given),
};

const opcode: OptionValue<number> = {
  placeholder: 'N',
  read(given, name) {
    const known = (OPCODE as Readonly<Record<string, number>>)[given.toUpperCase()];
    return known ?? readInteger(name, given, 0, 15);
  },
};

const plain = { output: 'dig' } as const;

export const digFlags: Readonly<Record<string, QueryOption>> = group('dig', {
  short: sets('+short', 'the data of the answer, nothing else', { output: 'short' }, plain),
  json: sets('+json', 'as -o json', { output: 'json' }, plain),
  tcp: sets('+tcp +vc', 'over TCP', { transport: 'tcp' }, { transport: 'udp' }),
  tls: sets('+tls', 'over TLS (RFC 7858), port 853', { transport: 'tls' }, { transport: null }),
  https: setting(
    maybe('+https', text('/PATH'), 'over HTTPS (RFC 8484), port 443, path /dns-query'),
    (draft, path, on) => {
      draft.transport = on ? 'https' : null;
      if (path !== undefined) draft.path = path;
    },
  ),
  trace: toggle('+trace', 'trace', 'from the root down, server by server'),
  search: toggle('+search', 'search', 'with the search list of resolv.conf, as dig walks it'),
  showSearch: setting(
    flag('+showsearch', 'same; also print the replies along the way'),
    (draft, _value, on) => void (draft.search = draft.showSearch = on),
  ),
  ndots: stored(
    'ndots',
    one(
      '+ndots',
      integer('N', 0, 1000),
      'minimum number of dots for which +search sends a name unchanged',
    ),
  ),
  domain: setting(
    one('+domain', text('NAME'), 'same, with only this domain'),
    (draft, domain, on) => {
      draft.search = on;
      draft.domain = domain ?? null;
    },
  ),
  dnssec: toggle('+dnssec +do', 'dnssec', 'the DO bit: signatures, too'),
  recurse: toggle('+recurse +rdflag', 'recursion', 'the RD bit (on)'),
  adflag: toggle('+adflag +ad', 'authenticData', 'the AD bit (on)'),
  cdflag: toggle('+cdflag +cd', 'checkingDisabled', 'the CD bit'),
  ignore: toggle('+ignore', 'ignoreTruncation', 'accept a truncated answer'),
  edns: setting(
    maybe('+edns', integer('N', 0, 255), 'an OPT record (on) with this version'),
    (draft, version, on) => {
      draft.bufferSize = on ? (draft.bufferSize ?? 1232) : null;
      if (version !== undefined) draft.ednsVersion = version;
    },
  ),
  bufsize: stored(
    'bufferSize',
    maybe('+bufsize', integer('N', 0, 65_535), 'maximum bytes of the answer (1232)'),
  ),
  // As in dig, zero means one second or one try.
  timeout: setting(
    maybe('+timeout', integer('S', 0, 3600), 'seconds to wait for an answer (5)'),
    (draft, seconds) => void (draft.timeoutMs = Math.max(1, seconds ?? 5) * 1000),
  ),
  tries: setting(
    maybe('+tries', integer('N', 0, 100), 'number of tries over UDP (3)'),
    (draft, tries) => void (draft.tries = Math.max(1, tries ?? 3)),
  ),
  retry: setting(
    maybe('+retry', integer('N', 0, 99), 'number of retries (2)'),
    (draft, retries) => void (draft.tries = (retries ?? 2) + 1),
  ),
  nsid: edns('+nsid', OPTION.NSID, null, "the server's NSID", () =>
    writeOption({ kind: 'nsid', id: new Uint8Array(0) }),
  ),
  expire: edns('+expire', OPTION.EXPIRE, null, 'the EXPIRE option', () =>
    writeOption({ kind: 'expire', seconds: null }),
  ),
  keepalive: edns('+keepalive', OPTION.KEEPALIVE, null, 'the KEEPALIVE option', () =>
    writeOption({ kind: 'keepalive', timeout: null }),
  ),
  cookie: edns('+cookie', OPTION.COOKIE, hex, 'a COOKIE, of these bytes', (given) => {
    const data = given ?? Uint8Array.from({ length: 8 }, () => secureRandom.integer(256));
    if (data.length < 8 || data.length > 40) throw usage('+cookie needs 8 to 40 bytes in hex');
    return { code: OPTION.COOKIE, data };
  }),
  subnet: edns('+subnet', OPTION.ECS, text('IP/BITS'), 'a client subnet (RFC 7871)', subnet),
  padding: edns(
    '+padding',
    OPTION.PADDING,
    integer('N', 0, 512),
    'add N bytes of padding (128)',
    (length) => writeOption({ kind: 'padding', length: length ?? 128 }),
  ),
  ednsopt: setting(
    one('+ednsopt', text('CODE[:HEX]'), 'any EDNS option'),
    (draft, given = '', on) => {
      const [code = '', data = ''] = given.split(/:(.*)/s);
      draft.ednsOptions = !on
        ? []
        : [
            ...draft.ednsOptions,
            { code: readInteger('+ednsopt', code, 0, 65_535), data: readHex('+ednsopt', data) },
          ];
    },
  ),
  opcode: setting(
    maybe('+opcode', opcode, 'QUERY, NOTIFY … or a number'),
    (draft, code, on) => void (draft.opcode = on ? (code ?? 0) : 0),
  ),
  qr: toggle('+qr', 'showQuery', 'print the query, too'),
  all: setting(flag('+all', 'all parts of the text'), (draft, _value, on) => {
    const { ttl, class: withClass } = draft.show;
    const parts = { question: on, answer: on, authority: on, additional: on };
    draft.show = { ...parts, comments: on, stats: on, ttl, class: withClass };
  }),
  question: part('+question', 'question', 'this section'),
  answer: part('+answer', 'answer', 'this section'),
  authority: part('+authority', 'authority', 'this section'),
  additional: part('+additional', 'additional', 'this section'),
  comments: part('+comments', 'comments', 'header, OPT, section titles'),
  stats: part('+stats', 'stats', 'time, server, size'),
  ttlid: part('+ttlid +ttl', 'ttl', 'the TTL of records'),
  class: part('+class +cl', 'class', 'the class of records'),
  idnin: toggle('+idnin', 'idn', 'send non-ASCII names in their xn-- form (on)'),
  color: sets('+color', 'colours', { color: 'always' }, { color: 'never' }),
  always: setting(
    flag(
      '+cmd +idnout +multiline +besteffort +fail +defname +split +keepopen',
      'accepted, without effect',
    ),
    () => {},
  ),
});

/** `1.2.3.0/24`, `2001:db8::/56`, `0`. */
function subnet(given: string | undefined): EdnsOption {
  const [address = '', bits] = (given === '0' ? '0.0.0.0/0' : (given ?? '')).split('/');
  const bytes = parseAddress(address);
  if (bytes === null) throw usage(`+subnet takes ADDRESS/BITS, not "${given ?? ''}"`);
  const most = bytes.length * 8;
  const source = bits === undefined ? most : readInteger('+subnet', bits, 0, most);
  return writeOption({ kind: 'ecs', address, source, scope: 0 });
}

function readHex(what: string, given: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/i.test(given)) throw usage(`${what} takes bytes in hex, not "${given}"`);
  return Uint8Array.from(Buffer.from(given, 'hex'));
}
