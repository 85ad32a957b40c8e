/** All linter rules, both those about plugins and those about deployments. */
import { clientRules } from '../deployment/clients.lint.ts';
import { kubeletRules } from '../deployment/kubelet.lint.ts';
import { nodeCacheRules } from '../deployment/node-cache.lint.ts';
import { policyRules } from '../deployment/policies.lint.ts';
import { probeRules } from '../deployment/probes.lint.ts';
import { replicaRules } from '../deployment/replicas.lint.ts';
import { inputRules } from '../input.lint.ts';
import { readingRules } from '../reading.lint.ts';
import { releaseRule } from '../releases.lint.ts';
import type { LintRule } from '../lint-rule.ts';
import { aclRules } from './acl.lint.ts';
import { autopathRules } from './autopath.lint.ts';
import { bufsizeRules } from './bufsize.lint.ts';
import { cacheRules } from './cache.lint.ts';
import { forwardRules } from './forward.lint.ts';
import { hostsRules } from './hosts.lint.ts';
import { kubernetesRules } from './kubernetes.lint.ts';
import { logRules } from './log.lint.ts';
import { external } from '../../../server/plugins/order.ts';
import { reloadRules } from './reload.lint.ts';
import { rewriteRules } from './rewrite.lint.ts';
import { templateRules } from './template.lint.ts';

/** Every rule. A code that has been used is never reused for something else. */
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
  ...probeRules,
  ...replicaRules,
  ...policyRules,
  ...kubeletRules,
  ...nodeCacheRules,
  ...clientRules,
  ...inputRules,
];
