/** `rewrite`: the directive, and how its rules are applied. */
import { andThen, isLater, type Maybe } from '../../base/maybe.ts';
import { position } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { lines } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { personalAnswers } from '../../engine/contract/ports.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { failure, silence, type Reply } from '../../wire/reply.ts';
import { ChangedQuery } from './changed-query.ts';
import { withReplyOptions } from './edit-options.ts';
import { editReply, lookupFor } from './edit-reply.ts';
import { absoluteText, isName } from './matching.ts';
import { NameText } from './name-text.ts';
import { readRule } from './read-rule.ts';
import { RuleError, type RewriteRule } from './rule.ts';

interface RewriteUse {
  readonly words: readonly Token[];
  readonly block: readonly (readonly Token[])[];
}

const syntax = directive({
  name: 'rewrite',
  summary: 'rewrites queries and replies',
  repeat: 'gather',
  args: {
    words: position(
      '[continue|stop] FIELD …',
      'one rule; with `continue`, later rules are tried too (default: stop)',
      (line) => line.takeAll(),
    ),
  },
  properties: {
    block: lines('*', 'FIELD …|answer …', (name, words) => [name, ...words], {
      help: 'one rule on several lines, if the directive line contains only `continue` or `stop`',
    }),
  },
  check: (uses) =>
    uses.flatMap((use) => {
      try {
        if (use.words.length > 1 && use.block.length > 0) {
          throw new RuleError(
            'the rule must be either on the line or inside the braces',
            'CoreDNS reads the braces as another directive.',
          );
        }
        readRule(wordsOf(use));
        return [];
      } catch (error) {
        if (!(error instanceof RuleError)) throw error;
        return [
          pluginRemark('rewrite', use.at, error.message, {
            code: 'rewrite-rule',
            hint: error.hint,
          }),
        ];
      }
    }),
  warn: (uses) =>
    uses.flatMap((use) => {
      const text = suspicion(wordsOf(use));
      return text === null
        ? []
        : [pluginRemark('rewrite', use.at, text.what, { code: 'rewrite-rule', hint: text.why })];
    }),
});

function wordsOf({ words, block }: RewriteUse): string[] {
  const all = words.length < 2 ? [...words, ...block.flat()] : words;
  return all.map(({ text }) => text);
}

/** Warns about rules that CoreDNS accepts but that are probably mistakes. */
function suspicion(
  words: readonly string[],
): { readonly what: string; readonly why: string } | null {
  const rule = /^(?:continue|stop)$/i.test(words[0] ?? '') ? words.slice(1) : words;
  const [field = '', kind = '', from = ''] = rule;
  if (field.toLowerCase() === 'cname') return null;
  if (kind.toLowerCase() === 'prefix' && !from.endsWith('.')) {
    return {
      what: `prefix ${from} is read as ${absoluteText(from)}`,
      why: 'It matches only names that begin with exactly these labels. To match the beginning of a label, write a regex.',
    };
  }
  const exact = kind.toLowerCase() === 'exact' ? from : rule.length === 3 ? kind : null;
  if (field.toLowerCase() === 'name' && exact !== null && !isName(exact)) {
    return {
      what: `${exact} is not a name, so the rule never matches`,
      why: 'Did you mean regex or suffix?',
    };
  }
  return null;
}

/** Applies the rules to every query. If no rule matches, the query continues unchanged. */
export const rewrite: Plugin = definePlugin({
  syntax,
  setup(uses, context, next) {
    const rules: readonly RewriteRule[] = uses.map((use) => readRule(wordsOf(use)));
    const codes = new Set(rules.flatMap(({ optionCode }) => optionCode ?? []));
    const text = new NameText();
    if (rules.some(({ personal = false }) => personal)) context.offer(personalAnswers, () => true);

    const finish = (
      reply: Reply,
      query: Query,
      asked: Query,
      changes: ChangedQuery,
    ): Maybe<Reply> => {
      if (reply === silence) return reply;
      const { writer } = context;
      const lookup = lookupFor(asked, context.ask);
      const edited = editReply(reply, changes.replyRules, { query, asked, writer, lookup });
      if (!query.edns || (codes.size === 0 && !changes.optionsChanged)) return edited;
      const answer = (later: Reply): Reply =>
        withReplyOptions(later, asked, changes.replyRules, codes);
      return andThen(edited, answer);
    };

    const carryOut = (query: Query, first: number): Maybe<Reply> => {
      const changes = new ChangedQuery(query, text);
      for (let at = first; at < rules.length; at++) {
        const rule = rules[at]!;
        if ((at > first && !rule.fits(changes.query, text)) || !rule.apply(changes)) continue;
        if (changes.failed !== null) return failure(RCODE.SERVFAIL, 'rewrite', changes.failed);
        if (!rule.continues) break;
      }
      const asked = changes.finished();
      const reply = next(asked);
      // Replies repeat the client's RD, which `header` may have changed in the query that it saw.
      query.flags = (query.flags & ~FLAG.RD) | (asked.flags & FLAG.RD);
      if (!isLater(reply)) return finish(reply, query, asked, changes);
      const kept = query.keep();
      // If only the reply is changed, the query is the client's own and will be reused by the listener.
      const keptAsked = asked === query ? kept : asked;
      return andThen(reply, (later) => finish(later, kept, keptAsked, changes));
    };

    return (query) => {
      text.forget();
      for (let at = 0; at < rules.length; at++)
        if (rules[at]!.fits(query, text)) return carryOut(query, at);
      return codes.size > 0 && query.optionsEnd > query.optionsStart
        ? carryOut(query, rules.length)
        : next(query);
    };
  },
});
