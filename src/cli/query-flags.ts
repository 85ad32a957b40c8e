/** dig's `+[no]word[=value]` of `ndots query`. */
import { parseAddress } from '../base/ip.ts';
import { nearest } from '../base/problem.ts';
import { secureRandom } from '../base/random.ts';
import type { EdnsOption } from '../wire/edns.ts';
import { writeOption } from '../wire/edns-option.ts';
import { OPCODE, OPTION } from '../wire/iana.ts';
import { integer, usage, type Draft, type Parts } from './query-draft.ts';

const sections = ['question', 'answer', 'authority', 'additional'] as const;

type Apply = (draft: Draft, on: boolean, value: string | undefined) => void;

const part =
  (key: keyof Parts): Apply =>
  (draft, on) => {
    draft.show = { ...draft.show, [key]: on };
  };

const number =
  (
    key: 'tries' | 'timeoutMs' | 'bufferSize',
    word: string,
    usual: number,
    most: number,
    of: (n: number) => number,
  ): Apply =>
  (draft, _on, value) => {
    draft[key] = of(integer(`+${word}`, value ?? String(usual), 0, most));
  };

/** The flags that do something, under the first of their names. */
const flags: Readonly<Record<string, Apply>> = {
  short: (draft, on) => void (draft.output = on ? 'short' : 'dig'),
  json: (draft, on) => void (draft.output = on ? 'json' : 'dig'),
  tcp: (draft, on) => void (draft.transport = on ? 'tcp' : 'udp'),
  tls: (draft, on) => void (draft.transport = on ? 'tls' : null),
  https(draft, on, value) {
    draft.transport = on ? 'https' : null;
    if (value !== undefined) draft.path = value;
  },
  dnssec: (draft, on) => void (draft.dnssec = on),
  recurse: (draft, on) => void (draft.recursion = on),
  adflag: (draft, on) => void (draft.authenticData = on),
  cdflag: (draft, on) => void (draft.checkingDisabled = on),
  edns(draft, on, value) {
    draft.bufferSize = on ? (draft.bufferSize ?? 1232) : null;
    if (value !== undefined) draft.ednsVersion = integer('+edns', value, 0, 255);
  },
  bufsize: number('bufferSize', 'bufsize', 1232, 65_535, (size) => size),
  // Zero means one second, one try: as in dig.
  timeout: number('timeoutMs', 'timeout', 5, 3600, (seconds) => Math.max(1, seconds) * 1000),
  tries: number('tries', 'tries', 3, 100, (tries) => Math.max(1, tries)),
  retry: number('tries', 'retry', 2, 99, (retries) => retries + 1),
  ignore: (draft, on) => void (draft.ignoreTruncation = on),
  nsid: (draft, on) =>
    option(draft, OPTION.NSID, on && writeOption({ kind: 'nsid', id: new Uint8Array(0) })),
  expire: (draft, on) =>
    option(draft, OPTION.EXPIRE, on && writeOption({ kind: 'expire', seconds: null })),
  keepalive: (draft, on) =>
    option(draft, OPTION.KEEPALIVE, on && writeOption({ kind: 'keepalive', timeout: null })),
  cookie(draft, on, value) {
    const data = value === undefined ? randomCookie() : hex('+cookie', value);
    if (data.length < 8 || data.length > 40) throw usage('+cookie takes 8 to 40 bytes in hex');
    option(draft, OPTION.COOKIE, on && { code: OPTION.COOKIE, data });
  },
  subnet: (draft, on, value) => option(draft, OPTION.ECS, on && subnet(value)),
  padding: (draft, on, value) =>
    option(
      draft,
      OPTION.PADDING,
      on && writeOption({ kind: 'padding', length: integer('+padding', value ?? '128', 0, 512) }),
    ),
  ednsopt(draft, on, value) {
    if (!on) {
      draft.ednsOptions = [];
      return;
    }
    const [code = '', data = ''] = (value ?? '').split(/:(.*)/s);
    const added = { code: integer('+ednsopt', code, 0, 65_535), data: hex('+ednsopt', data) };
    draft.ednsOptions = [...draft.ednsOptions, added];
  },
  opcode(draft, on, value = 'QUERY') {
    const known = (OPCODE as Readonly<Record<string, number>>)[value.toUpperCase()];
    draft.opcode = on ? (known ?? integer('+opcode', value, 0, 15)) : 0;
  },
  qr: (draft, on) => void (draft.showQuery = on),
  all(draft, on) {
    const { ttl, class: withClass } = draft.show;
    draft.show = {
      question: on,
      answer: on,
      authority: on,
      additional: on,
      comments: on,
      stats: on,
      ttl,
      class: withClass,
    };
  },
  ...Object.fromEntries(sections.map((name) => [name, part(name)])),
  comments: part('comments'),
  stats: part('stats'),
  ttlid: part('ttl'),
  class: part('class'),
  idnin: (draft, on) => void (draft.idn = on),
};

const otherNames: Readonly<Record<string, string>> = {
  vc: 'tcp',
  do: 'dnssec',
  rec: 'recurse',
  rdflag: 'recurse',
  ad: 'adflag',
  cd: 'cdflag',
  time: 'timeout',
  cl: 'class',
  ttl: 'ttlid',
};

/** Said in dig for what is always, or never, so here: no search list, one reply each, plain layout. */
const silent: ReadonlySet<string> = new Set([
  'cmd',
  'search',
  'showsearch',
  'idnout',
  'multiline',
  'besteffort',
  'fail',
  'defname',
  'color',
  'split',
]);

export const flagNames: readonly string[] = [
  ...[
    '+short',
    '+tcp',
    '+tls',
    '+https',
    '+dnssec',
    '+norecurse',
    '+noedns',
    '+bufsize=',
    '+timeout=',
    '+tries=',
  ],
  ...[
    '+ignore',
    '+cd',
    '+noad',
    '+noall',
    '+answer',
    '+authority',
    '+additional',
    '+question',
    '+nocomments',
  ],
  ...[
    '+nostats',
    '+nottlid',
    '+qr',
    '+nsid',
    '+cookie',
    '+subnet=',
    '+ednsopt=',
    '+opcode=',
    '+noidnin',
  ],
];

export function readFlag(draft: Draft, text: string): void {
  const [word = '', value] = text.split(/=(.*)/s);
  const whole = word.toLowerCase();
  const on = !whole.startsWith('no');
  const name = on ? whole : whole.slice(2);
  const apply = flags[otherNames[name] ?? name];
  if (apply !== undefined) apply(draft, on, value);
  else if (!silent.has(name)) {
    const meant = nearest(
      `+${whole}`,
      flagNames.map((known) => known.replace(/=$/, '')),
    );
    throw usage(
      `unknown flag +${text}`,
      meant === null ? `Known: ${flagNames.join(' ')}` : `Did you mean ${meant}?`,
    );
  }
}

function option(draft: Draft, code: number, added: EdnsOption | false): void {
  const others = draft.ednsOptions.filter((one) => one.code !== code);
  draft.ednsOptions = added === false ? others : [...others, added];
}

/** `1.2.3.0/24`, `2001:db8::/56`, `0`. */
function subnet(text: string | undefined): EdnsOption {
  const [address = '', bits] = (text === '0' ? '0.0.0.0/0' : (text ?? '')).split('/');
  const bytes = parseAddress(address);
  if (bytes === null) throw usage(`+subnet takes ADDRESS/BITS, not "${text ?? ''}"`);
  const most = bytes.length * 8;
  const source = bits === undefined ? most : integer('+subnet', bits, 0, most);
  return writeOption({ kind: 'ecs', address, source, scope: 0 });
}

function randomCookie(): Uint8Array {
  return Uint8Array.from({ length: 8 }, () => secureRandom.integer(256));
}

function hex(what: string, text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/i.test(text)) throw usage(`${what} takes bytes in hex, not "${text}"`);
  return Uint8Array.from(Buffer.from(text, 'hex'));
}
