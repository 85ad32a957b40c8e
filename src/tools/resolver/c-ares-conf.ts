/**
 * Reads resolv.conf, nsswitch.conf and the environment like c-ares, which has had three readers. Up to 1.21, the
 * environment is read first, and an option's first value counts. Since 1.22, the environment is read last and overrides
 * the files. Since 1.28, a new parser drops the whole line if it rejects part of it.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { Settings } from './client.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import { isLinkLocal } from './glibc-conf.ts';
import { withoutZone } from './myhostname.ts';
import {
  domainOf,
  leadingInteger,
  linesOf,
  newConf,
  remark,
  wordsOf,
  type MutableConf,
  type ResolvConf,
} from './resolv-conf.ts';
import { byteLength } from './search-list.ts';

/** The settings that c-ares reads from resolv.conf and nsswitch.conf. */
export interface CaresConf extends ResolvConf {
  /** `f` = hosts file, `b` = DNS, in order. */
  readonly lookups: string;
}

/** The third reader copies each line's value into a 512-byte buffer. */
const longestValue = 511;

export function readCaresConf(settings: Settings, traits: CaresTraits): CaresConf {
  const state = newReading(traits);
  const first = traits.reader === 1;
  if (first) readEnvironment(state, settings);
  linesOf(settings.resolvConf).forEach((line, index) => readLine(state, line, index + 1));
  const lookups = readServices(settings.nsswitch, traits);
  if (first || readEnvironment(state, settings)) return finish(state, settings, lookups);
  // In that case, all settings are dropped, even those from the file.
  const empty = newReading(traits);
  remark(
    empty.conf,
    0,
    'LOCALDOMAIN or RES_OPTIONS cannot be read, so c-ares falls back to 127.0.0.1 and no search list',
  );
  return finish(empty, settings, null);
}

function finish(state: ConfReading, settings: Settings, services: string | null): CaresConf {
  const { conf, traits } = state;
  if (state.search !== null) conf.search = dedupe(state.search);
  else {
    const domain = domainOf(settings.host.hostname);
    if (domain !== null) conf.search = [domain];
  }
  if (conf.servers.length === 0) conf.servers = ['127.0.0.1'];
  // In the first reader, a `lookup` line in resolv.conf overrides nsswitch.conf. In later readers, nsswitch.conf takes
  // precedence.
  const lookups = traits.reader === 1 ? (state.lookups ?? services) : (services ?? state.lookups);
  return { ...conf, lookups: lookups ?? 'fb' };
}

interface ConfReading {
  readonly conf: MutableConf;
  readonly traits: CaresTraits;
  search: string[] | null;
  /** Options that are already set, because the first reader uses the first value. */
  readonly known: Set<string>;
  lookups: string | null;
  /** The search list comes from the environment and must not be replaced by the file (first reader). */
  searchFixed: boolean;
}

function newReading(traits: CaresTraits): ConfReading {
  const conf = newConf();
  conf.timeoutMs = traits.timeoutMs;
  conf.attempts = traits.attempts;
  conf.ndots = traits.ndots;
  return { conf, traits, search: null, known: new Set(), lookups: null, searchFixed: false };
}

/** @returns false if a variable cannot be parsed */
function readEnvironment(state: ConfReading, settings: Settings): boolean {
  const { reader, printableOnly } = state.traits;
  const text = settings.env['LOCALDOMAIN'];
  if (text !== undefined) {
    // The second reader stops at the first whitespace.
    const domains = splitDomains(reader === 2 ? text.replace(/\s.*/s, '') : text);
    const readable = domains.length > 0 && !(printableOnly && !isPrintable(text));
    if (!readable && reader > 1) return false;
    if (readable) {
      state.search = reader === 1 ? domains : domains.slice(0, 1);
      state.searchFixed = true;
    }
  }
  const options = settings.env['RES_OPTIONS'];
  if (options === '' && reader === 3) return false;
  if (options !== undefined) readOptions(state, options, 0);
  return true;
}

function readLine(state: ConfReading, raw: string, number: number): void {
  const { conf, traits } = state;
  const line = traits.cutsComments ? raw.replace(/[#;].*/s, '').trim() : raw.trim();
  if (line === '' || line.startsWith('#') || line.startsWith(';')) return;
  const [, keyword = '', rest = ''] = /^(\S+)(\s.*)?$/s.exec(line) ?? [];
  const value = rest.trim();
  if (value === '') return;
  if (traits.reader === 3) {
    const problem =
      byteLength(value) > longestValue
        ? 'longer than 511 bytes'
        : isPrintable(value)
          ? null
          : 'a tab between values, or a letter beyond ASCII';
    if (problem !== null) {
      remark(conf, number, `${problem}: c-ares drops the whole line`);
      return;
    }
  }
  switch (keyword) {
    case 'nameserver':
      return readServers(state, value, number);
    case 'search':
      if (!fixed(state)) state.search = splitDomains(value);
      return;
    case 'domain':
      // The third reader uses `domain` only if no `search` line precedes it.
      if (traits.reader === 3 ? state.search === null : !fixed(state))
        state.search = splitDomains(wordsOf(value)[0] ?? '').slice(0, 1);
      return;
    case 'options':
      return readOptions(state, value, number);
    case 'lookup':
      readLookup(state, value);
      return;
    case 'sortlist':
      return;
    default:
      remark(conf, number, `c-ares does not know "${keyword}"`);
  }
}

/** True if LOCALDOMAIN overrides the search list in the file, which the first reader reads afterwards. */
function fixed({ searchFixed, traits }: ConfReading): boolean {
  return searchFixed && traits.reader === 1;
}

function readLookup(state: ConfReading, value: string): void {
  if (state.traits.reader === 2) {
    state.lookups = firstLetters(wordsOf(value), /^b/) ?? state.lookups;
    return;
  }
  const dns = ['bind', 'dns', 'resolve'];
  state.lookups ??= lookupLetters(wordsOf(value), dns, ['file', 'files']);
}

function isPrintable(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

function readServers({ conf, traits }: ConfReading, value: string, number: number): void {
  for (const word of value.split(/[\s,]+/).filter((part) => part !== '')) {
    const plain = word.replace(/^\[(.*)\](:53)?$/, '$1').replace(/^([\d.]+):53$/, '$1');
    const zoned = isLinkLocal(plain) ? plain : withoutZone(plain);
    const address = traits.zonedServers ? zoned : word;
    if (parseAddress(traits.zonedServers ? withoutZone(address) : address) === null) {
      remark(conf, number, `ignored: "${word}" is not an IP address`);
    } else if (traits.reader === 1 || !conf.servers.includes(address)) conf.servers.push(address);
  }
}

function readOptions(state: ConfReading, text: string, number: number): void {
  for (const match of text.matchAll(/\S+/g)) {
    const [word] = match;
    const known =
      state.traits.reader === 3
        ? readWord(state.conf, word)
        : readText(state, text.slice(match.index), word);
    if (known) continue;
    remark(state.conf, number, `c-ares ignores option "${word}"`);
  }
}

/** The number is read from the text rather than the word, so `ndots: 3` works. */
function readText(state: ConfReading, text: string, word: string): boolean {
  const { conf, traits, known } = state;
  const keys = ['ndots:', 'retrans:', 'retry:', 'rotate'];
  if (traits.timeoutOption) keys.push('timeout:', 'attempts:');
  const key = keys.find((name) => word.startsWith(name));
  if (key === undefined) return false;
  const value = leadingInteger(text.slice(key.length));
  if (traits.reader === 1) {
    // -1 means "not set".
    const unset = (key === 'retrans:' || key === 'retry:') && value === -1;
    if (known.has(key) || unset) return true;
    known.add(key);
  }
  // The comparison is unsigned, which makes a negative number very large.
  if (key === 'ndots:') setDots(conf, value, traits);
  else if (key === 'retrans:') {
    if (traits.reader === 1) conf.timeoutMs = Math.max(0, value);
    else if (value !== 0) conf.timeoutMs = unsigned(value);
  } else if (key === 'timeout:') {
    if (value !== 0) conf.timeoutMs = unsigned(value) * 1000;
  } else if (key === 'rotate') conf.rotate = true;
  else if (traits.reader === 1 || value !== 0) conf.attempts = value;
  return true;
}

function setDots(conf: MutableConf, value: number, { ndotsZero }: CaresTraits): void {
  if (value !== 0 || ndotsZero) conf.ndots = unsigned(value);
}

/** Converts to unsigned, which makes a negative number very large. */
function unsigned(value: number): number {
  return value < 0 ? 2 ** 32 + value : value;
}

function readWord(conf: MutableConf, word: string): boolean {
  const [key = '', value = ''] = word.split(/:(.*)/s);
  const number = leadingInteger(value);
  if (key === 'ndots') conf.ndots = unsigned(number);
  else if (key === 'timeout' || key === 'retrans') {
    if (number !== 0) conf.timeoutMs = (unsigned(number) * 1000) % 2 ** 32;
  } else if (key === 'attempts' || key === 'retry') {
    if (number !== 0) conf.attempts = unsigned(number);
  } else if (key === 'rotate') conf.rotate = true;
  else if (key === 'use-vc' || key === 'usevc') conf.useVc = true;
  else return false;
  return true;
}

function splitDomains(text: string): string[] {
  return text.split(/[ ,]+/).filter((word) => word !== '');
}

/** Removes repeated search domains. */
function dedupe(domains: readonly string[]): string[] {
  return domains.filter(
    (domain, index) =>
      domains.findIndex((other) => other.toLowerCase() === domain.toLowerCase()) === index,
  );
}

/**
 * The services in nsswitch.conf's `hosts:` line. If there are several such lines, the first reader uses the first one
 * and later readers use the last.
 */
function readServices(nsswitch: string | null, { reader }: CaresTraits): string | null {
  let found: string | null = null;
  for (const line of linesOf(nsswitch)) {
    if (reader === 3) {
      const [, rest] = /^\s*hosts\s*:(.*)$/s.exec(line) ?? [];
      if (rest === undefined) continue;
      const words = rest.split(/[ \t]+/).filter((word) => word !== '');
      const dns = ['dns', 'bind', 'resolv', 'resolve'];
      found = lookupLetters(words, dns, ['files', 'file', 'local']) ?? found;
      continue;
    }
    const [, rest] = /^\s*hosts:(.*)$/s.exec(line.replace(/#.*/s, '')) ?? [];
    if (rest === undefined) continue;
    const words = rest.split(/[\s,]+/).filter((word) => word !== '');
    found = firstLetters(words, /^[dr]/) ?? found;
    if (found !== null && reader === 1) return found;
  }
  return found;
}

/** The first letters of at most two words. */
function firstLetters(words: readonly string[], dns: RegExp): string | null {
  const letters = words
    .map((word) => (dns.test(word) ? 'b' : word.startsWith('f') ? 'f' : ''))
    .join('');
  return letters === '' ? null : letters.slice(0, 2);
}

function lookupLetters(
  words: readonly string[],
  dns: readonly string[],
  files: readonly string[],
): string | null {
  let letters = '';
  for (const word of words.map((one) => one.toLowerCase())) {
    const letter = dns.includes(word) ? 'b' : files.includes(word) ? 'f' : '';
    if (!letters.includes(letter)) letters += letter;
  }
  return letters === '' ? null : letters;
}
