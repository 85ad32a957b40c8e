/**
 * Finds pods that NetworkPolicies prevent from querying DNS, as far as that shows without addresses.
 */
import {
  child,
  children,
  list,
  text,
  texts,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { allowsDns } from '../../lint/network-policy.ts';
import { selects } from '../../lint/workload.ts';
import type { ClientGroup } from './pods.ts';

/** Pods that may not query DNS. */
export interface CutOff {
  readonly group: ClientGroup;
  readonly protocol: 'UDP' | 'TCP';
  /** Policies that select them: `namespace/name`. */
  readonly policies: readonly string[];
}

/** Pods that are selected by an egress policy and by none that allows port 53. */
export function cutOff(
  policies: readonly JsonObject[],
  groups: readonly ClientGroup[],
): readonly CutOff[] {
  const byNamespace = Map.groupBy(policies.filter(isAboutEgress), (each) =>
    text(child(each, 'metadata'), 'namespace'),
  );
  return groups.flatMap((group) => {
    // Policies do not apply to hostNetwork pods.
    if (group.hostNetwork) return [];
    const theirs = (byNamespace.get(group.namespace) ?? []).filter((each) =>
      selects(child(child(each, 'spec'), 'podSelector'), group.labels),
    );
    if (theirs.length === 0) return [];
    const rules = theirs.flatMap((each) => children(child(each, 'spec'), 'egress'));
    const lacks = (['UDP', 'TCP'] as const).find(
      (protocol) => !rules.some((rule) => allowsDns(rule, protocol)),
    );
    if (lacks === undefined) return [];
    const names = theirs.map(
      (each) => `${group.namespace}/${text(child(each, 'metadata'), 'name')}`,
    );
    return [{ group, protocol: lacks, policies: names }];
  });
}

function isAboutEgress(policy: JsonObject): boolean {
  const spec = child(policy, 'spec');
  return texts(spec, 'policyTypes').includes('Egress') || list(spec, 'egress').length > 0;
}
