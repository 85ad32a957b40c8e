/**
 * Reads resolv.conf like glibc (resolv/res_init.c). Keywords are recognised only at the start of a line, options
 * accumulate, and no more than three name servers are used. The last `search` or `domain` line counts. LOCALDOMAIN and
 * RES_OPTIONS override it.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { Settings } from './client.ts';
import type { GlibcTraits } from './glibc-releases.ts';
import {
  domainOf,
  leadingInteger,
  linesOf,
  newConf,
  remark,
  type MutableConf,
  type ResolvConf,
} from './resolv-conf.ts';

const mostServers = 3;
const mostDots = 15;
const longestTimeout = 30;
const mostAttempts = 5;

/** Options without a value. A word matches any option that it starts with. */
const switches: readonly (readonly [string, keyof MutableConf | null])[] = [
  ['rotate', 'rotate'],
  ['edns0', 'edns0'],
  ['single-request-reopen', 'singleRequestReopen'],
  ['single-request', 'singleRequest'],
  ['no_tld_query', 'noTldQuery'],
  ['no-tld-query', 'noTldQuery'],
  ['no-reload', null],
  ['use-vc', 'useVc'],
  ['trust-ad', 'trustAd'],
  ['no-aaaa', 'noAaaa'],
  ['strict-error', 'strictError'],
];

export function readGlibcConf(settings: Settings, traits: GlibcTraits): ResolvConf {
  const conf = newConf();
  const localDomain = settings.env['LOCALDOMAIN'];
  if (localDomain !== undefined) {
    // A leading blank results in an empty first domain, which means the root.
    const [first = '', ...others] = (localDomain.split('\n')[0] ?? '').split(/[ \t]+/);
    conf.search = [first, ...others.filter((word) => word !== '')];
    remark(conf, 0, 'LOCALDOMAIN replaces the search list of the file');
  }
  linesOf(settings.resolvConf).forEach((line, index) => {
    readLine(conf, line, index + 1, localDomain !== undefined, traits);
  });
  if (conf.servers.length > mostServers) {
    remark(conf, 0, `only the first ${mostServers} name servers are used`);
    conf.servers = conf.servers.slice(0, mostServers);
  }
  if (conf.servers.length === 0) {
    conf.servers = ['127.0.0.1'];
    remark(conf, 0, 'no usable name server: 127.0.0.1 is used');
  }
  if (conf.search.length === 0) {
    const domain = domainOf(settings.host.hostname);
    if (domain !== null) conf.search = [domain];
  }
  const options = settings.env['RES_OPTIONS'];
  if (options !== undefined) readOptions(conf, options, 0, traits);
  return conf;
}

function readLine(
  conf: MutableConf,
  line: string,
  number: number,
  searchFixed: boolean,
  traits: GlibcTraits,
): void {
  if (line.startsWith(';') || line.startsWith('#') || line.trim() === '') return;
  const match = /^(domain|search|nameserver|sortlist|options)[ \t](.*)$/s.exec(line);
  if (match === null) {
    const why = /^\s/.test(line) ? 'a keyword must begin the line' : 'unknown keyword';
    remark(conf, number, `ignored: ${why}`);
    return;
  }
  const [, keyword, rest = ''] = match;
  const words = rest.split(/[ \t]+/).filter((word) => word !== '');
  if (keyword === 'options') return readOptions(conf, rest, number, traits);
  if (keyword === 'sortlist' || words.length === 0) return;
  if (keyword === 'nameserver') return readServer(conf, words[0] ?? '', number);
  if (searchFixed) return;
  if (conf.search.length > 0) {
    remark(conf, number, 'replaces the search list of an earlier line');
  }
  conf.search = keyword === 'domain' ? words.slice(0, 1) : words;
  for (const word of words) {
    if (word.startsWith('#') || word.startsWith(';')) {
      remark(conf, number, `"${word}" is read as a search domain, not a comment`);
    }
  }
}

function readServer(conf: MutableConf, word: string, number: number): void {
  const [address = '', zone] = word.split('%');
  const short = shortIPv4(address);
  if (short !== null) conf.servers.push(short);
  else if (parseAddress(address) !== null) {
    conf.servers.push(zone === undefined || !isLinkLocal(address) ? address : word);
  } else remark(conf, number, `ignored: "${word}" is not an IP address`);
}

/** True for link-local addresses, which are the only ones that retain the interface after `%`. */
export function isLinkLocal(address: string): boolean {
  return /^fe[89ab]/i.test(address);
}

/** Parses inet_aton's short forms: `127.1`, `0x7f000001`. */
export function shortIPv4(text: string): string | null {
  const parts = text.split('.');
  if (parts.length > 4 || !parts.every((part) => /^(0x[0-9a-f]+|\d+)$/i.test(part))) return null;
  const numbers = parts.map((part) =>
    /^0x/i.test(part)
      ? Number.parseInt(part, 16)
      : Number.parseInt(part, /^0\d/.test(part) ? 8 : 10),
  );
  const last = numbers.pop() ?? 0;
  if (numbers.some((number) => !(number <= 255))) return null;
  const room = 256 ** (4 - numbers.length);
  if (!(last < room)) return null;
  let value = last;
  numbers.forEach((number, index) => {
    value += number * 256 ** (3 - index);
  });
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** Parses an IPv4 address that consists of four numbers, which may have leading zeros. */
export function dottedQuad(text: string): string | null {
  const parts = text.split('.');
  const plain = parts.length === 4 && parts.every((part) => /^\d{1,9}$/.test(part));
  return plain && parts.every((part) => Number(part) <= 255) ? parts.map(Number).join('.') : null;
}

function readOptions(conf: MutableConf, text: string, number: number, traits: GlibcTraits): void {
  for (const match of text.matchAll(/[^ \t\r\f\v\n]+/g)) {
    const [word] = match;
    // The number is read from the text after the option rather than from the word, so `ndots: 3` works.
    const value = leadingInteger(text.slice(match.index + word.indexOf(':') + 1));
    if (word.startsWith('ndots:')) {
      conf.ndots = value < 0 ? mostDots : Math.min(value, mostDots);
      if (value > mostDots) remark(conf, number, `ndots is capped at ${mostDots}`);
    } else if (word.startsWith('timeout:')) {
      conf.timeoutMs = Math.min(value, longestTimeout) * 1000;
      if (value > longestTimeout) {
        remark(conf, number, `timeout is capped at ${longestTimeout} s`);
      }
    } else if (word.startsWith('attempts:')) {
      conf.attempts = Math.min(value, mostAttempts);
      if (value > mostAttempts) {
        remark(conf, number, `attempts is capped at ${mostAttempts}`);
      }
    } else readSwitch(conf, word, number, traits);
  }
}

function readSwitch(conf: MutableConf, word: string, number: number, traits: GlibcTraits): void {
  const clearing = word.startsWith('-') && traits.strictError;
  const wanted = clearing ? word.slice(1) : word;
  const option = switches.find(([name]) => wanted.startsWith(name));
  const unknown =
    (option?.[0] === 'strict-error' && !traits.strictError) ||
    (option?.[0] === 'no-aaaa' && !traits.noAaaa);
  if (option === undefined || unknown) {
    conf.unknown ??= word;
    remark(conf, number, `option "${word}" is unknown and ignored`);
    return;
  }
  const key = option[1];
  if (key !== null) Object.assign(conf, { [key]: !clearing });
}
