/** Rules about `autopath`. */
import { blockRule, type LintRule } from '../lint-rule.ts';
import { lineOf } from '../subject.ts';
import type { syntax } from '../../../server/plugins/autopath/autopath-options.ts';

const wrongNamespace: LintRule = blockRule({
  code: 'CF11',
  severity: 'warning',
  summary: 'autopath @kubernetes, which can confuse clients in different namespaces',
  find(block, tell, { corefiles }) {
    for (const { given, directive } of block.uses<typeof syntax>('autopath')) {
      if (given.from !== '@kubernetes') continue;
      const [kubernetes] = block.directives('kubernetes');
      const pods = kubernetes === undefined ? null : lineOf(kubernetes, 'pods');
      const told = { at: directive.args.at(-1) ?? directive };
      if (pods?.args[0]?.text !== 'verified') {
        tell({
          ...told,
          text: 'autopath @kubernetes does not complete names without pods verified',
          severity: 'error',
          hint: "It looks up the client's pod by address, and only pods verified watches pods.",
          remedy: 'Use pods verified, or autopath @name (ndots), which does not need pods.',
        });
      } else if (corefiles.some(({ role }) => role === 'node-cache')) {
        tell({
          ...told,
          text: 'behind node-cache, every query comes from a node address, so autopath finds no pod for it',
          hint: 'Names are not completed, or are completed for the pod that had the address before.',
          remedy:
            'Remove autopath, or use autopath @name (ndots), which reads the namespace from the name.',
        });
      } else if (block.has('cache')) {
        tell({
          ...told,
          text: 'with autopath @kubernetes and cache, all clients get a wrong completion until it expires',
          hint: 'A pod whose address is new, or belonged to another pod, gets another namespace’s answer. A and AAAA can differ.',
          remedy:
            'Use autopath @name (ndots), which reads the namespace from the name, or remove it.',
        });
      }
    }
  },
});

export const autopathRules: readonly LintRule[] = [wrongNamespace];
