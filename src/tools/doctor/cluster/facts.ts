/**
 * All that is known of the DNS of a cluster, once it has been read, measured and asked: what
 * findings look at.
 */
import type { LintReport } from '../../lint/lint.ts';
import type { DnsEndpoint } from '../../probe/replicas.ts';
import type { UpstreamReplies, ViewDifference } from '../../lint/live/upstreams.ts';
import type { Answers, ServerReply } from './asking.ts';
import type { UpstreamGroup } from '../../lint/live/cluster-configuration.ts';
import type { KernelCounters } from './kernel.ts';
import type { Measurement } from './measure.ts';
import type { ClientGroup, DnsPod } from './pods.ts';
import type { MissingRight } from './rights.ts';
import type { CutOff } from './policies.ts';
import { usualDnsSelector } from '../../../server/kube/pods/dns-service.ts';
import type { DnsService } from './service.ts';

/** A part that could not be read, and the judgement that is missing because of it. */
export interface Lacking {
  /** The error of the API server. */
  readonly why: string;
  /** The part that cannot be judged. */
  readonly so: string;
}

/** An upstream group, and what its servers replied. */
export interface AskedUpstreams extends UpstreamGroup {
  readonly replies: readonly UpstreamReplies[];
  readonly differences: readonly ViewDifference[];
}

/** The workload's autoscaler. */
export interface AutoscalerFacts {
  readonly name: string;
  readonly current: number;
  readonly desired: number;
  readonly most: number;
}

/** A node, as far as DNS is concerned. */
export interface ClusterNode {
  readonly name: string;
  readonly ready: boolean;
}

/** Facts. A null could not be determined; `lacking` has the reason. */
export interface ClusterFacts {
  /** For people: `context prod`. */
  readonly cluster: string;
  readonly namespace: string;
  readonly pods: readonly DnsPod[] | null;
  /** Null also where the pods of one namespace alone could be listed. */
  readonly clients: readonly ClientGroup[] | null;
  readonly clientPods: number;
  readonly service: DnsService | null;
  readonly endpoints: readonly DnsEndpoint[] | null;
  readonly nodes: readonly ClusterNode[] | null;
  readonly cutOff: readonly CutOff[] | null;
  readonly autoscalers: readonly AutoscalerFacts[] | null;
  /** `iptables`, `ipvs`, `nftables`; null: its ConfigMap was not found. */
  readonly proxyMode: string | null;
  /** The linter's report on the configuration; null: no Corefile could be read. */
  readonly configuration: LintReport | null;
  readonly measurement: Measurement;
  /** Null: this machine is not in the pod network, and asking from here says nothing. */
  readonly answers: Answers | null;
  /** Null: none was asked. */
  readonly upstreams: readonly AskedUpstreams[] | null;
  /** Before and after the measurement; null: not readable here. */
  readonly kernel: readonly [KernelCounters, KernelCounters] | null;
  /** Of DNS pods that run and are not ready; null: not known. */
  readonly missingRights: readonly MissingRight[] | null;
  readonly lacking: readonly Lacking[];
}

/** DNS servers of the cluster; caches of nodes are apart. */
export function serversOf({ pods }: ClusterFacts): readonly DnsPod[] {
  return (pods ?? []).filter(({ role }) => role === 'server');
}

/** The pod behind `10.244.0.5:53`, for people: `coredns-abc (node-1)`. */
export function podAt({ pods }: ClusterFacts, server: string): string {
  const found = (pods ?? []).find(({ addresses }) =>
    addresses.some(
      (address) => server.startsWith(`${address}:`) || server.startsWith(`[${address}]:`),
    ),
  );
  return found === undefined
    ? server
    : `${found.name} (${server}${found.node === '' ? '' : `, ${found.node}`})`;
}

/** Pods that findings name: `kube-system/coredns-abc`. */
export function nameOf({ namespace, name }: DnsPod): string {
  return `${namespace}/${name}`;
}

/** Selects the DNS pods, in kubectl's syntax. */
export function dnsSelectorOf({ service }: ClusterFacts): string {
  const selector = service?.selector ?? '';
  return selector === '' ? usualDnsSelector : selector;
}

/**
 * Replies of addresses that a pod has: that others are behind the service is a finding of its own.
 */
export function ofPods(
  replies: readonly ServerReply[],
  { pods }: ClusterFacts,
): readonly ServerReply[] {
  const known = new Set((pods ?? []).flatMap(({ addresses }) => addresses));
  return known.size === 0 ? replies : replies.filter(({ host }) => known.has(host));
}
