/** A kind that the server supports. `group` is '' for the core API. */
export interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
}

export const servedResources: readonly ServedResource[] = [
  served('', 'v1', 'namespaces', 'Namespace', false, ['ns']),
  served('', 'v1', 'nodes', 'Node', false, ['no']),
  served('', 'v1', 'services', 'Service', true, ['svc']),
  served('', 'v1', 'endpoints', 'Endpoints', true, ['ep']),
  served('', 'v1', 'pods', 'Pod', true, ['po']),
  served('', 'v1', 'configmaps', 'ConfigMap', true, ['cm']),
  served('apps', 'v1', 'deployments', 'Deployment', true, ['deploy']),
  served('apps', 'v1', 'statefulsets', 'StatefulSet', true, ['sts']),
  served('apps', 'v1', 'daemonsets', 'DaemonSet', true, ['ds']),
  served('batch', 'v1', 'jobs', 'Job', true, []),
  served('batch', 'v1', 'cronjobs', 'CronJob', true, ['cj']),
  served('discovery.k8s.io', 'v1', 'endpointslices', 'EndpointSlice', true, []),
  served('discovery.k8s.io', 'v1beta1', 'endpointslices', 'EndpointSlice', true, []),
  served('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy', true, ['netpol']),
  served('policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget', true, ['pdb']),
  served('autoscaling', 'v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler', true, ['hpa']),
  ...(['Mutating', 'Validating'] as const).map((what) =>
    served(
      'admissionregistration.k8s.io',
      'v1',
      `${what.toLowerCase()}webhookconfigurations`,
      `${what}WebhookConfiguration`,
      false,
      [],
    ),
  ),
  served('multicluster.x-k8s.io', 'v1alpha1', 'serviceimports', 'ServiceImport', true, []),
];

function served(
  group: string,
  version: string,
  plural: string,
  kind: string,
  namespaced: boolean,
  shortNames: readonly string[],
): ServedResource {
  return { group, version, plural, singular: kind.toLowerCase(), kind, namespaced, shortNames };
}

/** For example, `apps/v1`; the core API uses the version alone: `v1`. */
export function groupVersion(resource: { group: string; version: string }): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The storage key. All versions of a kind share the same objects. */
export function storageName(resource: ServedResource): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/**
 * Returns a discovery document (`/api`, `/apis`, `/api/v1`, `/openapi/v3`, …), or null if there is none at this path.
 */
export function discoveryDocument(
  path: string,
  resources: readonly ServedResource[],
): object | null {
  if (path === '/api') {
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  }
  const groups = [...new Set(resources.map((one) => one.group))].filter((group) => group !== '');
  if (path === '/apis') {
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups.map((group) => groupDocument(group, resources)),
    };
  }
  if (path === '/openapi/v3') {
    const versions = [...new Set(resources.map(groupVersion))];
    return {
      paths: Object.fromEntries(
        versions.map((version) => {
          const place = version.includes('/') ? `apis/${version}` : `api/${version}`;
          return [place, { serverRelativeURL: `/openapi/v3/${place}?hash=1` }];
        }),
      ),
    };
  }
  const match = /^(\/openapi\/v3)?\/(api|apis)\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (match === null) return null;
  const [, openapi, root, first, second] = match;
  const group = root === 'api' ? '' : first!;
  const version = root === 'api' ? first! : second;
  if (version === undefined) return groups.includes(group) ? groupDocument(group, resources) : null;
  const members = resources.filter((one) => one.group === group && one.version === version);
  if (members.length === 0) return null;
  return openapi === undefined
    ? resourceList(groupVersion({ group, version }), members)
    : openapiDocument(members);
}

function groupDocument(group: string, resources: readonly ServedResource[]): object {
  const versions = [
    ...new Set(resources.filter((one) => one.group === group).map((one) => one.version)),
  ].map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: group,
    versions,
    preferredVersion: versions[0],
  };
}

function resourceList(version: string, members: readonly ServedResource[]): object {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: version,
    resources: members.map((one) => ({
      name: one.plural,
      singularName: one.singular,
      namespaced: one.namespaced,
      kind: one.kind,
      verbs,
      shortNames: one.shortNames,
    })),
  };
}

/** Contains no schemas, only what kubectl requires to see that the server can validate writes (`fieldValidation`). */
function openapiDocument(members: readonly ServedResource[]): object {
  const parameters = [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }];
  const paths = members.map((one) => {
    const root = one.group === '' ? '/api' : '/apis';
    const operation = {
      'x-kubernetes-group-version-kind': {
        group: one.group,
        version: one.version,
        kind: one.kind,
      },
      parameters,
      responses: {},
    };
    return [
      `${root}/${groupVersion(one)}/${one.plural}/{name}`,
      { parameters, patch: operation, post: operation, put: operation },
    ];
  });
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(paths),
    components: { schemas: {} },
  };
}
