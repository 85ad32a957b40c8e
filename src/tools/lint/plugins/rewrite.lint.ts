/** Rules about `rewrite`. */
import type { Directive, Token } from '../../../server/corefile/corefile-tree.ts';
import { blockRule, type LintRule } from '../lint-rule.ts';
import { TYPE, typeName, typeNumber } from '../../../server/wire/iana.ts';

/**
 * The words of one rule, found on the directive's line or on the first line in its braces, and the words about answers.
 */
function wordsOf({ args, block }: Directive): {
  readonly words: readonly Token[];
  readonly answers: boolean;
} {
  const lines = (block ?? []).map(({ name, args: more }) => [name, ...more]);
  const isMode = (token: Token | undefined): boolean =>
    token?.text === 'stop' || token?.text === 'continue';
  const own = args.filter((token, at) => !(at === 0 && isMode(token)));
  const main = own.length > 0 ? own : (lines.find(([name]) => name?.text !== 'answer') ?? []);
  const answers =
    own.some(({ text }) => text === 'answer') ||
    lines.some((line) => line.some(({ text }) => text === 'answer'));
  return { words: isMode(main[0]) ? main.slice(1) : main, answers };
}

const guesses: ReadonlySet<string> = new Set(['prefix', 'suffix', 'substring', 'regex']);

const unmatchedNames: LintRule = blockRule({
  code: 'CF08',
  severity: 'warning',
  summary: 'rewrite rules whose answers keep the rewritten name',
  find(block, tell) {
    for (const directive of block.directives('rewrite')) {
      const { words, answers } = wordsOf(directive);
      const [field, kind, from, to] = words;
      if (field?.text !== 'name' || kind === undefined || to === undefined) continue;
      if (!guesses.has(kind.text.toLowerCase()) || answers) continue;
      tell({
        at: kind,
        text: `answers to '${from!.text}' contain the rewritten name`,
        hint: 'The question is restored, but the records are not. Strict resolvers drop records for a name that they did not query.',
        remedy: 'Add: answer auto (not needed for exact names).',
        fix:
          directive.block === null
            ? { kind: 'append', token: words.at(-1)!, text: 'answer auto' }
            : null,
      });
    }
  },
});

const changedTypes: LintRule = blockRule({
  code: 'CF60',
  severity: 'error',
  summary: 'a rewrite of the query type, which returns records that the client did not query',
  find(block, tell) {
    for (const directive of block.directives('rewrite')) {
      const [field, from, to] = wordsOf(directive).words;
      if (field?.text.toLowerCase() !== 'type' || from === undefined || to === undefined) continue;
      const asked = typeNumber(from.text);
      const got = typeNumber(to.text);
      // ANY may be answered with any type, and a CNAME is an answer for all types.
      if (asked === null || got === null || asked === got) continue;
      if (asked === TYPE.ANY || got === TYPE.CNAME) continue;
      const [type, other] = [typeName(asked), typeName(got)];
      const address = asked === TYPE.AAAA || asked === TYPE.A;
      tell({
        at: directive.at,
        text: `queries for ${type} are answered with ${other} records`,
        hint: `The question is restored to ${type}, but the records are not. Clients ignore them, report a malformed reply, or retry.`,
        remedy: address
          ? `Remove the line. To answer ${type} queries with no data: template IN ${type} ZONE with rcode NOERROR and a SOA record (CF07).`
          : 'Remove the line.',
      });
    }
  },
});

export const rewriteRules: readonly LintRule[] = [unmatchedNames, changedTypes];
