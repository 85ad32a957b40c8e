/** Determines the workload that created a pod. */
import { asObject, child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import { shortKind } from './resource-name.ts';

/**
 * Returns a pod's workload. This is `deploy/cart` if the pod was created by that Deployment's ReplicaSet, whose name
 * ends in the template's hash.
 */
export function workloadOf(metadata: JsonObject): string {
  const owner = children(metadata, 'ownerReferences').find((each) => each['controller'] === true);
  const [kind, name] = [
    text(owner ?? asObject(null), 'kind'),
    text(owner ?? asObject(null), 'name'),
  ];
  const hash = text(child(metadata, 'labels'), 'pod-template-hash');
  if (kind === 'ReplicaSet' && hash !== '' && name.endsWith(`-${hash}`))
    return `deploy/${name.slice(0, -hash.length - 1)}`;
  return kind === '' ? '' : `${shortKind(kind)}/${name}`;
}
