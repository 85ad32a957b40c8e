/** Rules in the words of iptables, and as `iptables-save` prints them. */
import { parseAddress, printAddress } from '../base/ip.ts';
import type { PacketRule } from './packet-rules.ts';

/**
 * Signs of life that a lease takes, and within how many seconds. iptables knows whole seconds only.
 * But signs come every 150 ms. So two are within the last second until the last one is 0.85 s old.
 */
const LEASE = { SECONDS: 1, SIGNS: 2 };

/** A line of `iptables-save`. */
export interface SavedRule {
  readonly chain: string;
  readonly meaning: string;
}

/**
 * The rule in the words that NodeLocal DNSCache uses.
 * @param list of the module `recent` that holds the leases
 */
export function ruleWords(rule: PacketRule, list: string): readonly string[] {
  const { protocol, from, notFrom, to, fromPort, toPort, action, comment } = rule;
  const recent = ['-m', 'recent', '--name', list];
  return [
    ...['-p', protocol],
    ...(notFrom === undefined ? [] : ['!', '-s', notFrom]),
    ...(from === undefined ? [] : ['-s', from]),
    ...(to === undefined ? [] : ['-d', to]),
    ...(fromPort === undefined ? [] : ['--sport', String(fromPort)]),
    ...(toPort === undefined ? [] : ['--dport', String(toPort)]),
    ...(action === 'renew' ? [...recent, '--set', '--rsource'] : []),
    ...(action === 'lapse'
      ? [
          ...[...recent, '!', '--rcheck', '--seconds', String(LEASE.SECONDS)],
          ...['--hitcount', String(LEASE.SIGNS), '--rdest'],
        ]
      : []),
    ...(action === 'renew' ? [] : ['-j', action === 'notrack' ? 'NOTRACK' : 'ACCEPT']),
    ...['-m', 'comment', '--comment', comment],
  ];
}

/** The rules in what `iptables-save` prints. */
export function readSaved(text: string): readonly SavedRule[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('-A ')) return [];
    const [, chain = '', ...words] = wordsOf(line);
    return [{ chain, meaning: meaningOf(words) }];
  });
}

/** True if a saved rule is the one that these words make. */
export function sameAs(saved: SavedRule, words: readonly string[]): boolean {
  return saved.meaning === meaningOf(words);
}

function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, inner, plain]) => inner ?? plain!);
}

/** Options that say nothing, with the word after them. */
const silent: ReadonlySet<string> = new Set(['-m', '--mask']);

/** The words in a canonical order and spelling, so that equal rules have equal texts. */
function meaningOf(words: readonly string[]): string {
  const found: string[] = [];
  let negated = '';
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (silent.has(word)) at++;
    else if (word === '!') negated = '! ';
    else if (word !== '--notrack') {
      const next = words[at + 1] ?? '-';
      const takes = next !== '!' && !next.startsWith('-');
      found.push(`${negated}${word}${takes ? ` ${valueOf(word, next)}` : ''}`);
      negated = '';
      if (takes) at++;
    }
  }
  return found.toSorted().join(' ');
}

function valueOf(option: string, value: string): string {
  // Newer versions print what NOTRACK has become: CT --notrack.
  if (option === '-j' && value === 'CT') return 'NOTRACK';
  if (option !== '-s' && option !== '-d') return value;
  const bytes = parseAddress(value.replace(/\/(?:32|128)$/, ''));
  return bytes === null ? value : printAddress(bytes);
}
