/** Finds the facts: reads the objects, lints what they configure, measures the DNS pods, and asks them. */
import { Problem } from '../../base/problem.ts';
import type { ApiClient } from '../../kube/api/client.ts';
import { child, children, text, textMap, type JsonObject } from '../../kube/api/json-object.ts';
import type { GivenFile } from '../../lint/gather.ts';
import type { LintReport } from '../../lint/lint.ts';
import type { ProbeContext } from '../../probe/check.ts';
import { noObjects } from '../../probe/cluster-objects.ts';
import { uniqueServers } from '../../probe/asking.ts';
import { askUpstream, differingViews } from '../upstreams.ts';
import { askCluster, greet, type Answers, type AskPlan } from './asking.ts';
import { domainIn, metricsPortIn, upstreamGroups } from './configuration.ts';
import type { AskedUpstreams, Autoscaler, ClusterFacts, ClusterNode, Lacking } from './facts.ts';
import { kernelCounters } from './kernel.ts';
import { measure, type Measurement } from './measure.ts';
import { fileOf, readObjects, type ReadList } from './objects.ts';
import { isUnusual, Pods, type ClientGroup, type DnsPod } from './pods.ts';
import { cutOff } from './policies.ts';
import { dnsServiceOf, endpointsOf, externalNames, knownNames, largeName } from './service.ts';
import { configured, running } from './wanted.ts';

/** What it takes. */
export interface ExamineParts {
  readonly client: ApiClient;
  /** For people: `context prod`. */
  readonly cluster: string;
  /** Where the DNS pods are. */
  readonly namespace: string;
  /** Of the cluster, without a final dot; null: what the Corefile says, else cluster.local. */
  readonly domain: string | null;
  /** Names outside the cluster that are to be asked for, absolute. */
  readonly names: readonly string[];
  /** The search path of this machine, without final dots. */
  readonly search: readonly string[];
  /** Whether this runs in a pod, and so surely in the pod network. */
  readonly inPod: boolean;
  /** Between two samples, milliseconds. */
  readonly forMs: number;
  readonly probe: Pick<ProbeContext, 'network' | 'random' | 'clock' | 'timeoutMs' | 'tries'>;
  readonly lint: (files: readonly GivenFile[]) => Promise<LintReport>;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
  /** Told what is being done. */
  readonly progress: (text: string) => void;
}

/** More replicas are measured and asked no better than these. */
const REPLICAS_MAX = 64;
/** More kinds of clients are not linted. */
const CLIENTS_MAX = 500;
/** More suffixes are not asked about. */
const SUFFIXES_MAX = 12;
const UPSTREAMS_MAX = 16;

/** The facts. Rejects with a `Problem` where nothing at all can be read, and when aborted. */
export async function examine(parts: ExamineParts): Promise<ClusterFacts> {
  const { client, cluster, namespace, signal, progress } = parts;
  progress('reading objects');
  const pods = new Pods(namespace);
  const lists = await readObjects(
    client,
    [...configured(namespace), ...running(namespace)],
    signal,
    (kind, item) => {
      if (kind !== 'Pod') return trimmed(kind, item);
      pods.take(item);
      return null;
    },
  );
  if (lists.every(({ failure }) => failure !== null)) throw unreadable(lists);
  const lacking: Lacking[] = [...lackingOf(lists)];
  const items = (kind: string, own = false): readonly JsonObject[] | null => {
    const found = lists.filter(
      ({ wanted, failure }) =>
        wanted.kind === kind && failure === null && (!own || wanted.namespace !== null),
    );
    return found.at(-1)?.items ?? null;
  };
  const allServices = items('Service') ?? [];
  const service = dnsServiceOf(
    allServices.filter((each) => text(child(each, 'metadata'), 'namespace') === namespace),
  );
  const slices = items('EndpointSlice');
  const endpoints = slices === null || service === null ? null : endpointsOf(slices, service);
  const hasPods = items('Pod') !== null;
  if (hasPods && service === null && pods.servers.length === 0 && items('Service') !== null)
    throw new Problem({
      code: 'no-replicas',
      text: `there is no DNS service and no DNS pod in namespace ${namespace} of ${cluster}`,
      hint: 'A service is known by its name kube-dns or the label k8s-app=kube-dns, a pod by its image.',
      remedy: 'Name their namespace: ndots doctor cluster -n openshift-dns',
    });
  const policies = items('NetworkPolicy');

  progress('judging the configuration');
  const unusual = pods.clients.filter(isUnusual);
  const configuration = await lintOf(parts, lists, unusual);
  const subject = configuration?.subject ?? null;
  const domain = parts.domain ?? (subject === null ? null : domainIn(subject)) ?? 'cluster.local';

  progress(`measuring for ${parts.forMs / 1000} s`);
  const kernel = kernelCounters();
  const measurement = await measure(some(pods.servers), {
    client,
    clock: parts.probe.clock,
    forMs: parts.forMs,
    port: subject === null ? null : metricsPortIn(subject),
    signal,
  });
  const later = kernelCounters();
  lacking.push(...leftOut(pods.servers.length, unusual.length));
  if (measurement.refused !== null)
    lacking.push({
      why: measurement.refused.message,
      so: 'what DNS pods count, from outside of the pod network',
    });

  progress('asking');
  const context = contextOf(parts, domain, service?.vips ?? [], pods.servers, endpoints);
  const plan: AskPlan = {
    domain,
    known: knownNames(allServices, domain, parts.nowMs),
    external: [...new Set([...parts.names, ...externalNames(allServices)])].slice(0, 8),
    large: largeName(allServices, slices ?? [], domain),
    suffixes: suffixesOf(parts, pods, domain),
  };
  const answers = await answersOf(parts, context, plan, measurement);
  const upstreams =
    answers === null || subject === null
      ? null
      : await askedUpstreams(
          parts,
          upstreamGroups(subject, forwardedTo(measurement)),
          plan.external,
        );
  return {
    cluster,
    namespace,
    pods: hasPods ? pods.servers : null,
    clients: hasPods ? pods.clients : null,
    clientPods: pods.total,
    service,
    endpoints,
    nodes: items('Node')?.map(nodeOf) ?? null,
    cutOff: policies === null || !hasPods ? null : cutOff(policies, pods.clients),
    autoscalers: (items('HorizontalPodAutoscaler') ?? []).flatMap(autoscalerOf),
    proxyMode: proxyModeOf(items('ConfigMap') ?? []),
    configuration,
    measurement,
    answers,
    upstreams,
    kernel: kernel === null || later === null ? null : [kernel, later],
    lacking,
  };
}

/** Of long lists what is looked at. */
function trimmed(kind: string, item: JsonObject): JsonObject {
  if (kind !== 'Service' && kind !== 'EndpointSlice') return item;
  const metadata = child(item, 'metadata');
  const { name, namespace, labels, creationTimestamp } = metadata;
  const { status: _status, ...rest } = item;
  return { ...rest, metadata: { name, namespace, labels, creationTimestamp } };
}

function lackingOf(lists: readonly ReadList[]): readonly Lacking[] {
  return lists.flatMap(({ wanted, failure, narrowed }) => {
    if (failure !== null) return [{ why: failure.message, so: wanted.for }];
    const outside = `${wanted.for}, outside of ${wanted.within}`;
    return narrowed === null ? [] : [{ why: narrowed.message, so: outside }];
  });
}

function unreadable(lists: readonly ReadList[]): Problem {
  const failures = lists.map(({ failure }) => failure!);
  const other = failures.find(({ kind }) => kind !== 'forbidden');
  const failure = other ?? failures[0]!;
  return new Problem({
    code: 'cluster-not-asked',
    text: failure.message,
    hint:
      other === undefined
        ? 'None of the objects that have their say in DNS may be read.'
        : failure.advice || undefined,
    remedy:
      other === undefined
        ? 'ndots doctor cluster --rbac prints the rights that it takes.'
        : 'Does this work: kubectl get pods -n kube-system?',
    cause: failure,
  });
}

async function lintOf(
  { cluster, lint }: ExamineParts,
  lists: readonly ReadList[],
  unusual: readonly ClientGroup[],
): Promise<LintReport | null> {
  const files = lists
    .filter(({ wanted, failure }) => failure === null && isLinted(wanted.kind, wanted.namespace))
    .map(({ wanted, items }) =>
      fileOf(
        cluster,
        wanted.kind,
        wanted.kind === 'ConfigMap' ? items.filter(holdsCorefile) : items,
      ),
    );
  if (unusual.length > 0)
    files.push(
      fileOf(
        cluster,
        'Pod',
        unusual.slice(0, CLIENTS_MAX).map(({ sample }) => sample),
      ),
    );
  const report = await lint(files);
  return report.subject.corefiles.length === 0 && report.findings.length === 0 ? null : report;
}

/** The services of the DNS namespace are linted, those of all namespaces are only asked for. */
function isLinted(kind: string, namespace: string | null): boolean {
  return kind === 'Service'
    ? namespace !== null
    : !['Pod', 'EndpointSlice', 'Node', 'HorizontalPodAutoscaler'].includes(kind);
}

function holdsCorefile(object: JsonObject): boolean {
  return Object.keys(child(object, 'data')).some((key) =>
    /corefile|\.(override|server)$/i.test(key),
  );
}

function contextOf(
  { probe }: ExamineParts,
  domain: string,
  vip: ProbeContext['vip'],
  pods: readonly DnsPod[],
  endpoints: ClusterFacts['endpoints'],
): ProbeContext {
  const ready = (endpoints ?? []).filter((each) => each.ready);
  const port = ready[0]?.port ?? 53;
  const own = pods
    .filter(({ role, ready: isReady, leaving }) => role === 'server' && isReady && !leaving)
    .flatMap(({ addresses }) => addresses.slice(0, 1).map((host) => ({ host, port })));
  const replicas = uniqueServers([
    ...ready.map(({ host, port: at }) => ({ host, port: at })),
    ...own,
  ]);
  const search = [`default.svc.${domain}`, `svc.${domain}`, domain];
  return {
    ...probe,
    objects: noObjects,
    vip,
    replicas: some(replicas),
    search,
    ndots: 5,
    clusterDomain: domain,
  };
}

/** Suffixes that pods have beside those of the cluster: from their dnsConfig, and from where this runs, if that is a pod. */
function suffixesOf({ search }: ExamineParts, pods: Pods, domain: string): readonly string[] {
  const theirs = pods.clients.flatMap(({ searches }) => searches);
  const all = [...search, ...theirs].map((suffix) => suffix.toLowerCase().replace(/\.$/, ''));
  const isOfCluster = (suffix: string): boolean =>
    suffix === domain || suffix.endsWith(`.${domain}`);
  const foreign = [...new Set(all)].filter((suffix) => suffix !== '' && !isOfCluster(suffix));
  return [`svc.${domain}.`, ...foreign.slice(0, SUFFIXES_MAX).map((suffix) => `${suffix}.`)];
}

/** Null: from here nobody answers, and that is because of where here is. */
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

/** The servers that metrics name as asked. */
function forwardedTo({ measured }: Measurement): ReturnType<typeof uniqueServers> {
  const names = measured.flatMap(({ after }) =>
    ['coredns_proxy_request_duration_seconds_count', 'coredns_forward_requests_total'].flatMap(
      (metric) => [...after.by(metric, 'to').keys()],
    ),
  );
  return uniqueServers(
    names.flatMap((name) => {
      const [, host, port] = /^\[?([0-9a-fA-F.:]+?)\]?:(\d{1,5})$/.exec(name) ?? [];
      return host === undefined ? [] : [{ host, port: Number(port) }];
    }),
  );
}

function askedUpstreams(
  { probe }: ExamineParts,
  groups: ReturnType<typeof upstreamGroups>,
  names: readonly string[],
): Promise<readonly AskedUpstreams[]> {
  return Promise.all(
    groups.slice(0, UPSTREAMS_MAX).map(async (group) => {
      const servers = group.servers.slice(0, UPSTREAMS_MAX);
      const replies = await Promise.all(
        servers.map((server) => askUpstream(probe, server, group.zone)),
      );
      const alive = replies.filter(({ udp }) => udp.reply !== null).map(({ server }) => server);
      const within = names.filter((name) => group.zone === '.' || name.endsWith(`.${group.zone}`));
      const differences = alive.length < 2 ? [] : await differingViews(probe, alive, within);
      return { ...group, replies, differences };
    }),
  );
}

function nodeOf(object: JsonObject): ClusterNode {
  return {
    name: text(child(object, 'metadata'), 'name'),
    ready: children(child(object, 'status'), 'conditions').some(
      (each) => text(each, 'type') === 'Ready' && text(each, 'status') === 'True',
    ),
  };
}

function autoscalerOf(object: JsonObject): readonly Autoscaler[] {
  const spec = child(object, 'spec');
  const status = child(object, 'status');
  const number = (of: JsonObject, key: string): number => {
    const value = of[key];
    return typeof value === 'number' ? value : 0;
  };
  const target = text(child(spec, 'scaleTargetRef'), 'name');
  if (!/dns|ndots/.test(target)) return [];
  return [
    {
      name: target,
      current: number(status, 'currentReplicas'),
      desired: number(status, 'desiredReplicas'),
      most: number(spec, 'maxReplicas'),
    },
  ];
}

/** kube-proxy's own ConfigMap, as kubeadm makes it. Without a mode it is iptables. */
function proxyModeOf(configMaps: readonly JsonObject[]): string | null {
  const found = configMaps.find((each) => text(child(each, 'metadata'), 'name') === 'kube-proxy');
  const settings = found === undefined ? undefined : textMap(found, 'data')['config.conf'];
  if (settings === undefined) return null;
  return /^mode: *"?([a-z]+)"? *$/m.exec(settings)?.[1] ?? 'iptables';
}

/** What is not looked at because there is more of it than is looked at. */
function leftOut(servers: number, clients: number): readonly Lacking[] {
  const all = [
    ['DNS pods', servers, REPLICAS_MAX],
    ['kinds of clients with settings of their own', clients, CLIENTS_MAX],
  ] as const;
  return all
    .filter(([, found, most]) => found > most)
    .map(([what, found, most]) => ({
      why: `there are ${found}`,
      so: `${what} behind the first ${most}`,
    }));
}

function some<T>(list: readonly T[]): readonly T[] {
  return list.slice(0, REPLICAS_MAX);
}
