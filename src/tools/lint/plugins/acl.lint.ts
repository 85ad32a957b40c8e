/** Rules about `acl`. */
import { blockRule, type LintRule } from '../lint-rule.ts';
import { coreVersionOf, isBefore } from '../target.ts';

const bypassed: LintRule = blockRule({
  code: 'CF27',
  ofCore: true,
  severity: 'warning',
  summary: 'acl that other plugins bypass in older CoreDNS releases',
  find(block, tell, { target }) {
    const version = coreVersionOf(target);
    const [directive] = block.directives('acl');
    if (version === null || directive === undefined) return;
    const label = `CoreDNS ${version}`;
    const by = (plugin: string, mended: string, hint: string): void =>
      tell({
        at: directive.at,
        text: `${plugin} lets queries bypass acl in ${label}`,
        hint,
        remedy: `Upgrade to ${mended}, or remove ${plugin} from this block.`,
      });
    if (block.has('rewrite') && isBefore(version, '1.14.2'))
      by('rewrite', '1.14.2', 'acl checked the name before it was rewritten (CVE-2026-26017).');
    if (block.has('cache') && isBefore(version, '1.14.7'))
      by('cache', '1.14.7', 'Clients that acl blocks got cached answers meant for others.');
    if (block.has('autopath') && isBefore(version, '1.14.7'))
      by('autopath', '1.14.7', 'Names that autopath completed were not checked.');
  },
});

export const aclRules: readonly LintRule[] = [bypassed];
