/** Rules that change only the reply: its TTLs, result code or CNAME targets. */
import { rcodeNumber } from '../../wire/iana.ts';
import {
  absoluteText,
  isMatchKind,
  nameMatch,
  readPattern,
  regexMatch,
  regexReplacing,
  renaming,
  type MatchKind,
  type NameMatch,
} from './matching.ts';
import { RuleError, type ReplyRule, type RewriteRule } from './rule.ts';

/**
 * Parses `ttl [KIND] NAME N|MIN-MAX|-MAX|MIN-`, which limits the TTLs of all records.
 * @throws RuleError
 */
export function ttlRule(continues: boolean, words: readonly string[]): RewriteRule {
  if (words.length < 2) throw new RuleError(`too few (${words.length}) arguments for a ttl rule`);
  if (words.length > 3) throw new RuleError('many few arguments for a ttl rule');
  const text = words.at(-1)!;
  const range = ttlRange(text);
  if (range === null) throw new RuleError(`invalid TTL '${text}' for a ttl rule`);
  return onReply(continues, 'ttl', words.slice(0, -1), { kind: 'ttl', ...range });
}

/** A TTL is a positive number of 31 bits (RFC 2181, section 8). */
const TTL_MAX = 0x7fff_ffff;

function ttlRange(text: string): { readonly least: number; readonly most: number } | null {
  const parts = /^(\d{0,10})(?:(-)(\d{0,10}))?$/.exec(text);
  if (parts === null) return null;
  const [, left = '', dash = '', right = ''] = parts;
  if (left === '' && right === '') return null;
  const least = left === '' ? 0 : Number(left);
  const most = dash === '' ? least : right === '' ? TTL_MAX : Number(right);
  return least > most || most > 0xffff_ffff ? null : { least, most };
}

/**
 * Parses `rcode [KIND] NAME FROM TO`, with codes given by name or number.
 * @throws RuleError
 */
export function rcodeRule(continues: boolean, words: readonly string[]): RewriteRule {
  if (words.length < 3) throw new RuleError(`too few (${words.length}) arguments for a rcode rule`);
  if (words.length > 4) throw new RuleError('many few arguments for a rcode rule');
  const [old, fresh] = words.slice(-2) as [string, string];
  const from = rcodeOf(old);
  if (from === null) throw new RuleError(`invalid matching RCODE '${old}' for a rcode rule`);
  const to = rcodeOf(fresh);
  if (to === null) throw new RuleError(`invalid replacement RCODE '${fresh}' for a rcode rule`);
  return onReply(continues, 'rcode', words.slice(0, -2), { kind: 'rcode', from, to });
}

/** The largest code with a name. */
const RCODE_MAX = 23;

function rcodeOf(text: string): number | null {
  const name = text.toUpperCase();
  const rcode = name === 'BADSIG' ? 16 : name.startsWith('RCODE') ? null : rcodeNumber(name);
  return rcode !== null && rcode <= RCODE_MAX ? rcode : null;
}

/** Creates a rule that leaves the query unchanged. `where` is `[KIND] NAME`. */
function onReply(
  continues: boolean,
  field: 'ttl' | 'rcode',
  where: readonly string[],
  rule: ReplyRule,
): RewriteRule {
  const rules = [rule];
  return {
    continues,
    fits:
      where.length === 1
        ? nameMatch('exact', absoluteText(where[0]!))
        : matchOf(field, where[0]!, where[1]!),
    apply(turn) {
      turn.addReplyRules(rules);
      return true;
    },
  };
}

function matchOf(field: 'ttl' | 'rcode', word: string, name: string): NameMatch {
  const kind = word.toLowerCase();
  if (!isMatchKind(kind)) {
    throw new RuleError(
      `${field} rule supports only exact, prefix, suffix, substring, and regex name matching`,
    );
  }
  if (kind !== 'regex') return nameMatch(kind, absoluteText(name));
  return regexMatch(readPattern(name, field));
}

/**
 * Parses `cname [KIND] FROM TO`, which replaces a CNAME's target and looks up the new one.
 * @throws RuleError
 */
export function cnameRule(continues: boolean, words: readonly string[]): RewriteRule {
  if (words.length !== 2 && words.length !== 3) {
    throw new RuleError(`too few (${words.length}) arguments for a cname rule`);
  }
  const kind = words.length === 2 ? 'exact' : words[0]!.toLowerCase();
  if (!isMatchKind(kind)) throw new RuleError(`unknown cname rewrite type: ${kind}`);
  const [from, to] = words.slice(-2).map((word) => word.toLowerCase()) as [string, string];
  const rules: readonly ReplyRule[] = [{ kind: 'target', map: targetMap(kind, from, to) }];
  return {
    continues,
    fits: () => from !== '' && to !== '',
    apply(turn) {
      turn.addReplyRules(rules);
      return true;
    },
  };
}

/** Here only `exact` completes names with a dot. */
function targetMap(kind: MatchKind, from: string, to: string): (name: string) => string | null {
  if (kind === 'regex') return regexReplacing(readPattern(from, 'cname'), to);
  if (kind === 'exact') {
    const [left, right] = [absoluteText(from), absoluteText(to)];
    return (name) => (name === left ? right : null);
  }
  const rename = renaming(kind, from, to);
  const fits = { prefix: 'startsWith', suffix: 'endsWith', substring: 'includes' } as const;
  return (name) => (name[fits[kind]](from) ? rename(name) : null);
}
