/** Rules as arguments to iptables, and as printed by `iptables-save`. */
import { parseAddress, printAddress } from '../base/ip.ts';
import type { PacketRule } from './packet-rules.ts';

/**
 * Number of heartbeats required for a lease, and the period in seconds. iptables supports only whole seconds, but
 * heartbeats come every 150 ms. There are therefore two within the last second until the latest one is 0.85 s old.
 */
const LEASE = { SECONDS: 1, SIGNS: 2 };

/** One line of `iptables-save`. */
export interface SavedRule {
  readonly chain: string;
  readonly meaning: string;
}

/**
 * Returns the rule as arguments, in the form that NodeLocal DNSCache uses.
 * @param list the `recent` module's list that contains the leases
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

/** Parses the rules in the output of `iptables-save`. */
export function readSaved(text: string): readonly SavedRule[] {
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('-A ')) return [];
    const [, chain = '', ...words] = wordsOf(line);
    return [{ chain, meaning: meaningOf(words) }];
  });
}

/** Returns true if a saved rule is equivalent to these arguments. */
export function sameAs(saved: SavedRule, words: readonly string[]): boolean {
  return saved.meaning === meaningOf(words);
}

function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, inner, plain]) => inner ?? plain!);
}

/** Options that do not affect the meaning, together with the argument that follows. */
const silent: ReadonlySet<string> = new Set(['-m', '--mask']);

/** Returns the arguments in a canonical order and spelling, so that equal rules have equal texts. */
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
  // Newer versions print NOTRACK as CT --notrack.
  if (option === '-j' && value === 'CT') return 'NOTRACK';
  if (option !== '-s' && option !== '-d') return value;
  const bytes = parseAddress(value.replace(/\/(?:32|128)$/, ''));
  return bytes === null ? value : printAddress(bytes);
}
