/** Matches and renames names by rules. */
import {
  compilePattern,
  PatternError,
  type Pattern,
  type PatternMatch,
} from '../../base/pattern.ts';
import { parseNameOrNull, suffixAt } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import type { NameText } from './name-text.ts';
import { RuleError } from './rule.ts';

export type MatchKind = 'exact' | 'prefix' | 'suffix' | 'substring' | 'regex';
const kinds: readonly string[] = [
  'exact',
  'prefix',
  'suffix',
  'substring',
  'regex',
] satisfies MatchKind[];

export function isMatchKind(word: string): word is MatchKind {
  return kinds.includes(word);
}

/**
 * True if a rule applies to a query. Because it is called for every query, it allocates nothing, except for `regex`,
 * which needs the text.
 */
export type NameMatch = (query: Query, text: NameText) => boolean;

/** @param from normalized (`absoluteText`) or, for `regex`, the compiled expression */
export function nameMatch(kind: Exclude<MatchKind, 'regex'>, from: string): NameMatch {
  if (kind === 'exact') return exactly(from);
  const part = new TextEncoder().encode(from);
  switch (kind) {
    case 'prefix':
      return (query, text) => text.startsWith(query, part);
    case 'suffix':
      return (query, text) => text.endsWith(query, part);
    case 'substring':
      return (query, text) => text.includes(query, part);
  }
}

/** The same for `regex`. */
export function regexMatch(pattern: Pattern): NameMatch {
  return (query) => pattern.test(query.name);
}

function exactly(from: string): NameMatch {
  const wire = parseNameOrNull(from);
  if (wire === null) return () => false;
  const { folded, nameLength, hash } = makeQuery(wire, 1);
  const name = folded.slice(0, nameLength);
  return (query) => query.hash === hash && suffixAt(query.folded, name, query.nameLength) === 0;
}

/** Rewrites a name that matches and is absolute and in lower case. */
export type Renaming = (name: string) => string;

/**
 * Returns the function that does the rewriting for this kind of rule. `from` and `to` are normalized (`absoluteText`).
 */
export function renaming(kind: Exclude<MatchKind, 'regex'>, from: string, to: string): Renaming {
  switch (kind) {
    case 'exact':
      return () => to;
    case 'prefix':
      return (name) => (name.startsWith(from) ? to + name.slice(from.length) : name);
    case 'suffix':
      return (name) => (name.endsWith(from) ? name.slice(0, -from.length) + to : name);
    case 'substring':
      return (name) => name.replaceAll(from, () => to);
  }
}

/**
 * Replaces `{0}` with the whole match, and `{1}` and so on with the groups. Returns null if the name does not match.
 */
export function regexReplacing(pattern: Pattern, to: string): (name: string) => string | null {
  return (name) => {
    const found = pattern.exec(name);
    return found === null ? null : fill(to, found);
  };
}

/** Does the same, but leaves a name that does not match unchanged. */
export function regexRenaming(pattern: Pattern, to: string): Renaming {
  const replacing = regexReplacing(pattern, to);
  return (name) => replacing(name) ?? name;
}

function fill(to: string, { groups }: PatternMatch): string {
  return to.replace(/\{(0|[1-9]\d{0,2})\}/g, (whole, digits: string) =>
    Number(digits) < groups.length ? (groups[Number(digits)] ?? '') : whole,
  );
}

/** Maps a rewritten name back, which applies to `from` itself and all names below it. */
export function remapping(from: string, to: string): Renaming {
  const below = `.${from}`;
  return (name) => {
    const lower = name.toLowerCase();
    if (lower === from) return to;
    return lower.endsWith(below) ? name.slice(0, -from.length) + to : name;
  };
}

/**
 * Parses a pattern, and checks that its replacement refers only to groups that exist. CoreDNS counts the distinct
 * `{n}`, including `{0}`.
 * @throws RuleError
 */
export function readRenaming(from: string, to: string): Pattern {
  const pattern = readPattern(from, 'name');
  const used = new Set(to.match(/\{(?:0|[1-9]\d?|100)\}/g)).size;
  if (used > pattern.groupCount) {
    throw new RuleError(
      `the rewrite regex pattern (${to}) uses more subexpressions than its corresponding matching regex pattern (${from})`,
    );
  }
  return pattern;
}

/** @throws RuleError in CoreDNS's wording, which depends on the rule's field */
export function readPattern(source: string, field: 'name' | 'ttl' | 'rcode' | 'cname'): Pattern {
  try {
    return compilePattern(source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    const { kind, message, hint } = error;
    if (kind === 'length') {
      const where = field === 'name' ? 'too long' : `too long in a ${field} rule`;
      throw new RuleError(message.replace('too long', where), hint);
    }
    if (field === 'cname') {
      throw new RuleError(`invalid cname rewrite regex pattern: ${message}`, hint);
    }
    const what =
      field === 'name'
        ? 'invalid regex matching pattern'
        : `invalid regex pattern in a ${field} rule`;
    throw new RuleError(`${what}: ${source}`, kind === 'size' ? hint : message);
  }
}

/** Converts to lower case with a trailing dot, which is how CoreDNS reads all names here, even parts of names. */
export function absoluteText(text: string): string {
  const lower = text.toLowerCase();
  const backslashes = /(?<!\\)(\\*)\.$/.exec(lower)?.[1];
  return backslashes !== undefined && backslashes.length % 2 === 0 ? lower : `${lower}.`;
}

export function isName(text: string): boolean {
  return parseNameOrNull(text) !== null;
}
