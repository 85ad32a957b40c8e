/**
 * resolv.conf, nsswitch.conf and the environment as c-ares reads them. 1.18 knows `ndots:`, `retrans:`, `retry:` and
 * `rotate`, not `timeout:` or `attempts:`; 1.34 knows those too, and drops lines of 512 bytes and more.
 */
import { parseAddress } from '../base/ip.ts';
import type { Settings } from './client.ts';
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

export function readCaresConf(settings: Settings, version: string): CaresConf {
  const old = version === '1.18';
  const conf = newConf();
  conf.timeoutMs = old ? 5000 : 2000;
  conf.attempts = old ? 4 : 3;
  const state: Reading = {
    conf,
    old,
    search: null,
    options: new Map(),
    lookups: null,
    searchFixed: false,
  };
  if (old) readEnvironment(state, settings);
  linesOf(settings.resolvConf).forEach((line, index) => readLine(state, line, index + 1));
  if (!old) readEnvironment(state, settings);
  for (const [key, value] of state.options) applyOption(conf, key, value);
  if (state.search !== null) conf.search = dedupe(state.search);
  else {
    const domain = domainOf(settings.host.hostname);
    if (domain !== null) conf.search = [domain];
  }
  if (conf.servers.length === 0) conf.servers = ['127.0.0.1'];
  return { ...conf, lookups: state.lookups ?? readLookups(settings.nsswitch, old) ?? 'fb' };
}

interface Reading {
  readonly conf: MutableConf;
  readonly old: boolean;
  search: string[] | null;
  readonly options: Map<string, string>;
  lookups: string | null;
  /** The environment has set the search list, and the file may not (1.18). */
  searchFixed: boolean;
}

function readEnvironment(state: Reading, settings: Settings): void {
  const domain = settings.env['LOCALDOMAIN'];
  if (domain !== undefined) {
    const words = splitDomains(domain);
    if (words.length > 0) {
      state.search = state.old ? words : words.slice(0, 1);
      state.searchFixed = true;
    }
  }
  const options = settings.env['RES_OPTIONS'];
  if (options !== undefined) readOptions(state, options, 0);
}

function readLine(state: Reading, raw: string, number: number): void {
  const line = state.old ? raw.replace(/[#;].*$/s, '').trim() : raw.trim();
  if (line === '' || line.startsWith('#') || line.startsWith(';')) return;
  const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  const value = rest.trim();
  if (value === '') return;
  const { conf } = state;
  if (!state.old && byteLength(value) > longestValue) {
    conf.remarks.push({ line: number, text: 'longer than 511 bytes: c-ares drops the whole line' });
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
        state.search = splitDomains(value).slice(0, 1);
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

function readServers(state: Reading, value: string, number: number): void {
  for (const word of value.split(/[\s,]+/).filter((part) => part !== '')) {
    const address = word.replace(/%.*$/, '');
    if (parseAddress(address) === null) {
      state.conf.remarks.push({ line: number, text: `ignored: "${word}" is no IP address` });
    } else if (!state.conf.servers.includes(word) || state.old) state.conf.servers.push(word);
  }
}

function readOptions(state: Reading, text: string, number: number): void {
  for (const word of wordsOf(text)) {
    const [key = '', value = ''] = word.split(/:(.*)/s);
    const known = state.old
      ? ['ndots', 'retrans', 'retry', 'rotate']
      : ['ndots', 'retrans', 'timeout', 'retry', 'attempts', 'rotate', 'use-vc', 'usevc'];
    if (!known.includes(key)) {
      state.conf.remarks.push({
        line: number,
        text: `c-ares ${state.old ? '1.18' : '1.34'} ignores option "${word}"`,
      });
      continue;
    }
    const name = key === 'retrans' ? 'timeout' : key === 'retry' ? 'attempts' : key;
    // 1.18 keeps the first value of an option, 1.34 the last.
    if (!state.old || !state.options.has(name)) state.options.set(name, value);
  }
}

function applyOption(conf: MutableConf, key: string, value: string): void {
  const number = leadingInteger(value);
  if (key === 'ndots') conf.ndots = Math.max(0, number);
  else if (key === 'timeout' && number > 0) conf.timeoutMs = number * 1000;
  else if (key === 'attempts' && number > 0) conf.attempts = number;
  else if (key === 'rotate') conf.rotate = true;
  else if (key === 'use-vc' || key === 'usevc') conf.useVc = true;
}

function splitDomains(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** Equal search domains are asked once. */
function dedupe(domains: readonly string[]): string[] {
  return domains.filter(
    (domain, index) =>
      domains.findIndex((other) => other.toLowerCase() === domain.toLowerCase()) === index,
  );
}

function readLookups(nsswitch: string | null, old: boolean): string | null {
  for (const line of linesOf(nsswitch)) {
    const match = /^\s*hosts:(.*)$/s.exec(line.replace(/#.*$/s, ''));
    if (match === null) continue;
    const words = (match[1] ?? '').split(/[\s,]+/).filter((word) => word !== '');
    if (!old)
      return lookupLetters(words, ['dns', 'bind', 'resolv', 'resolve'], ['files', 'file', 'local']);
    // 1.18 looks at the first letter only.
    const letters = words
      .map((word) => (/^[dr]/.test(word) ? 'b' : word.startsWith('f') ? 'f' : ''))
      .join('');
    return letters === '' ? null : letters.slice(0, 2);
  }
  return null;
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
