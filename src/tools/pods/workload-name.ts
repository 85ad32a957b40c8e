/** Determines the workload that created a pod. */
import { asObject, child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import { shortKind } from './resource-name.ts';

/**
 * Returns a pod's controller, with empty texts if there is none. For the ReplicaSet of a Deployment, whose name ends in
 * the template's hash, this is the Deployment.
 */
export function controllerOf(metadata: JsonObject): { kind: string; name: string } {
  const owner = asObject(
    children(metadata, 'ownerReferences').find((each) => each['controller'] === true),
  );
  const [kind, name] = [text(owner, 'kind'), text(owner, 'name')];
  const hash = text(child(metadata, 'labels'), 'pod-template-hash');
  if (kind === 'ReplicaSet' && hash !== '' && name.endsWith(`-${hash}`))
    return { kind: 'Deployment', name: name.slice(0, -hash.length - 1) };
  return { kind, name };
}

/** Returns a pod's workload, such as `deploy/cart`, or an empty text if it has none. */
export function workloadOf(metadata: JsonObject): string {
  const { kind, name } = controllerOf(metadata);
  return kind === '' ? '' : `${shortKind(kind)}/${name}`;
}
