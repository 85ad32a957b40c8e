/** Parses the words in a line into a rule. */
import { CLASS, classNumber, typeNumber } from '../../wire/iana.ts';
import { ednsRule } from './edns-rule.ts';
import { nameRule } from './name-rule.ts';
import { cnameRule, rcodeRule, ttlRule } from './reply-rules.ts';
import { RuleError, type RewriteRule } from './rule.ts';

/**
 * Parses one `rewrite` from all of its words, including those inside braces.
 * @throws RuleError
 */
export function readRule(words: readonly string[]): RewriteRule {
  if (words.length === 0) throw new RuleError('no rule type specified for rewrite');
  const first = words[0]!.toLowerCase();
  const explicit = first === 'continue' || first === 'stop';
  if (explicit && words.length < 2)
    throw new RuleError(`${first} rule must begin with a rule type`);
  const continues = first === 'continue';
  const field = explicit ? words[1]!.toLowerCase() : first;
  const rest = words.slice(explicit ? 2 : 1);
  switch (field) {
    case 'name':
      return nameRule(continues, rest);
    case 'type':
      return typeRule(continues, rest);
    case 'class':
      return classRule(continues, rest);
    case 'ttl':
      return ttlRule(continues, rest);
    case 'rcode':
      return rcodeRule(continues, rest);
    case 'cname':
      return cnameRule(continues, rest);
    case 'edns0':
      return ednsRule(continues, rest);
    case 'answer':
      throw new RuleError('response rewrites must begin with a name rule');
    default:
      throw new RuleError(
        `invalid rule type ${JSON.stringify(words[explicit ? 1 : 0])}`,
        'The fields are name, type, class, ttl, rcode, cname and edns0.',
      );
  }
}

function typeRule(continues: boolean, words: readonly string[]): RewriteRule {
  const [from, to] = fromTo('type', words, typeNumber);
  return {
    continues,
    fits: (query) => query.type === from,
    apply(turn) {
      turn.retype(to, turn.query.class);
      return true;
    },
  };
}

function classRule(continues: boolean, words: readonly string[]): RewriteRule {
  const [from, to] = fromTo('class', words, (word) =>
    word.toUpperCase() === 'CHAOS' ? CLASS.CH : classNumber(word),
  );
  return {
    continues,
    fits: (query) => query.class === from,
    apply(turn) {
      turn.retype(turn.query.type, to);
      return true;
    },
  };
}

function fromTo(
  field: string,
  words: readonly string[],
  read: (word: string) => number | null,
): [number, number] {
  if (words.length !== 2) throw new RuleError(`${field} rules must have exactly two arguments`);
  const [from, to] = words.map((word) => {
    const number = read(word);
    if (number === null)
      throw new RuleError(`invalid ${field} ${JSON.stringify(word.toUpperCase())}`);
    return number;
  });
  return [from!, to!];
}
