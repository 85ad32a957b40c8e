/** Rules for names. */
import {
  absoluteText,
  isMatchKind,
  nameMatch,
  readPattern,
  readRenaming,
  regexMatch,
  regexRenaming,
  remapping,
  renaming,
  type MatchKind,
  type NameMatch,
  type Renaming,
} from './matching.ts';
import { RuleError, type ReplyRule, type RewriteRule } from './rule.ts';

/** Names that are also valid expressions, as most of them are, so that they need not be compiled. */
const plainName = /^[\w.-]*$/;

/**
 * Parses `name [KIND] FROM TO [answer …]`. `exact` always maps the reply back, while for other kinds this depends on
 * `answer`.
 * @throws RuleError
 */
export function nameRule(continues: boolean, words: readonly string[]): RewriteRule {
  if (words.length < 2) throw new RuleError('too few arguments for a name rule');
  const kind = words.length === 2 ? 'exact' : words[0]!.toLowerCase();
  const [from, to] = words.length === 2 ? [words[0]!, words[1]!] : [words[1]!, words[2]!];
  if (!isMatchKind(kind)) {
    throw new RuleError(
      `name rule supports only exact, prefix, suffix, substring, and regex name matching, received: ${kind}`,
    );
  }
  const answers = words.length > 3 ? answerRules(kind, words.slice(3)) : { auto: false, rules: [] };
  const { fits, rename } = questionRule(kind, from, to);
  const rules = [
    ...(kind === 'suffix' && answers.auto ? swappedBack(from, to) : []),
    ...answers.rules,
  ];
  const remaps = kind === 'exact' || (answers.auto && kind !== 'suffix');
  return {
    continues,
    fits,
    apply(turn) {
      const before = turn.query.name;
      const after = rename(before);
      turn.rename(after);
      if (remaps) turn.addReplyRules(both(remapping(after, before)));
      turn.addReplyRules(rules);
      return true;
    },
  };
}

interface QuestionRule {
  readonly fits: NameMatch;
  readonly rename: Renaming;
}

function questionRule(kind: MatchKind, from: string, to: string): QuestionRule {
  if (kind === 'regex') {
    const pattern = readRenaming(from, to);
    return { fits: regexMatch(pattern), rename: regexRenaming(pattern, absoluteText(to)) };
  }
  const [left, right] = [absoluteText(from), absoluteText(to)];
  // CoreDNS parses the name as an expression, which shows that `regex` is missing.
  if (kind === 'exact' && !plainName.test(right)) readPattern(right, 'name');
  return { fits: nameMatch(kind, left), rename: renaming(kind, left, right) };
}

function both(map: Renaming): ReplyRule[] {
  return [
    { kind: 'owner', map },
    { kind: 'value', map },
  ];
}

/** Changes the suffix back wherever it occurs, not just in the queried name. */
function swappedBack(from: string, to: string): ReplyRule[] {
  const [left, right] = [absoluteText(to), absoluteText(from)];
  return both((name) =>
    name.toLowerCase().endsWith(left) ? name.slice(0, -left.length) + right : name,
  );
}

/**
 * Parses `answer auto`, `answer name FROM TO` and `answer value FROM TO`. The word `answer` is required only for the
 * first of them.
 */
function answerRules(
  kind: string,
  words: readonly string[],
): { readonly auto: boolean; readonly rules: readonly ReplyRule[] } {
  const rules: ReplyRule[] = [];
  let auto = false;
  if (words.length < 2) throw new RuleError(`invalid arguments for ${kind} rule`);
  if (words[0] !== 'answer') {
    throw new RuleError(
      `exceeded the number of arguments for a non-answer rule argument for ${kind} rule`,
    );
  }
  for (let at = 0; at < words.length;) {
    if (words[at] === 'answer') at++;
    const what = words[at++];
    if (what === undefined) throw new RuleError(`type missing for answer rule for ${kind} rule`);
    if (what === 'auto') {
      auto = true;
      continue;
    }
    if (what !== 'name' && what !== 'value') {
      throw new RuleError(`invalid type ${JSON.stringify(what)} for answer rule for ${kind} rule`);
    }
    const [from, to] = [words[at++], words[at++]];
    if (from === undefined || to === undefined) {
      throw new RuleError(`${what} answer rule for ${kind} rule: 2 arguments required`);
    }
    rules.push(answerRule(kind, what, from, to));
  }
  if (auto && rules.some((rule) => rule.kind === 'owner')) {
    throw new RuleError('auto name answer rule cannot be combined with explicit name anwer rules');
  }
  return { auto, rules };
}

function answerRule(kind: string, what: 'name' | 'value', from: string, to: string): ReplyRule {
  try {
    const map = regexRenaming(readRenaming(from, to), absoluteText(to));
    return { kind: what === 'name' ? 'owner' : 'value', map };
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new RuleError(`${what} answer rule for ${kind} rule: ${error.message}`, error.hint);
  }
}
