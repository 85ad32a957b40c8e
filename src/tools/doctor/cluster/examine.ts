/**
 * Collects the facts: reads the objects, lints their configuration, and measures and queries the
 * DNS pods.
 */
import { printSpan } from '../../../server/base/elapsed.ts';
import { child, text, type JsonObject } from '../../../server/base/json-object.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import type { GivenFile } from '../../lint/gather.ts';
import type { LintReport } from '../../lint/lint.ts';
import type { Subject } from '../../lint/subject.ts';
import type { ProbeContext } from '../../probe/check.ts';
import { askCluster, greet, type Answers, type AskPlan } from './asking.ts';
import { domainIn, metricsPortIn, upstreamGroups } from '../../lint/live/cluster-configuration.ts';
import type { ClusterFacts, Lacking } from './facts.ts';
import { kernelCounters } from './kernel.ts';
import { firstOf, lackingOf, unreadable } from './lacking.ts';
import { lintOf } from './linted.ts';
import { measure, type Measurement } from './measure.ts';
import { autoscalerOf, nodeOf, proxyModeOf, trimmed } from './object-facts.ts';
import { readObjects, whole } from './objects.ts';
import { isUnusual, Pods } from './pods.ts';
import { cutOff } from './policies.ts';
import {
  askedUpstreams,
  contextOf,
  forwardedTo,
  suffixesOf,
  type ClusterAskingContext,
} from './questions.ts';
import { dnsServiceOf, endpointsOf, externalNames, knownNames, largeName } from './service.ts';
import { missingRights } from './rights.ts';
import { configured, running } from './wanted.ts';

export interface ExamineParts {
  readonly client: ApiClient;
  /** Shown in messages: `context prod`. */
  readonly cluster: string;
  /** The namespace of the DNS pods. */
  readonly namespace: string;
  /** The cluster’s domain, without a final dot; null means the Corefile’s, or else cluster.local. */
  readonly domain: string | null;
  /** External names to query, absolute. */
  readonly names: readonly string[];
  /** This machine’s search path, without final dots. */
  readonly search: readonly string[];
  /** True if this runs in a pod, and therefore in the pod network. */
  readonly inPod: boolean;
  /** Between two samples, milliseconds. */
  readonly forMs: number;
  readonly probe: ClusterAskingContext;
  readonly lint: (files: readonly GivenFile[]) => Promise<LintReport>;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
  /** Receives the current step. */
  readonly progress: (text: string) => void;
}

/** The most replicas to measure and query; more would not improve the result. */
const REPLICAS_MAX = 64;
/** The most kinds of clients to lint. */
const CLIENTS_MAX = 500;
/** The most external names that are queried. */
const EXTERNAL_MAX = 8;

/** Collects the facts. Rejects with a `Problem` if nothing at all can be read, and when aborted. */
export async function examine(parts: ExamineParts): Promise<ClusterFacts> {
  const { client, cluster, namespace, signal, progress } = parts;
  const objects = await objectsOf(parts);
  const { lists, pods, items, service, endpoints, hasPods, hasEveryPod } = objects;
  const lacking: Lacking[] = [...lackingOf(lists)];
  const policies = items('NetworkPolicy');

  progress('checking the configuration');
  const clients = 'kinds of clients with their own DNS settings';
  const unusual = firstOf(pods.clients.filter(isUnusual), CLIENTS_MAX, clients, lacking);
  if (pods.leftOut > 0)
    lacking.push({
      why: `there are more kinds of pods than ${pods.clients.length}`,
      so: `DNS settings of ${pods.leftOut} pods`,
    });
  const configuration = await lintOf(parts, lists, unusual);
  const subject = configuration?.subject ?? null;
  const domain = parts.domain ?? (subject === null ? null : domainIn(subject)) ?? 'cluster.local';

  const rights = await missingRights(client, pods.servers, subject, signal);
  const { measurement, kernel } = await measured(parts, pods, subject, lacking);
  const asked = await askedOf(parts, objects, { domain, subject, measurement }, lacking);
  return {
    cluster,
    namespace,
    pods: hasPods ? pods.servers : null,
    clients: hasEveryPod ? pods.clients : null,
    clientPods: pods.total,
    service,
    endpoints,
    nodes: items('Node')?.map(nodeOf) ?? null,
    cutOff: policies === null || !hasPods ? null : cutOff(policies, pods.clients),
    autoscalers: items('HorizontalPodAutoscaler')?.flatMap(autoscalerOf) ?? null,
    proxyMode: proxyModeOf(items('ConfigMap') ?? []),
    configuration,
    measurement,
    ...asked,
    missingRights: rights,
    kernel,
    lacking,
  };
}

interface Objects {
  readonly lists: Awaited<ReturnType<typeof readObjects>>;
  readonly pods: Pods;
  /** The objects of a kind; null if they cannot be read. */
  readonly items: (kind: string) => readonly JsonObject[] | null;
  readonly service: ReturnType<typeof dnsServiceOf>;
  readonly endpoints: ClusterFacts['endpoints'];
  readonly hasPods: boolean;
  /** The pods in one namespace do not show the DNS settings of others. */
  readonly hasEveryPod: boolean;
}

/** Reads the objects, and finds the DNS Service and its pods among them. */
async function objectsOf(parts: ExamineParts): Promise<Objects> {
  const { client, cluster, namespace, signal, progress } = parts;
  progress('reading objects');
  const pods = new Pods(namespace);
  const lists = await readObjects(
    client,
    [...configured(namespace), ...running(namespace)],
    signal,
    (kind, item) => {
      if (kind !== 'Pod') return whole(trimmed(kind, item));
      return { item: null, bytes: pods.take(item) };
    },
  );
  if (lists.every(({ failure }) => failure !== null)) throw unreadable(lists);
  const items = (kind: string): readonly JsonObject[] | null =>
    lists.findLast(({ wanted, failure }) => wanted.kind === kind && failure === null)?.items ??
    null;
  const service = dnsServiceOf(
    (items('Service') ?? []).filter(
      (each) => text(child(each, 'metadata'), 'namespace') === namespace,
    ),
  );
  const slices = items('EndpointSlice');
  const endpoints = slices === null || service === null ? null : endpointsOf(slices, service);
  const hasPods = items('Pod') !== null;
  const hasEveryPod =
    hasPods && lists.every((one) => one.wanted.kind !== 'Pod' || one.narrowed === null);
  if (hasPods && service === null && pods.servers.length === 0 && items('Service') !== null)
    throw new Problem({
      code: 'no-replicas',
      text: `there is no DNS Service and no DNS pod in namespace ${namespace} of ${cluster}`,
      hint: 'A DNS Service is recognized by its name (kube-dns, dns-default) or label k8s-app (kube-dns, coredns, ndots), and a DNS pod by its image.',
      remedy: 'Specify their namespace, for example: ndots doctor cluster -n openshift-dns',
    });
  return { lists, pods, items, service, endpoints, hasPods, hasEveryPod };
}

/** Measures the DNS pods, and this machine's kernel during the same time. */
async function measured(
  parts: ExamineParts,
  pods: Pods,
  subject: Subject | null,
  lacking: Lacking[],
): Promise<Pick<ClusterFacts, 'kernel'> & { readonly measurement: Measurement }> {
  parts.progress(`measuring for ${printSpan(parts.forMs)}`);
  const before = kernelCounters();
  const measurement = await measure(firstOf(pods.servers, REPLICAS_MAX, 'DNS pods', lacking), {
    client: parts.client,
    clock: parts.probe.clock,
    forMs: parts.forMs,
    port: subject === null ? null : metricsPortIn(subject),
    signal: parts.signal,
  });
  const later = kernelCounters();
  if (measurement.refused !== null)
    lacking.push({
      why: measurement.refused.message,
      so: 'DNS pod metrics, from outside the pod network',
    });
  return { measurement, kernel: before === null || later === null ? null : [before, later] };
}

interface Known {
  readonly domain: string;
  readonly subject: Subject | null;
  readonly measurement: Measurement;
}

/** Queries the DNS pods and their upstreams. */
async function askedOf(
  parts: ExamineParts,
  { pods, items, service, endpoints }: Objects,
  { domain, subject, measurement }: Known,
  lacking: Lacking[],
): Promise<Pick<ClusterFacts, 'answers' | 'upstreams'>> {
  parts.progress('asking');
  const services = items('Service') ?? [];
  const context = contextOf(parts.probe, {
    domain,
    vip: service?.vips ?? [],
    pods: pods.servers,
    endpoints,
    replicasMost: REPLICAS_MAX,
  });
  const outside = [...new Set([...parts.names, ...externalNames(services)])];
  const plan: AskPlan = {
    domain,
    known: knownNames(services, domain, parts.nowMs),
    external: firstOf(outside, EXTERNAL_MAX, 'external names', lacking),
    large: largeName(services, items('EndpointSlice') ?? [], domain),
    suffixes: suffixesOf(parts.search, pods.clients, domain, lacking),
  };
  const answers = await answersOf(parts, context, plan, measurement);
  const upstreams =
    answers === null || subject === null
      ? null
      : await askedUpstreams(
          parts.probe,
          upstreamGroups(subject, forwardedTo(measurement)),
          plan.external,
          lacking,
        );
  return { answers, upstreams };
}

/** Null if no server answers because this machine is outside the pod network. */
async function answersOf(
  { inPod, signal }: ExamineParts,
  context: ProbeContext,
  plan: AskPlan,
  { direct }: Measurement,
): Promise<Answers | null> {
  if (context.replicas.length + context.vip.length === 0) return null;
  const greeting = await greet(context);
  const heard = [...greeting.replicas, ...greeting.vips].some(({ asked }) => asked.reply !== null);
  if (!heard && !direct && !inPod) return null;
  return askCluster(context, plan, greeting, signal);
}
