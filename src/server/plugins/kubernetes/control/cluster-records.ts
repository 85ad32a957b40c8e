/** Reduces objects to the data that workers answer with. */
import type {
  KubeObject,
  Node,
  Pod,
  Service,
  ServiceImport,
  EndpointSlice,
} from '../../../kube/store/objects.ts';
import type { ObjectRecord, RecordFields, Reduction } from '../../../kube/store/object-record.ts';
import type {
  ImportFact,
  NamespaceFact,
  NodeFact,
  ServiceFact,
  SliceFact,
} from '../contract/cluster-facts.ts';
import {
  encodeAddresses,
  encodeEndpoints,
  encodePrefixes,
  printPorts,
} from '../contract/endpoint-encoding.ts';
import { placeHash } from '../contract/place-hash.ts';
import { POD, type PodRecord } from './pod-table.ts';

/** An object as the control part stores it. Workers receive all of them except pods. */
export type ClusterRecord =
  | NamespaceFact
  | ServiceFact
  | SliceFact
  | ImportFact
  | NodeFact
  | PodRecord;

type FieldsOf<R extends ObjectRecord> = RecordFields<Exclude<keyof R, keyof ObjectRecord> & string>;

const fields = {
  Namespace: {} satisfies FieldsOf<NamespaceFact>,
  Service: {
    form: 'shared',
    addresses: 'bytes',
    ports: 'shared',
    external: 'text',
    outside: 'text',
  } satisfies FieldsOf<ServiceFact>,
  EndpointSlice: {
    service: 'text',
    imported: 'text',
    cluster: 'shared',
    ports: 'shared',
    endpoints: 'bytes',
  } satisfies FieldsOf<SliceFact>,
  ServiceImport: {
    form: 'shared',
    addresses: 'bytes',
    ports: 'shared',
  } satisfies FieldsOf<ImportFact>,
  Node: { zone: 'bytes', prefixes: 'bytes' } satisfies FieldsOf<NodeFact>,
  Pod: {
    addresses: 'bytes',
    flags: 'number',
    labels: 'pairs',
    node: 'shared',
  } satisfies FieldsOf<PodRecord>,
} as const;

/** The options that determine the records' content. */
export interface ReductionOptions {
  /** If true, endpoints without a host name are named after their pod. */
  readonly podNames: boolean;
  /** True if workers need the external addresses of services (for `k8s_external`). */
  readonly outside: boolean;
}

export function clusterRecords({ podNames, outside }: ReductionOptions): Reduction<ClusterRecord> {
  return {
    key: JSON.stringify({ podNames, outside }),
    fields,
    of(object: KubeObject): ClusterRecord {
      switch (object.kind) {
        case 'Namespace':
          return { kind: 'Namespace', namespace: '', name: object.name };
        case 'Service':
          return serviceFact(object, outside);
        case 'ServiceImport':
          return importFact(object);
        case 'EndpointSlice':
          return sliceFact(object, podNames);
        case 'Pod':
          return podRecord(object);
        case 'Node':
          return nodeFact(object);
      }
    },
  };
}

function serviceFact(service: Service, withOutside: boolean): ServiceFact {
  const { kind, namespace, name, type, clusterIPs, externalName, ports } = service;
  const form =
    type === 'ExternalName' ? 'external' : clusterIPs[0] === 'None' ? 'headless' : 'cluster';
  return {
    kind,
    namespace,
    name,
    form,
    addresses: form === 'cluster' ? encodeAddresses(clusterIPs) : '',
    ports: printPorts(ports),
    external: externalName,
    outside: withOutside ? [...service.externalIPs, ...service.loadBalancer].join(' ') : '',
  };
}

function importFact({ kind, namespace, name, type, ips, ports }: ServiceImport): ImportFact {
  const headless = type === 'Headless';
  return {
    kind,
    namespace,
    name,
    form: headless ? 'headless' : 'cluster',
    addresses: headless ? '' : encodeAddresses(ips),
    ports: printPorts(ports),
  };
}

function sliceFact(slice: EndpointSlice, podNames: boolean): SliceFact {
  const { kind, namespace, name, service, triggeredAt } = slice;
  return {
    kind,
    namespace,
    name,
    service,
    imported: slice.importedService ?? '',
    cluster: slice.cluster ?? '',
    ports: printPorts(slice.ports),
    endpoints: encodeEndpoints(slice.endpoints, podNames),
    triggeredAt,
  };
}

function nodeFact({ kind, name, zone, prefixes }: Node): NodeFact {
  return { kind, namespace: '', name, zone: placeHash(zone), prefixes: encodePrefixes(prefixes) };
}

function podRecord(pod: Pod): PodRecord {
  const { kind, namespace, name, phase } = pod;
  const finished = phase === 'Succeeded' || phase === 'Failed' || phase === 'Unknown';
  return {
    kind,
    namespace,
    name,
    addresses: finished ? '' : encodeAddresses(pod.ips),
    flags: (pod.hostNetwork ? POD.HOST_NETWORK : 0) | (pod.terminating ? POD.TERMINATING : 0),
    labels: pod.labels ?? {},
    node: pod.nodeName ?? '',
  };
}
