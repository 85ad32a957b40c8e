/** Rules about the workloads that run a DNS server, and about its clients. */
import type { LintRule } from '../lint-rule.ts';
import { clientRules } from './clients.lint.ts';
import { kubeletRules } from './kubelet.lint.ts';
import { nodeCacheRules } from './node-cache.lint.ts';
import { policyRules } from './policies.lint.ts';
import { probeRules } from './probes.lint.ts';
import { replicaRules } from './replicas.lint.ts';

/** All rules about deployments. */
export const deploymentRules: readonly LintRule[] = [
  ...probeRules,
  ...replicaRules,
  ...policyRules,
  ...kubeletRules,
  ...nodeCacheRules,
  ...clientRules,
];
