/** Reads any kind of workload with its pods and containers. */
import type { DocumentPath } from '../../server/kube/manifests/yaml-document.ts';
import {
  child,
  children,
  list,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../server/base/json-object.ts';
import type { LintObject } from './subject.ts';

/** Kinds of objects that create pods from a template. */
const makers: readonly string[] = [
  'Deployment',
  'DaemonSet',
  'StatefulSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
  'CronJob',
];

/** Kinds of objects that contain a pod specification. */
export const workloadKinds: readonly string[] = ['Pod', ...makers];

/** A pod or pod template, and the path to its `spec`. */
export interface PodSpec {
  readonly spec: JsonObject;
  readonly path: DocumentPath;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly value: JsonObject;
  readonly path: DocumentPath;
}

/** An object's pod or pod template, or null if it has none. */
export function podSpecOf({ kind, value }: LintObject): PodSpec | null {
  const spec = child(value, 'spec');
  if (kind === 'Pod')
    return { spec, path: ['spec'], labels: textMap(child(value, 'metadata'), 'labels') };
  const [job, path] =
    kind === 'CronJob'
      ? [child(child(spec, 'jobTemplate'), 'spec'), ['spec', 'jobTemplate', 'spec']]
      : [spec, ['spec']];
  const template = child(job, 'template');
  if (!makers.includes(kind) || template['spec'] === undefined) return null;
  return {
    spec: child(template, 'spec'),
    path: [...path, 'template', 'spec'],
    labels: textMap(child(template, 'metadata'), 'labels'),
  };
}

/** The containers in an object's pods, except for init containers. */
export function containersOf(object: LintObject): readonly Container[] {
  const pods = podSpecOf(object);
  if (pods === null) return [];
  return children(pods.spec, 'containers').map((value, index) => ({
    name: text(value, 'name'),
    image: text(value, 'image'),
    value,
    path: [...pods.path, 'containers', index],
  }));
}

/** The kind of DNS server that the object runs, or null if it is not one. */
export function dnsServerIn(object: LintObject): {
  readonly container: Container;
  readonly role: 'server' | 'node-cache';
} | null {
  for (const container of containersOf(object)) {
    if (/(^|\/)[\w.-]*node-?cache([:@]|$)/.test(container.image))
      return { container, role: 'node-cache' };
    if (!/(^|\/)[\w.-]*(coredns|ndots)([:@]|$)/.test(container.image)) continue;
    const verb = verbOf(container);
    if (verb === 'node-cache') return { container, role: 'node-cache' };
    if (verb === null || verb === 'serve') return { container, role: 'server' };
  }
  return null;
}

/** The cluster IPs of the cluster's DNS services. */
export function dnsServiceAddresses(objects: readonly LintObject[]): readonly string[] {
  return objects
    .filter(({ kind, name, value }) => {
      const selector = child(child(value, 'spec'), 'selector');
      return (
        kind === 'Service' && (name === 'kube-dns' || text(selector, 'k8s-app') === 'kube-dns')
      );
    })
    .flatMap(({ value }) => {
      const spec = child(value, 'spec');
      return [...texts(spec, 'clusterIPs'), text(spec, 'clusterIP')];
    })
    .filter((address) => address !== '' && address !== 'None');
}

/**
 * The ndots command run by a container with the ndots image. It may not be a server: `size --follow`, `webhook serve`.
 * Null if there is none.
 */
function verbOf({ value }: Container): string | null {
  const [program = '', ...behind] = [...texts(value, 'command'), ...texts(value, 'args')];
  const [word = ''] = list(value, 'command').length > 0 ? behind : [program];
  return /^[a-z][a-z-]*$/.test(word) ? word : null;
}

/** True if a label selector matches according to the API server's rules. An empty one matches everything. */
export function selects(selector: JsonObject, labels: Readonly<Record<string, string>>): boolean {
  const pairs = Object.entries(textMap(selector, 'matchLabels'));
  if (pairs.some(([key, value]) => labels[key] !== value)) return false;
  return children(selector, 'matchExpressions').every((expression) => {
    const value = labels[text(expression, 'key')];
    const values = texts(expression, 'values');
    switch (text(expression, 'operator')) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return false;
    }
  });
}
