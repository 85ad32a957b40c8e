/** The syntax of the `loadbalance` directive. */
import { parseDuration } from '../../base/duration.ts';
import type { Problem } from '../../base/problem.ts';
import { position, type Position } from '../../corefile/positions.ts';
import { list, setting, type PropertySchema } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Occurrence, type Syntax } from '../../corefile/syntax.ts';
import { duration, net, worded } from '../../corefile/word-values.ts';
import type { Net } from '../../base/ip.ts';

/** The order of addresses, which is random, or random with the first address drawn by weight. */
export type BalancePolicy =
  | { readonly kind: 'round_robin' }
  | { readonly kind: 'weighted'; readonly file: string };

const args: {
  policy: Position<BalancePolicy>;
} = {
  policy: position<BalancePolicy>(
    '[round_robin | weighted FILE]',
    'shuffle addresses and mail exchangers (default), or put one address first, drawn by the weights in FILE',
    (line) => {
      if (line.left === 0) return { kind: 'round_robin' };
      const word = line.take();
      if (word.text === 'round_robin') return { kind: 'round_robin' };
      if (word.text !== 'weighted') {
        return line.refuse(`unknown policy: ${word.text}`, word.place, {
          hint: 'The policies are round_robin and weighted FILE.',
        });
      }
      if (line.left === 0) {
        return line.refuse('missing weight file argument', word.place, {
          remedy: 'Write: loadbalance weighted FILE',
        });
      }
      return { kind: 'weighted', file: line.take().text };
    },
  ),
};

const properties: {
  reloadMs: PropertySchema<number | null>;
  prefer: PropertySchema<readonly Net[]>;
} = {
  reloadMs: setting(
    'reload',
    worded(duration('DURATION', { minMs: 0 }), (text, reason) =>
      parseDuration(text) === null ? `invalid reload duration '${text}'` : reason,
    ),
    { help: 'how often to check the weight file (default 30s; 0: never)' },
  ),
  prefer: list('prefer', net('CIDR'), { min: 0, help: 'put addresses in these networks first' }),
};

export type LoadbalanceOptions = Occurrence<typeof args, typeof properties>;

export const syntax: Syntax<
  {
    policy: Position<BalancePolicy>;
  },
  {
    reloadMs: PropertySchema<number | null>;
    prefer: PropertySchema<readonly Net[]>;
  },
  'merge'
> = directive({
  name: 'loadbalance',
  summary: 'changes the order of addresses in replies',
  repeat: 'merge',
  args,
  properties,
  check({ policy, reloadMs, prefer, at }): readonly Problem[] {
    const other =
      policy.kind === 'round_robin' ? reloadMs !== null && 'reload' : prefer.length > 0 && 'prefer';
    if (other === false) return [];
    return [
      pluginProblem('loadbalance', at, `unknown property '${other}'`, {
        code: 'property-unknown',
        hint:
          other === 'reload'
            ? 'Only `loadbalance weighted FILE` has a file to reload.'
            : 'Weights already determine the first address.',
      }),
    ];
  },
});
