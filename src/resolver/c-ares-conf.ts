/**
 * resolv.conf, nsswitch.conf and the environment as c-ares reads them. 1.18 knows `ndots:`, `retrans:` (milliseconds),
 * `retry:` and `rotate`, not `timeout:` or `attempts:`; 1.34 knows those too, and drops lines of 512 bytes and more.
 */
import { parseAddress } from '../base/ip.ts';
import type { Settings } from './client.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import { isLinkLocal } from './glibc-conf.ts';
import { withoutZone } from './myhostname.ts';
import {
  domainOf,
  leadingInteger,
  linesOf,
  newConf,
  wordsOf,
  type MutableConf,
  type ResolvConf,
} from './resolv-conf.ts';
import { byteLength } from './search-list.ts';

export interface CaresConf extends ResolvConf {
  /** `f` = hosts file, `b` = DNS, in order. */
  readonly lookups: string;
}

/** 1.34 reads the value of a line into 512 bytes. */
const longestValue = 511;

export function readCaresConf(settings: Settings, traits: CaresTraits): CaresConf {
  const old = !traits.newReader;
  const state = newReading(traits);
  if (old) readEnvironment(state, settings);
  linesOf(settings.resolvConf).forEach((line, index) => readLine(state, line, index + 1));
  const lookups = readLookups(settings.nsswitch, old);
  if (!old && !readEnvironment(state, settings)) {
    // 1.34 drops all that it has read, the file included.
    const empty = newReading(traits);
    empty.conf.remarks.push({
      line: 0,
      text: 'LOCALDOMAIN or RES_OPTIONS cannot be read: c-ares falls back to 127.0.0.1 and no search list',
    });
    return finish(empty, settings, null);
  }
  return finish(state, settings, lookups);
}

function finish(state: Reading, settings: Settings, fromNsswitch: string | null): CaresConf {
  const { conf, old } = state;
  if (state.search !== null) conf.search = dedupe(state.search);
  else {
    const domain = domainOf(settings.host.hostname);
    if (domain !== null) conf.search = [domain];
  }
  if (conf.servers.length === 0) conf.servers = ['127.0.0.1'];
  // In 1.18 a `lookup` line of resolv.conf keeps nsswitch.conf out, in 1.34 nsswitch.conf wins.
  const lookups = old ? (state.lookups ?? fromNsswitch) : (fromNsswitch ?? state.lookups);
  return { ...conf, lookups: lookups ?? 'fb' };
}

interface Reading {
  readonly conf: MutableConf;
  readonly old: boolean;
  search: string[] | null;
  /** Options that 1.18 has set already: the first value counts. */
  readonly known: Set<string>;
  lookups: string | null;
  /** The environment has set the search list, and the file may not (1.18). */
  searchFixed: boolean;
}

function newReading(traits: CaresTraits): Reading {
  const conf = newConf();
  const old = !traits.newReader;
  conf.timeoutMs = traits.timeoutMs;
  conf.attempts = traits.attempts;
  return { conf, old, search: null, known: new Set(), lookups: null, searchFixed: false };
}

/** False: 1.34 cannot make sense of a variable. */
function readEnvironment(state: Reading, settings: Settings): boolean {
  const domain = settings.env['LOCALDOMAIN'];
  if (domain !== undefined) {
    const words = splitDomains(domain);
    if (!state.old && (words.length === 0 || !isPrintable(domain))) return false;
    if (words.length > 0) {
      state.search = state.old ? words : words.slice(0, 1);
      state.searchFixed = true;
    }
  }
  const options = settings.env['RES_OPTIONS'];
  if (options !== undefined) {
    if (!state.old && options === '') return false;
    readOptions(state, options, 0);
  }
  return true;
}

function readLine(state: Reading, raw: string, number: number): void {
  const line = state.old ? raw.replace(/[#;].*/s, '').trim() : raw.trim();
  if (line === '' || line.startsWith('#') || line.startsWith(';')) return;
  const [, keyword = '', rest = ''] = /^(\S+)(\s.*)?$/s.exec(line) ?? [];
  const value = rest.trim();
  if (value === '') return;
  const { conf } = state;
  if (!state.old && byteLength(value) > longestValue) {
    conf.remarks.push({ line: number, text: 'longer than 511 bytes: c-ares drops the whole line' });
    return;
  }
  if (!state.old && !isPrintable(value)) {
    conf.remarks.push({
      line: number,
      text: 'a tab between values, or a letter beyond ASCII: c-ares drops the whole line',
    });
    return;
  }
  switch (keyword) {
    case 'nameserver':
      return readServers(state, value, number);
    case 'search':
      if (fromFile(state)) state.search = splitDomains(value);
      return;
    case 'domain':
      // 1.34 takes `domain` only where no `search` came before.
      if (state.old ? fromFile(state) : state.search === null)
        state.search = splitDomains(wordsOf(value)[0] ?? '').slice(0, 1);
      return;
    case 'options':
      return readOptions(state, value, number);
    case 'lookup':
      state.lookups ??= lookupLetters(
        wordsOf(value),
        ['bind', 'dns', 'resolve'],
        ['file', 'files'],
      );
      return;
    case 'sortlist':
      return;
    default:
      conf.remarks.push({ line: number, text: `c-ares does not know "${keyword}"` });
  }
}

/** In 1.18 LOCALDOMAIN, read first, keeps the file's search list out. */
function fromFile(state: Reading): boolean {
  return !state.searchFixed;
}

function isPrintable(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

function readServers(state: Reading, value: string, number: number): void {
  for (const word of value.split(/[\s,]+/).filter((part) => part !== '')) {
    const plain = word.replace(/^\[(.*)\](:53)?$/, '$1').replace(/^([\d.]+):53$/, '$1');
    const address = state.old ? word : isLinkLocal(plain) ? plain : withoutZone(plain);
    if (parseAddress(state.old ? address : withoutZone(address)) === null) {
      state.conf.remarks.push({ line: number, text: `ignored: "${word}" is no IP address` });
    } else if (!state.conf.servers.includes(address) || state.old) {
      state.conf.servers.push(address);
    }
  }
}

function readOptions(state: Reading, text: string, number: number): void {
  for (const match of text.matchAll(/\S+/g)) {
    const [word] = match;
    const known = state.old
      ? readOldOption(state, text.slice(match.index), word)
      : readNewOption(state.conf, word);
    if (!known) {
      state.conf.remarks.push({
        line: number,
        text: `c-ares ignores option "${word}"`,
      });
    }
  }
}

/** The number is read from the text, not from the word, so that `ndots: 3` works; -1 means: as if not set. */
function readOldOption(state: Reading, text: string, word: string): boolean {
  const key = ['ndots:', 'retrans:', 'retry:', 'rotate'].find((name) => word.startsWith(name));
  if (key === undefined) return false;
  if (state.known.has(key)) return true;
  const value = leadingInteger(text.slice(key.length));
  if ((key === 'retrans:' || key === 'retry:') && value === -1) return true;
  state.known.add(key);
  // Compared without sign: a negative number is very large.
  if (key === 'ndots:') state.conf.ndots = value < 0 ? 2 ** 32 + value : value;
  else if (key === 'retrans:') state.conf.timeoutMs = Math.max(0, value);
  else if (key === 'retry:') state.conf.attempts = value;
  else state.conf.rotate = true;
  return true;
}

function readNewOption(conf: MutableConf, word: string): boolean {
  const [key = '', value = ''] = word.split(/:(.*)/s);
  const number = leadingInteger(value);
  // Numbers are unsigned: a negative one is very large.
  const wrapped = number < 0 ? 2 ** 32 + number : number;
  if (key === 'ndots') conf.ndots = wrapped;
  else if (key === 'timeout' || key === 'retrans') {
    if (number !== 0) conf.timeoutMs = (wrapped * 1000) % 2 ** 32;
  } else if (key === 'attempts' || key === 'retry') {
    if (number !== 0) conf.attempts = wrapped;
  } else if (key === 'rotate') conf.rotate = true;
  else if (key === 'use-vc' || key === 'usevc') conf.useVc = true;
  else return false;
  return true;
}

function splitDomains(text: string): string[] {
  return text.split(/[ ,]+/).filter((word) => word !== '');
}

/** Equal search domains are asked once. */
function dedupe(domains: readonly string[]): string[] {
  return domains.filter(
    (domain, index) =>
      domains.findIndex((other) => other.toLowerCase() === domain.toLowerCase()) === index,
  );
}

function readLookups(nsswitch: string | null, old: boolean): string | null {
  let found: string | null = null;
  for (const line of linesOf(nsswitch)) {
    const match = old
      ? /^\s*hosts:(.*)$/s.exec(line.replace(/#.*/s, ''))
      : /^\s*hosts\s*:(.*)$/s.exec(line);
    if (match === null) continue;
    const words = (match[1] ?? '').split(old ? /[\s,]+/ : /[ \t]+/).filter((word) => word !== '');
    if (!old) {
      // The last line counts.
      found =
        lookupLetters(words, ['dns', 'bind', 'resolv', 'resolve'], ['files', 'file', 'local']) ??
        found;
      continue;
    }
    // 1.18 takes the first line, and of each word the first letter.
    const letters = words
      .map((word) => (/^[dr]/.test(word) ? 'b' : word.startsWith('f') ? 'f' : ''))
      .join('');
    if (letters !== '') return letters.slice(0, 2);
  }
  return found;
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
