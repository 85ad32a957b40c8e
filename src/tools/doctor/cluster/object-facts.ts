/**
 * Facts about DNS from objects: nodes, autoscalers, the translation of Services; and the parts of
 * long lists that are stored.
 */
import { child, text, textMap, type JsonObject } from '../../../server/base/json-object.ts';
import type { AutoscalerFacts, ClusterNode } from './facts.ts';
import { isReady } from './pods.ts';

/** The parts of long lists that are examined. */
export function trimmed(kind: string, item: JsonObject): JsonObject {
  if (kind !== 'Service' && kind !== 'EndpointSlice') return item;
  const metadata = child(item, 'metadata');
  const { name, namespace, labels, creationTimestamp } = metadata;
  const { status: _status, ...rest } = item;
  return { ...rest, metadata: { name, namespace, labels, creationTimestamp } };
}

export function nodeOf(object: JsonObject): ClusterNode {
  return {
    name: text(child(object, 'metadata'), 'name'),
    ready: isReady(object),
  };
}

/** The autoscaler, if it is one of DNS pods; none otherwise. */
export function autoscalerOf(object: JsonObject): readonly AutoscalerFacts[] {
  const spec = child(object, 'spec');
  const status = child(object, 'status');
  const number = (of: JsonObject, key: string): number => {
    const value = of[key];
    return typeof value === 'number' ? value : 0;
  };
  const target = text(child(spec, 'scaleTargetRef'), 'name');
  if (!/dns|ndots/.test(target)) return [];
  return [
    {
      name: target,
      current: number(status, 'currentReplicas'),
      desired: number(status, 'desiredReplicas'),
      most: number(spec, 'maxReplicas'),
    },
  ];
}

/** kube-proxy's own ConfigMap, as kubeadm makes it. Without a mode it is iptables. */
export function proxyModeOf(configMaps: readonly JsonObject[]): string | null {
  const found = configMaps.find((each) => text(child(each, 'metadata'), 'name') === 'kube-proxy');
  const settings = found === undefined ? undefined : textMap(found, 'data')['config.conf'];
  if (settings === undefined) return null;
  return /^mode: *"?([a-z]+)"? *$/m.exec(settings)?.[1] ?? 'iptables';
}
