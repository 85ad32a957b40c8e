import type { JsonObject } from '../../base/json-object.ts';
import type { ObjectKind, KubeObject } from '../store/objects.ts';
import type { WantedObjects } from '../store/object-source.ts';
import {
  importedServiceLabel,
  transformEndpoints,
  transformNamespace,
  transformNode,
  transformPod,
  transformService,
  transformServiceImport,
  transformSlice,
  type TransformOptions,
} from '../store/transform.ts';

/** A resource to list and watch, and the part of each object to store. */
export interface WatchedResource<T> {
  /** Empty or absent: all objects. */
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The API versions that contain it, best first. If the server does not serve one, the next is tried. */
  readonly forms: readonly ResourceForm<T>[];
}

/** The list and watch for one kind used by DNS. */
export interface Resource extends WatchedResource<KubeObject> {
  readonly kind: ObjectKind;
}

/** One version of an API resource. */
export interface ResourceForm<T> {
  /** The name used in roles, e.g. `endpointslices.discovery.k8s.io`. */
  readonly name: string;
  readonly path: string;
  readonly transform: (raw: JsonObject) => readonly T[];
}

/**
 * Finished pods have no address. With this selector, the server omits them and reports a pod that finishes as deleted.
 */
const livePods = 'status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown';

/** Returns the kinds that a source reads from an API server, across all namespaces. */
export function wantedResources(wanted: WantedObjects): Resource[] {
  const { zones, podLabels = false, topology } = wanted;
  const options: TransformOptions = { zones, podLabels, topology };
  const resources: Resource[] = [
    {
      kind: 'Namespace',
      labelSelector: wanted.namespaceLabels,
      forms: [{ name: 'namespaces', path: '/api/v1/namespaces', transform: transformNamespace }],
    },
    {
      kind: 'Service',
      labelSelector: wanted.labels,
      forms: [{ name: 'services', path: '/api/v1/services', transform: transformService }],
    },
  ];
  if (wanted.endpoints || wanted.multicluster) {
    const group = '/apis/discovery.k8s.io';
    const name = 'endpointslices.discovery.k8s.io';
    resources.push({
      kind: 'EndpointSlice',
      labelSelector: wanted.endpoints
        ? wanted.labels
        : [wanted.labels, importedServiceLabel].filter(Boolean).join(','),
      forms: [
        {
          name,
          path: `${group}/v1/endpointslices`,
          transform: (raw) => transformSlice(raw, options),
        },
        {
          name,
          path: `${group}/v1beta1/endpointslices`,
          transform: (raw) => transformSlice(raw, options),
        },
        { name: 'endpoints', path: '/api/v1/endpoints', transform: transformEndpoints },
      ],
    });
  }
  if (wanted.pods) {
    resources.push({
      kind: 'Pod',
      labelSelector: wanted.labels,
      fieldSelector: livePods,
      forms: [
        { name: 'pods', path: '/api/v1/pods', transform: (raw) => transformPod(raw, options) },
      ],
    });
  }
  if (topology === 'nodes' || topology === 'pods')
    resources.push({
      kind: 'Node',
      forms: [{ name: 'nodes', path: '/api/v1/nodes', transform: transformNode }],
    });
  if (wanted.multicluster) {
    resources.push({
      kind: 'ServiceImport',
      forms: [
        {
          name: 'serviceimports.multicluster.x-k8s.io',
          path: '/apis/multicluster.x-k8s.io/v1alpha1/serviceimports',
          transform: transformServiceImport,
        },
      ],
    });
  }
  return resources;
}
