/** `--from pod/NAME`, `deploy/NAME`, `svc/NAME` …: determines the resolv.conf that the kubelet writes for that pod. */
import {
  asObject,
  child,
  children,
  text,
  texts,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { nearest, Problem } from '../../../server/base/problem.ts';
import { clusterPods } from '../../../tools/pods/cluster-pods.ts';
import { manifestPods } from '../../../tools/pods/manifest-pods.ts';
import { podBehind } from '../../../tools/pods/pod-behind.ts';
import type { PodSource } from '../../../tools/pods/pod-source.ts';
import { parseResourceName, type ResourceName } from '../../../tools/pods/resource-name.ts';
import {
  podResolvConf,
  type DnsConfig,
  type DnsPolicy,
  type KubeletDns,
  type PodDns,
  type PodResolvConf,
} from '../../../tools/resolver/dns-policy.ts';
import { linesOf, wordsOf } from '../../../tools/resolver/resolv-conf.ts';
import { accessOf, type ClusterOptions } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import { coreVersion } from '../version/version.ts';

/** The cluster DNS address used by kubeadm and most other clusters. */
export const usualDns = '10.96.0.10';

export interface PodSettings extends PodResolvConf {
  /** Display name: `pod shop/web-0, context prod`. */
  readonly from: string;
  /** Search domains in the node's resolv.conf, or null if the pod does not inherit them. */
  readonly nodeSearch: readonly string[] | null;
}

export interface PodSourceChoice extends ClusterOptions {
  readonly manifests: string | null;
}

/** Kubelet settings from the command line. */
export interface KubeletChoice {
  /** If null, it comes from the cluster or is the most common value. */
  readonly clusterDns: readonly string[] | null;
  readonly clusterDomain: string;
}

/** The pod selected on the command line. */
export interface PodChoice extends PodSourceChoice {
  /** `deploy/web`, in kubectl's syntax. */
  readonly from: string | null;
  readonly namespace: string | null;
}

/**
 * Settings for the named pod, or for a pod in the namespace without DNS settings.
 * @param nodeResolvConf the node's resolv.conf, if known
 */
export async function resolvConfOfPod(
  options: PodChoice & KubeletChoice,
  nodeResolvConf: string,
  io: Pick<Io, 'env' | 'signal'>,
): Promise<PodSettings> {
  const { from, namespace, clusterDns, clusterDomain } = options;
  const wanted = from === null ? null : parseResourceName(from);
  const warnings: string[] = [];
  const source = await podSource(options, io, (problem) => warnings.push(problem.print()));
  const kubelet = { clusterDns, clusterDomain, nodeResolvConf };
  try {
    const found =
      wanted === null
        ? await settingsWithin(source, namespace ?? 'default', kubelet)
        : await settingsBehind(
            source,
            { ...wanted, namespace: wanted.namespace ?? namespace },
            kubelet,
          );
    return { ...found, warnings: [...warnings, ...found.warnings] };
  } catch (error) {
    // An error in the manifests may explain why the pod is missing.
    const [why] = warnings;
    throw error instanceof Problem && why !== undefined
      ? error.with({ hint: why.replaceAll(/\n\s*/g, '; ') })
      : error;
  } finally {
    source.close();
  }
}

type Kubelet = Omit<KubeletDns, 'clusterDns'> & KubeletChoice;

/** Settings for the pod that the name refers to, and its own dnsConfig. */
export async function settingsBehind(
  source: PodSource,
  wanted: ResourceName,
  kubelet: Kubelet,
): Promise<PodSettings & { readonly own: PodDns }> {
  const pod = await podBehind(source, wanted);
  const own = podDnsOf(pod.spec, pod.namespace);
  const node = text(pod.spec, 'nodeName');
  return { ...(await settingsOf(own, pod.name, source, kubelet, node)), own };
}

/** Settings for a pod in this namespace with the default policy. */
async function settingsWithin(
  source: PodSource,
  namespace: string,
  kubelet: Kubelet,
): Promise<PodSettings> {
  if (source.namespaces?.has(namespace) === false) {
    const meant = nearest(namespace, source.namespaces);
    throw new Problem({
      code: 'namespace-missing',
      text: `there is no namespace ${namespace} in ${source.name}`,
      remedy: meant === null ? undefined : `Did you mean -n ${meant}?`,
    });
  }
  const name = `any pod in namespace ${namespace}`;
  const found = await settingsOf(podDnsOf({}, namespace), name, source, kubelet);
  const note = `no --from POD was given, so the settings of ${name} are used (-n NAMESPACE; --from host for this machine's)`;
  return { ...found, warnings: [note, ...found.warnings] };
}

async function settingsOf(
  own: PodDns,
  name: string,
  source: PodSource,
  kubelet: Kubelet,
  node = '',
): Promise<PodSettings> {
  const warnings: string[] = [];
  const clusterDns = kubelet.clusterDns ?? (await dnsOf(source, node, warnings));
  const conf = podResolvConf(own, { ...kubelet, clusterDns });
  return {
    text: conf.text,
    warnings: [...warnings, ...conf.warnings],
    from: `${name}, ${source.name}`,
    nodeSearch: own.policy === 'None' ? null : searchOf(kubelet.nodeResolvConf),
  };
}

function searchOf(resolvConf: string | null): readonly string[] {
  const lines = linesOf(resolvConf ?? '').map(wordsOf);
  return lines.findLast(([keyword]) => keyword === 'search')?.slice(1) ?? [];
}

/** Suggestions for `--from TYPE/`. Empty if the cluster does not reply. */
export async function podNames(
  options: PodChoice,
  io: Pick<Io, 'env' | 'signal'>,
): Promise<readonly string[]> {
  const [type = ''] = (options.from ?? '').split('/');
  const { of } = parseResourceName(`${type}/any`);
  const source = await podSource(options, io, () => {});
  try {
    const names = await source.names(of, options.namespace);
    return names.map((name) => `${type}/${name}`);
  } finally {
    source.close();
  }
}

/** Opens the cluster or the manifests directory. Call `close` when done. */
export async function podSource(
  options: PodSourceChoice,
  io: Pick<Io, 'env' | 'signal'>,
  problem: (problem: Problem) => void,
): Promise<PodSource & { close(): void }> {
  const { manifests } = options;
  if (manifests !== null) return { ...(await manifestPods(manifests, problem)), close: () => {} };
  return clusterPods(accessOf(options, io), {
    version: coreVersion,
    signal: io.signal,
    instead: '--manifests DIR',
  });
}

/** Unless specified, the kubelet's clusterDNS is the address of the cluster's DNS service. */
async function dnsOf(
  source: PodSource,
  node: string,
  warnings: string[],
): Promise<readonly string[]> {
  const found = await source.dnsAddresses(node);
  if (found.length > 0) return found;
  warnings.push(
    `the cluster's DNS address was not found in ${source.name}, so ${usualDns} is used (--cluster-dns IP)`,
  );
  return [usualDns];
}

/**
 * The DNS settings in a pod's `spec`.
 * @throws Problem for an unknown policy
 */
function podDnsOf(spec: JsonObject, namespace: string): PodDns {
  const policy = text(spec, 'dnsPolicy') || 'ClusterFirst';
  if (!['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'].includes(policy)) {
    throw new Problem({
      code: 'bad-manifest',
      text: `dnsPolicy "${policy}" does not exist in Kubernetes`,
    });
  }
  return {
    namespace,
    policy: policy as DnsPolicy,
    config: spec['dnsConfig'] === undefined ? null : dnsConfigOf(child(spec, 'dnsConfig')),
    hostNetwork: spec['hostNetwork'] === true,
  };
}

function dnsConfigOf(config: JsonObject): DnsConfig {
  return {
    nameservers: texts(config, 'nameservers'),
    searches: texts(config, 'searches'),
    options: children(config, 'options').map((option) => ({
      name: text(option, 'name'),
      value: optionValue(asObject(option)['value']),
    })),
  };
}

/** YAML parses some values as numbers where Kubernetes requires strings. */
function optionValue(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : undefined;
}
