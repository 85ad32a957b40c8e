/** Object names in kubectl's syntax: `deploy/web`, `deployments.apps/web`, `po/web-0`, `web-0`. */
import { nearest, Problem } from '../../server/base/problem.ts';
import { isObjectName } from '../../server/kube/store/object-name.ts';

/** Kinds through which a pod can be found. */
export type PodOwnerKind =
  | 'Pod'
  | 'Service'
  | 'Deployment'
  | 'StatefulSet'
  | 'DaemonSet'
  | 'ReplicaSet'
  | 'ReplicationController'
  | 'Job'
  | 'CronJob';

/** A kind of object, with its names in the API and common spellings. */
export interface ResourceKind {
  readonly kind: PodOwnerKind;
  readonly plural: string;
  readonly shortNames: readonly string[];
  /** `''` is the core group. */
  readonly group: string;
  readonly version: string;
}

export interface ResourceName {
  readonly of: ResourceKind;
  readonly name: string;
  /** Null if not given. */
  readonly namespace: string | null;
}

/** All kinds through which a pod can be found. */
export const resourceKinds: readonly ResourceKind[] = [
  { kind: 'Pod', plural: 'pods', shortNames: ['po'], group: '', version: 'v1' },
  {
    kind: 'Deployment',
    plural: 'deployments',
    shortNames: ['deploy'],
    group: 'apps',
    version: 'v1',
  },
  {
    kind: 'StatefulSet',
    plural: 'statefulsets',
    shortNames: ['sts'],
    group: 'apps',
    version: 'v1',
  },
  { kind: 'DaemonSet', plural: 'daemonsets', shortNames: ['ds'], group: 'apps', version: 'v1' },
  { kind: 'ReplicaSet', plural: 'replicasets', shortNames: ['rs'], group: 'apps', version: 'v1' },
  {
    kind: 'ReplicationController',
    plural: 'replicationcontrollers',
    shortNames: ['rc'],
    group: '',
    version: 'v1',
  },
  { kind: 'Job', plural: 'jobs', shortNames: [], group: 'batch', version: 'v1' },
  { kind: 'CronJob', plural: 'cronjobs', shortNames: ['cj'], group: 'batch', version: 'v1' },
  { kind: 'Service', plural: 'services', shortNames: ['svc'], group: '', version: 'v1' },
];

/**
 * Parses `TYPE/NAME`, `TYPE.GROUP/NAME`, `TYPE.VERSION.GROUP/NAME`, `TYPE/NAMESPACE/NAME`, or a pod's name. Throws a
 * `Problem`.
 */
export function parseResourceName(given: string): ResourceName {
  const parts = given.split('/');
  const [type = '', ...path] = parts.length === 1 ? ['pod', ...parts] : parts;
  const name = path.at(-1) ?? '';
  const namespace = path.length === 2 ? (path[0] ?? '') : null;
  const of = kindOf(type);
  if (
    of === null ||
    path.length > 2 ||
    !isObjectName(name) ||
    (namespace !== null && !isObjectName(namespace))
  ) {
    const words = resourceKinds.flatMap(({ kind, shortNames }) => [
      kind.toLowerCase(),
      ...shortNames,
    ]);
    const meant = of === null ? nearest(type, words) : null;
    throw new Problem({
      code: 'usage',
      text: `"${given}" is not a pod or a workload`,
      hint:
        meant === null
          ? `Known: ${words.join(', ')}; as in deploy/web`
          : `Did you mean ${meant}/${name}?`,
    });
  }
  return { of, name, namespace };
}

/** Returns a kind's shortest spelling, such as `deploy`, or the kind in lower case if it is unknown. */
export function shortKind(type: string): string {
  const of = kindOf(type);
  return of?.shortNames[0] ?? (of?.kind ?? type).toLowerCase();
}

/**
 * Parses `deploy`, `Deployment`, `deployments.apps` and `deployment.v1.apps`. Returns null if it is not one of the
 * kinds.
 */
function kindOf(type: string): ResourceKind | null {
  const [word = '', ...rest] = type.toLowerCase().split('.');
  const group = /^v\d/.test(rest[0] ?? '') ? rest.slice(1).join('.') : rest.join('.');
  const found = resourceKinds.find(
    ({ kind, plural, shortNames }) =>
      word === kind.toLowerCase() || word === plural || shortNames.includes(word),
  );
  return found === undefined || (rest.length > 0 && group !== found.group) ? null : found;
}
