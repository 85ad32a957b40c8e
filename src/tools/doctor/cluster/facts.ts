/**
 * Everything known about a cluster’s DNS after it has been read, measured and queried, for findings
 * to examine.
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
import { usualDnsSelector } from '../../pods/dns-service.ts';
import type { DnsService } from './service.ts';

/** A part that could not be read, and the verdict that is missing as a result. */
export interface Lacking {
  /** The error of the API server. */
  readonly why: string;
  /** The part that cannot be examined. */
  readonly so: string;
}

/** An upstream group and its servers’ replies. */
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

/** A node’s properties that concern DNS. */
export interface ClusterNode {
  readonly name: string;
  readonly ready: boolean;
}

/** Facts. Null means that a fact could not be determined; `lacking` gives the reason. */
export interface ClusterFacts {
  /** Shown in messages: `context prod`. */
  readonly cluster: string;
  readonly namespace: string;
  readonly pods: readonly DnsPod[] | null;
  /** Also null if only one namespace’s pods could be listed. */
  readonly clients: readonly ClientGroup[] | null;
  readonly clientPods: number;
  readonly service: DnsService | null;
  readonly endpoints: readonly DnsEndpoint[] | null;
  readonly nodes: readonly ClusterNode[] | null;
  readonly cutOff: readonly CutOff[] | null;
  readonly autoscalers: readonly AutoscalerFacts[] | null;
  /** `iptables`, `ipvs`, `nftables`; null if its ConfigMap was not found. */
  readonly proxyMode: string | null;
  /** The linter's report on the configuration; null if no Corefile could be read. */
  readonly configuration: LintReport | null;
  readonly measurement: Measurement;
  /** Null if this machine is not in the pod network, so queries from here show nothing. */
  readonly answers: Answers | null;
  /** Null if none was queried. */
  readonly upstreams: readonly AskedUpstreams[] | null;
  /** Before and after the measurement; null if not readable here. */
  readonly kernel: readonly [KernelCounters, KernelCounters] | null;
  /** Missing permissions of DNS pods that run but are not ready; null if unknown. */
  readonly missingRights: readonly MissingRight[] | null;
  readonly lacking: readonly Lacking[];
}

/** The cluster’s DNS servers, without node caches. */
export function serversOf({ pods }: ClusterFacts): readonly DnsPod[] {
  return (pods ?? []).filter(({ role }) => role === 'server');
}

/** The pod behind `10.244.0.5:53`, as shown in messages: `coredns-abc (node-1)`. */
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

/** A pod’s name in findings: `kube-system/coredns-abc`. */
export function nameOf({ namespace, name }: DnsPod): string {
  return `${namespace}/${name}`;
}

/** Selects the DNS pods, in kubectl's syntax. */
export function dnsSelectorOf({ service }: ClusterFacts): string {
  const selector = service?.selector ?? '';
  return selector === '' ? usualDnsSelector : selector;
}

/**
 * Replies from addresses that belong to a pod. Other addresses behind the Service are a separate finding.
 */
export function ofPods(
  replies: readonly ServerReply[],
  { pods }: ClusterFacts,
): readonly ServerReply[] {
  const known = new Set((pods ?? []).flatMap(({ addresses }) => addresses));
  return known.size === 0 ? replies : replies.filter(({ host }) => known.has(host));
}

/** The command that lints the configuration. */
export function lintCommand({ namespace }: Pick<ClusterFacts, 'namespace'>): string {
  return `ndots lint --cluster${namespace === 'kube-system' ? '' : ` -n ${namespace}`}`;
}
