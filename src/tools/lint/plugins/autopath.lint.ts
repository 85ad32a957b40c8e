/** Rules about `autopath`. */
import { blockRule, type LintRule } from '../lint-rule.ts';
import { lineOf } from '../subject.ts';
import type { syntax } from '../../../server/plugins/autopath/autopath-options.ts';

const wrongNamespace: LintRule = blockRule({
  code: 'CF11',
  severity: 'warning',
  summary: 'autopath @kubernetes, which can confuse clients of different namespaces',
  find(block, tell, { corefiles }) {
    for (const { given, directive } of block.uses<typeof syntax>('autopath')) {
      if (given.from !== '@kubernetes') continue;
      const [kubernetes] = block.directives('kubernetes');
      const pods = kubernetes === undefined ? null : lineOf(kubernetes, 'pods');
      const told = { at: directive.args.at(-1) ?? directive };
      if (pods?.args[0]?.text !== 'verified') {
        tell({
          ...told,
          text: 'autopath @kubernetes completes nothing without pods verified',
          severity: 'error',
          hint: "It looks up the client's pod by its address, and only pods verified watches pods.",
          remedy: 'Write pods verified, or autopath @name (ndots), which needs no pods.',
        });
      } else if (corefiles.some(({ role }) => role === 'node-cache')) {
        tell({
          ...told,
          text: 'behind node-cache every query has the address of a node, and autopath finds no pod for it',
          hint: 'No name is completed, or it is completed for the pod that had the address before.',
          remedy:
            'Remove autopath, or write autopath @name (ndots), which takes the namespace from the name.',
        });
      } else if (block.has('cache')) {
        tell({
          ...told,
          text: 'autopath @kubernetes with cache: all clients get one wrong completion until it expires',
          hint: 'A pod whose address is not known yet, or was another pod’s, gets the answer of another namespace; A and AAAA can differ.',
          remedy:
            'Write autopath @name (ndots), which takes the namespace from the name, or remove it.',
        });
      }
    }
  },
});

/** Rules about `autopath`. */
export const autopathRules: readonly LintRule[] = [wrongNamespace];
