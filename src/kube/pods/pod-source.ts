/** Where pods and what has pods are read from: a cluster, or a folder of manifests. */
import type { JsonObject } from '../../base/json-object.ts';
import type { PodOwnerKind, ResourceKind } from './resource-name.ts';

/** Where a pod and what makes pods can be looked up, one thing at a time. */
export interface PodSource {
  /** For people: `context prod`, or the folder. */
  readonly name: string;
  /** The namespace that is meant where none is said; null = any. */
  readonly namespace: string | null;
  /** Null if there is none of that name. */
  get(of: ResourceKind, namespace: string | null, name: string): Promise<JsonObject | null>;
  /** The pods that a selector (in the API's syntax) selects. */
  pods(namespace: string, selector: string): Promise<readonly JsonObject[]>;
  /** Names of all objects of a kind, for completion. */
  names(of: ResourceKind, namespace: string | null): Promise<readonly string[]>;
  /** Addresses of the cluster's DNS service; empty if there is none to be found. */
  dnsAddresses(): Promise<readonly string[]>;
}

/** What pods are made from, where `kind` has it: the template's path within the object. */
export const templatePaths: Readonly<Partial<Record<PodOwnerKind, readonly string[]>>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};
