/** One object in a manifest file: the fields that matter for DNS, and any faults in them. */
import { isIP, plainAddress } from '../../base/ip.ts';
import {
  child,
  children,
  isObject,
  list,
  text,
  textMap,
  type JsonObject,
} from '../../base/json-object.ts';
import { nearest, Problem, type Place } from '../../base/problem.ts';
import { isObjectName } from '../store/object-name.ts';
import { parseSpans } from './address-range.ts';
import type { YamlDocument } from './yaml-document.ts';
import type { DocumentPath } from './yaml-document.ts';

/** One object in a manifest file. Only the parts that matter for DNS are checked. */
export interface Manifest {
  readonly kind: ManifestKind;
  /** `''` for an object without a namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly raw: JsonObject;
  readonly place: Place;
}

/** The kinds that matter for DNS. */
export type ManifestKind =
  | 'Service'
  | 'EndpointSlice'
  | 'Endpoints'
  | 'Pod'
  | 'Namespace'
  | 'Node'
  | 'ServiceImport'
  | 'Job'
  | 'CronJob'
  | WorkloadKind;
/** The kinds that keep a set of pods running. */
export type WorkloadKind =
  | 'Deployment'
  | 'StatefulSet'
  | 'DaemonSet'
  | 'ReplicaSet'
  | 'ReplicationController';

/** Addresses for a workload's pods, in order, or for a single pod: `172.17.0.4-172.17.0.6`. */
export const podIpsAnnotation = 'ndots.dev/pod-ips';
/** `"false"` means that the pod, or this workload's pods, are not ready. */
export const readyAnnotation = 'ndots.dev/ready';

/** Maximum number of replicas; more are a typo. */
const REPLICAS_MAX = 10_000;

export const shapes: Readonly<Record<ManifestKind, (check: ObjectCheck) => void>> = {
  Service: checkService,
  EndpointSlice: checkSlice,
  Endpoints: checkEndpoints,
  Pod: checkPod,
  Namespace: () => {},
  Node: () => {},
  ServiceImport: (check) => check.addresses(['spec', 'ips'], []),
  // Their pods are temporary, and matter only to commands that name one.
  Job: () => {},
  CronJob: () => {},
  Deployment: checkWorkload,
  StatefulSet: checkWorkload,
  DaemonSet: checkWorkload,
  ReplicaSet: checkWorkload,
  ReplicationController: checkWorkload,
};
const withoutNamespace: ReadonlySet<string> = new Set(['Namespace', 'Node']);

/** Checks one object and records any faults with their positions. */
export class ObjectCheck {
  readonly problems: Problem[] = [];
  readonly raw: JsonObject;
  readonly #document: YamlDocument;
  readonly #path: DocumentPath;

  constructor(document: YamlDocument, raw: JsonObject, path: DocumentPath) {
    this.#document = document;
    this.raw = raw;
    this.#path = path;
  }

  /** Checks the parts that do not depend on the kind. Returns null if the object has no name. */
  manifest(kind: ManifestKind): Manifest | null {
    const metadata = child(this.raw, 'metadata');
    const name = metadata['name'];
    const namespace = metadata['namespace'] ?? 'default';
    if (typeof name !== 'string' || name === '') {
      this.fault(
        'name' in metadata ? ['metadata', 'name'] : ['metadata'],
        name === undefined ? `this ${kind} has no metadata.name` : `metadata.name must be a string`,
      );
      return null;
    }
    if (!isObjectName(name))
      this.fault(['metadata', 'name'], `'${name}' is not a valid object name`);
    if (typeof namespace !== 'string' || !isObjectName(namespace)) {
      this.fault(['metadata', 'namespace'], `'${show(namespace)}' is not a valid namespace`);
      return null;
    }
    const own = withoutNamespace.has(kind) ? '' : namespace;
    const annotations = textMap(metadata, 'annotations');
    const spans = annotations[podIpsAnnotation];
    if (spans !== undefined && parseSpans(spans) === null) {
      this.fault(
        ['metadata', 'annotations', podIpsAnnotation],
        `'${spans}' is not a list of addresses`,
        'write it like 172.17.0.4-172.17.0.6, 10.1.2.3 or 10.1.0.0/28',
      );
    }
    return {
      kind,
      namespace: own,
      name,
      labels: textMap(metadata, 'labels'),
      annotations,
      raw: { ...this.raw, metadata: { ...metadata, namespace: own } },
      place: this.#document.place(this.#path),
    };
  }

  fault(path: DocumentPath, what: string, remedy?: string): void {
    this.problems.push(
      new Problem({
        code: 'manifest-shape',
        text: what,
        place: this.#document.place([...this.#path, ...path]),
        remedy,
      }),
    );
  }

  /** Checks a list of addresses, which may also contain the words in `others`. */
  addresses(path: DocumentPath, others: readonly string[]): void {
    const holder = descend(this.raw, path.slice(0, -1));
    const value = holder[String(path.at(-1))];
    if (value === undefined || value === null) return;
    if (!Array.isArray(value)) {
      this.fault(path, `${path.join('.')} must be a list, but this is ${describe(value)}`);
      return;
    }
    value.forEach((entry: unknown, index) => this.address(entry, [...path, index], others));
  }

  address(value: unknown, path: DocumentPath, others: readonly string[]): void {
    if (value === undefined || value === null || value === '') return;
    if (typeof value === 'string' && (isIP(plainAddress(value)) !== 0 || others.includes(value)))
      return;
    this.fault(path, `'${show(value)}' is not an address`);
  }

  ports(path: DocumentPath, holder: JsonObject): void {
    const value = holder['ports'];
    if (value === undefined || value === null) return;
    if (!Array.isArray(value)) {
      this.fault(path, `ports must be a list, but this is ${describe(value)}`);
      return;
    }
    value.forEach((entry: unknown, index) => {
      if (!isObject(entry)) {
        this.fault([...path, index], `a port must be an object, but this is ${describe(entry)}`);
        return;
      }
      const { port, protocol, name } = entry;
      if (port !== undefined && port !== null && !isPort(port)) {
        this.fault([...path, index, 'port'], `'${show(port)}' is not a port`);
      }
      if (protocol !== undefined && !protocols.includes(show(protocol))) {
        this.fault(
          [...path, index, 'protocol'],
          `'${show(protocol)}' is not a service protocol`,
          `must be must be one of ${protocols.join(', ')}`,
        );
      }
      if (name !== undefined && typeof name !== 'string') {
        this.fault([...path, index, 'name'], `a port name must be a string, so put it in quotes`);
      }
    });
  }
}

const protocols = ['TCP', 'UDP', 'SCTP'];
const serviceTypes = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'];

function checkService(check: ObjectCheck): void {
  const spec = child(check.raw, 'spec');
  const type = spec['type'];
  if (type !== undefined && !serviceTypes.includes(show(type))) {
    const meant = nearest(show(type), serviceTypes);
    check.fault(
      ['spec', 'type'],
      `'${show(type)}' is not a service type`,
      meant === null
        ? `must be must be one of ${serviceTypes.join(', ')}`
        : `did you mean ${meant}?`,
    );
  }
  if (type === 'ExternalName' && text(spec, 'externalName') === '') {
    check.fault(['spec'], 'an ExternalName service needs spec.externalName');
  }
  check.address(spec['clusterIP'], ['spec', 'clusterIP'], ['None']);
  check.addresses(['spec', 'clusterIPs'], ['None']);
  check.addresses(['spec', 'externalIPs'], []);
  check.ports(['spec', 'ports'], spec);
}

function checkSlice(check: ObjectCheck): void {
  const endpoints = check.raw['endpoints'];
  if (endpoints !== undefined && endpoints !== null && !Array.isArray(endpoints)) {
    check.fault(['endpoints'], `endpoints must be a list, but this is ${describe(endpoints)}`);
  }
  const named = text(check.raw, 'addressType') === 'FQDN';
  children(check.raw, 'endpoints').forEach((endpoint, index) => {
    if (named) return;
    list(endpoint, 'addresses').forEach((address, place) => {
      check.address(address, ['endpoints', index, 'addresses', place], []);
    });
  });
  check.ports(['ports'], check.raw);
}

function checkEndpoints(check: ObjectCheck): void {
  children(check.raw, 'subsets').forEach((subset, index) => {
    for (const key of ['addresses', 'notReadyAddresses']) {
      children(subset, key).forEach((address, place) => {
        check.address(address['ip'], ['subsets', index, key, place, 'ip'], []);
      });
    }
    check.ports(['subsets', index, 'ports'], subset);
  });
}

function checkPod(check: ObjectCheck): void {
  const status = child(check.raw, 'status');
  check.address(status['podIP'], ['status', 'podIP'], []);
  children(status, 'podIPs').forEach((entry, index) => {
    check.address(entry['ip'], ['status', 'podIPs', index, 'ip'], []);
  });
}

function checkWorkload(check: ObjectCheck): void {
  const spec = child(check.raw, 'spec');
  const { replicas } = spec;
  const counts = typeof replicas === 'number' && Number.isInteger(replicas) && replicas >= 0;
  if (replicas !== undefined && replicas !== null && !(counts && replicas <= REPLICAS_MAX)) {
    check.fault(
      ['spec', 'replicas'],
      `'${show(replicas)}' is not a valid number of replicas`,
      `must be must be a whole number from 0 to ${REPLICAS_MAX}`,
    );
  }
  if (!isObject(spec['template'])) check.fault(['spec'], 'spec.template is missing');
}

function descend(raw: JsonObject, path: DocumentPath): JsonObject {
  let at = raw;
  for (const key of path) at = child(at, String(key));
  return at;
}

function isPort(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535;
}

/** Formats a value for messages. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return isObject(value) ? 'an object' : `the value '${show(value)}'`;
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
