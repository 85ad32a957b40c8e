/** Writes objects through the fake API server. */
import { groupVersion, storageName, type ServedResource } from './resources.ts';
import { Refusal } from './status.ts';
import type { KubeJson, Store, Stored } from './store.ts';

/** A validated write: a request that the real API server would refuse is refused here too. */
export interface WriteTarget {
  readonly store: Store;
  readonly resource: ServedResource;
  readonly namespace: string;
}

let generated = 0;

/** @throws Refusal */
export function create({ store, resource, namespace }: WriteTarget, body: unknown): Stored {
  const object = checked(resource, namespace, body);
  const { metadata } = object;
  if (!metadata.name && typeof metadata['generateName'] === 'string') {
    metadata.name = `${metadata['generateName']}${(generated++).toString(36).padStart(5, '0')}`;
  }
  if (!isName(metadata.name)) {
    throw new Refusal(
      422,
      `${resource.kind} "${String(metadata.name)}" is invalid: metadata.name: Invalid value`,
    );
  }
  if (resource.namespaced && store.get('namespaces', '', namespace) === null) {
    throw notFound('namespaces', namespace);
  }
  if (store.get(storageName(resource), metadata.namespace ?? '', metadata.name) !== null) {
    throw new Refusal(
      409,
      `${resource.plural} "${metadata.name}" already exists`,
      'AlreadyExists',
      { name: metadata.name, kind: resource.plural },
    );
  }
  return store.put(storageName(resource), defaulted(store, resource, object));
}

/**
 * Replaces an object if the body has its current version.
 * @throws Refusal
 */
export function update(target: WriteTarget, name: string, body: unknown): Stored {
  const { store, resource, namespace } = target;
  const before = existing(target, name);
  const object = checked(resource, namespace, body);
  const { resourceVersion } = object.metadata;
  if (resourceVersion !== undefined && resourceVersion !== String(before.revision)) {
    throw new Refusal(
      409,
      `Operation cannot be fulfilled on ${resource.plural} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
    );
  }
  return store.put(storageName(resource), object);
}

/** Applies a JSON merge patch (RFC 7396), or as much of a strategic patch as tests need. */
export function patch(target: WriteTarget, name: string, type: string, body: unknown): Stored {
  if (!['application/merge-patch+json', 'application/strategic-merge-patch+json'].includes(type)) {
    throw new Refusal(415, `the body of the request was in an unknown format: ${type}`);
  }
  const before = existing(target, name);
  const merged = merge(before.object, body) as KubeJson;
  return target.store.put(storageName(target.resource), merged);
}

/**
 * Deletes an object. If it is a namespace, all objects in it are deleted too.
 * @throws Refusal
 */
export function remove(target: WriteTarget, name: string): Stored {
  const { store, resource, namespace } = target;
  const before = existing(target, name);
  if (resource.plural === 'namespaces') removeContents(store, name);
  store.delete(storageName(resource), resource.namespaced ? namespace : '', name);
  return before;
}

const namespacedStores = [
  'services',
  'endpoints',
  'pods',
  'configmaps',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'endpointslices.discovery.k8s.io',
  'serviceimports.multicluster.x-k8s.io',
];

function removeContents(store: Store, namespace: string): void {
  for (const resource of namespacedStores) {
    for (const { object } of store.all(resource)) {
      if (object.metadata.namespace === namespace) {
        store.delete(resource, namespace, object.metadata.name);
      }
    }
  }
}

/** @throws Refusal if there is no such object */
export function existing({ store, resource, namespace }: WriteTarget, name: string): Stored {
  const found = store.get(storageName(resource), resource.namespaced ? namespace : '', name);
  if (found === null) throw notFound(resource.plural, name, resource.group);
  return found;
}

function notFound(plural: string, name: string, group = ''): Refusal {
  const shown = group === '' ? plural : `${plural}.${group}`;
  return new Refusal(404, `${shown} "${name}" not found`, 'NotFound', {
    name,
    group,
    kind: plural,
  });
}

function checked(resource: ServedResource, namespace: string, body: unknown): KubeJson {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new Refusal(400, 'the body is not an object');
  }
  const object = structuredClone(body) as Partial<KubeJson>;
  if (object.kind !== resource.kind || object.apiVersion !== groupVersion(resource)) {
    throw new Refusal(
      400,
      `${object.kind ?? ''} in version "${object.apiVersion ?? ''}" cannot be handled as a ${resource.kind}`,
    );
  }
  const metadata = object.metadata ?? { name: '' };
  if (resource.namespaced) {
    if (metadata.namespace !== undefined && metadata.namespace !== namespace) {
      throw new Refusal(
        400,
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    }
    metadata.namespace = namespace;
  } else {
    delete metadata.namespace;
  }
  return { ...object, metadata };
}

/** Fills in the real server's defaults for the fields that DNS reads. */
function defaulted(store: Store, resource: ServedResource, object: KubeJson): KubeJson {
  if (resource.plural === 'namespaces') {
    return {
      ...object,
      metadata: {
        ...object.metadata,
        labels: { 'kubernetes.io/metadata.name': object.metadata.name, ...object.metadata.labels },
      },
      status: { phase: 'Active' },
    };
  }
  if (resource.plural === 'pods') {
    const status = (object['status'] ?? {}) as Record<string, unknown>;
    return { ...object, status: { phase: 'Pending', ...status } };
  }
  if (resource.plural !== 'services') return object;
  const spec: Record<string, unknown> = { type: 'ClusterIP', ...(object['spec'] as object) };
  if (spec['type'] !== 'ExternalName' && spec['clusterIP'] === undefined) {
    spec['clusterIP'] = `10.96.${(store.revision >> 8) & 255}.${store.revision & 255}`;
  }
  if (spec['clusterIP'] !== undefined) spec['clusterIPs'] ??= [spec['clusterIP']];
  const ports = (spec['ports'] ?? []) as Record<string, unknown>[];
  spec['ports'] = ports.map((port) => ({ protocol: 'TCP', targetPort: port['port'], ...port }));
  return { ...object, spec, status: object['status'] ?? { loadBalancer: {} } };
}

function merge(target: unknown, change: unknown): unknown {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) return change;
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(value);
}
