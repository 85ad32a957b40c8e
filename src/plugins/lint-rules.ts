/**
 * All rules of the linter: those that stand beside their plugins, and those about what runs the
 * server.
 */
import { deploymentRules } from '../lint/deployment/rules.ts';
import { inputRules } from '../lint/input.lint.ts';
import { readingRules } from '../lint/reading.lint.ts';
import { releaseRule } from '../lint/releases.lint.ts';
import type { LintRule } from '../lint/rule.ts';
import { aclRules } from './acl/acl.lint.ts';
import { autopathRules } from './autopath/autopath.lint.ts';
import { bufsizeRules } from './bufsize/bufsize.lint.ts';
import { cacheRules } from './cache/cache.lint.ts';
import { forwardRules } from './forward/forward.lint.ts';
import { hostsRules } from './hosts/hosts.lint.ts';
import { kubernetesRules } from './kubernetes/kubernetes.lint.ts';
import { logRules } from './log/log.lint.ts';
import { external } from './order.ts';
import { reloadRules } from './reload/reload.lint.ts';
import { rewriteRules } from './rewrite/rewrite.lint.ts';
import { templateRules } from './template/template.lint.ts';

/** Every rule. A code that was used once is never used for something else. */
export const rules: readonly LintRule[] = [
  releaseRule(external),
  ...readingRules,
  ...aclRules,
  ...autopathRules,
  ...bufsizeRules,
  ...cacheRules,
  ...forwardRules,
  ...hostsRules,
  ...kubernetesRules,
  ...logRules,
  ...reloadRules,
  ...rewriteRules,
  ...templateRules,
  ...deploymentRules,
  ...inputRules,
];
