/** Rules about making a server observable with `log`, `errors` and `prometheus`. */
import { blockRule, type LintRule } from '../lint-rule.ts';
import { lineOf } from '../subject.ts';

const tellsTooMuch: LintRule = blockRule({
  code: 'CF31',
  severity: 'note',
  summary: 'a log line for every query, or a server without the errors or prometheus plugin',
  find(block, tell) {
    for (const directive of block.directives('log')) {
      const classes = lineOf(directive, 'class');
      if (classes !== null && !classes.args.some(({ text }) => text === 'all')) continue;
      tell({
        at: classes?.name ?? directive.at,
        text: 'a line is written for every query',
        hint: 'At thousands of queries per second, logging costs more than answering. ndots plan and ndots doctor read these lines.',
        remedy:
          'Keep it while you collect queries or investigate; otherwise, use log { class error }.',
      });
    }
    const { fragment } = block.corefile;
    const first = block.directives('forward')[0] ?? block.directives('kubernetes')[0];
    if (first === undefined || fragment) return;
    for (const [name, what] of [
      ['errors', 'upstream failures are not logged'],
      ['prometheus', 'load, latency and failures of this block are not visible'],
    ] as const) {
      if (block.has(name)) continue;
      tell({
        at: block.block,
        text: `${what}: the block has no ${name}`,
        remedy: `Add: ${name}${name === 'prometheus' ? ' :9153' : ''}`,
      });
    }
  },
});

export const logRules: readonly LintRule[] = [tellsTooMuch];
