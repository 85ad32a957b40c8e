/** `view`: selects which queries a server block serves. */
import { required } from '../../corefile/positions.ts';
import { lines, type Refuse } from '../../corefile/properties.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { metadataCollector, metadataProviders } from '../../engine/contract/ports.ts';
import type { Query } from '../../transport/query.ts';
import { compileExpression } from './expression.ts';
import type { CompiledPart } from './expression-values.ts';
import { ExpressionError } from './expression-words.ts';

interface Condition {
  readonly text: string;
  readonly part: CompiledPart;
  readonly token: Token;
}

function readCondition(first: Token, words: readonly Token[], refuse: Refuse): Condition {
  const text = words.map((token) => token.text).join(' ');
  try {
    return { text, part: compileExpression(text), token: first };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return refuse(error.message, words[0]?.place ?? first.place, readAs(text, words));
  }
}

/** Double quotes belong to the Corefile syntax, so they are removed before the expression is parsed. */
function readAs(text: string, words: readonly Token[]): { hint: string; remedy?: string } {
  if (words.length < 2 || !words.some(({ quoted }) => quoted))
    return { hint: `The expression reads: ${text}` };
  const single = words.map(({ text: word, quoted }) => (quoted ? `'${word}'` : word)).join(' ');
  return {
    hint: `The Corefile parser removes double quotes, so the expression reads: ${text}`,
    remedy: `Use single quotes for its strings: ${single}`,
  };
}

const syntax = directive({
  name: 'view',
  summary: 'restricts a server block to queries that match an expression',
  repeat: 'once',
  args: {
    name: required(word('NAME'), {
      help: 'name of the view, used as the `view` label in metrics and as the metadata `view/name`',
    }),
  },
  properties: {
    conditions: lines(['expr'], 'EXPRESSION', readCondition, {
      help: 'the block serves a query only if this is true; if there are several lines, all of them must be true',
    }),
  },
  warn: ({ conditions }) =>
    conditions
      .filter(({ part }) => part.type !== 'bool' && part.type !== 'any')
      .map(({ part, text, token }) =>
        pluginRemark(
          'view',
          token.place,
          `'${text}' is never true because its result is a ${part.type}`,
          {
            hint: 'The block serves a query only if the result is true.',
          },
        ),
      ),
});

/**
 * Selects blocks. Blocks for the same zone are tried from top to bottom, and a query goes to the first one whose view
 * accepts it.
 */
export const view: Plugin = definePlugin({
  syntax,
  plan({ name }, plan) {
    plan.view = name;
  },
  setup({ name, conditions }, context, next) {
    context.offer(metadataProviders, (_query, notes) => {
      notes.set('view/name', name);
    });
    const runs = conditions.map(({ part }) => part.run);
    let collectors: readonly ((query: Query) => void)[] | null = null;
    context.filter((query) => {
      collectors ??= context.find(metadataCollector);
      for (const collect of collectors) collect(query);
      for (const run of runs) {
        try {
          if (run(query, null) === true) continue;
        } catch {
          // If an expression fails, the view does not match.
        }
        query.notes = null;
        return false;
      }
      return true;
    });
    return next;
  },
});
