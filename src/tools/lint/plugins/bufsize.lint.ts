/** Rules about `bufsize`. */
import { blockRule, type LintRule } from '../lint-rule.ts';

const fragments: LintRule = blockRule({
  code: 'CF32',
  severity: 'warning',
  summary: 'bufsize above 1232, which causes fragmented replies',
  find(block, tell) {
    for (const { args } of block.directives('bufsize')) {
      const [size] = args;
      if (size === undefined || !/^\d{4,5}$/.test(size.text) || Number(size.text) <= 1232) continue;
      tell({
        at: size,
        text: `UDP replies of up to ${size.text} bytes do not fit into one packet on every network`,
        hint: 'Overlay networks have an MTU of 1450 or less, and many networks drop fragments, so such answers never arrive.',
        remedy: 'Use bufsize 1232; larger replies use TCP.',
        fix: { kind: 'word', token: size, text: '1232' },
      });
    }
  },
});

export const bufsizeRules: readonly LintRule[] = [fragments];
