/** The cluster in a story file, with its objects, DNS pods, clients and node settings, and the internet's answers. */
import { ManifestDirectory } from '../../../server/kube/manifests/directory-scan.ts';
import { parseAnswers, type Script } from '../../resolver/answers-file.ts';
import { readManifests } from '../../../server/kube/manifests/manifest-file.ts';
import type { Manifest } from '../../../server/kube/manifests/manifest.ts';
import type { ImpliedPod } from '../../../server/kube/manifests/pods.ts';
import { isObject } from '../../../server/base/json-object.ts';
import { Problem } from '../../../server/base/problem.ts';
import { podsOf } from '../cluster.ts';
import { checkCluster } from '../cluster-check.ts';
import { isOwnPath } from '../files.ts';
import {
  INTERNET,
  upstreamService,
  usualCorefile,
  usualNodeResolvConf,
  usualObjects,
} from '../defaults.ts';
import { yamlOf } from '../objects.ts';
import type { RuleMode } from '../cluster-plan.ts';
import type { StoryPlan } from '../story.ts';
import { answers, objects } from './change-steps.ts';
import { corefile, fileBeside } from './corefile-shape.ts';
import {
  address,
  anything,
  flag,
  listOf,
  mapOf,
  mapping,
  oneOrMore,
  optional,
  required,
  text,
  whole,
  word,
  type FieldsOf,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import type { StoryReading } from './story-reading.ts';

export interface PodValues {
  readonly name: string;
  readonly namespace: string;
  readonly ip: string | null;
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly dnsPolicy: string | null;
  readonly dnsConfig: unknown;
  readonly ports: readonly number[];
  readonly files: Readonly<Record<string, string>>;
}

const files: YamlShape<Readonly<Record<string, string>>> = {
  placeholder: '{ PATH: TEXT }',
  read(value, path, reading) {
    const found = mapOf(text).read(value, path, reading);
    for (const name of Object.keys(found))
      if (!isOwnPath(name))
        reading.tell([...path, name], `"${name}" is not the path of a file`, 'Example: /etc/hosts');
    return found;
  },
};

export const podFields: FieldsOf<PodValues> = {
  name: required(text, 'name'),
  namespace: optional(text, 'default', 'namespace'),
  ip: optional(address, null, 'address; by default, one from 10.244.0.0/16'),
  node: optional(text, 'node-1', 'the node it runs on'),
  labels: optional(mapOf(text), {}, 'labels for service selectors; app: NAME is always added'),
  dnsPolicy: optional(
    word(['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']),
    null,
    'as in Kubernetes',
  ),
  dnsConfig: optional(anything, null, 'as in Kubernetes: nameservers, searches, options'),
  ports: optional(listOf(whole(1, 65_535)), [], 'TCP ports where it answers HTTP'),
  files: optional(files, {}, "the pod's own files: /etc/nsswitch.conf, /etc/hosts …"),
};

export interface ClusterValues {
  readonly objects: readonly unknown[];
  readonly dnsPods: number;
  readonly pods: readonly PodValues[];
  readonly corefile: string;
  readonly nodeResolvConf: string;
  readonly rules: RuleMode | null;
  readonly ipv6: boolean;
  readonly nodeCache: boolean;
  readonly internet: Script | null;
  readonly internetAddresses: readonly string[];
}

export const clusterFields: FieldsOf<ClusterValues> = {
  objects: optional(
    { placeholder: 'FILE|[FILE, …]|[OBJECT, …]', read: readObjects } as YamlShape<
      readonly unknown[]
    >,
    [],
    'Kubernetes objects: files or directories next to the story, or the objects themselves',
  ),
  dnsPods: optional(
    whole(1, 8),
    1,
    'number of DNS pods (kube-system/dns-1 on node-1, dns-2 on node-2 …), unless the objects include a service kube-system/kube-dns',
  ),
  pods: optional(listOf(mapping(podFields, 'a pod'), 64), [], 'clients'),
  corefile: optional(
    corefile,
    usualCorefile,
    "the DNS pods' Corefile: text, a file, or replacements in the default one; @API@ stands for the API server's URL",
  ),
  nodeResolvConf: optional(
    text,
    usualNodeResolvConf,
    'the resolv.conf that kubelet finds on the nodes',
  ),
  rules: optional(
    word(['iptables', 'nftables']),
    null,
    'the kind of service rules; by default, as on the command line',
  ),
  ipv6: optional(flag, true, 'whether pods also have IPv6 addresses'),
  nodeCache: optional(
    flag,
    false,
    'whether to add the service that node caches use to query the DNS pods',
  ),
  internet: optional(answers, null, 'answers from the internet, as rules of an answers file'),
  internetAddresses: optional(
    listOf(address, 16),
    [INTERNET],
    'the addresses where the internet answers',
  ),
};

export interface ReadCluster {
  readonly plan: StoryPlan;
  /** The internet's answers. */
  readonly script: Script;
  readonly manifests: readonly Manifest[];
  readonly pods: readonly ImpliedPod[];
}

function readObjects(
  value: unknown,
  path: DocumentPath,
  reading: StoryReading,
): readonly unknown[] {
  if (Array.isArray(value) && value.some(isObject)) return objects.read(value, path, reading);
  const names = oneOrMore(text).read(value, path, reading);
  return names.flatMap((name, index) => {
    const place = Array.isArray(value) ? [...path, index] : path;
    try {
      const directory = new ManifestDirectory(fileBeside(name, reading));
      // Small files are parsed immediately. Only large ones, which stories do not need, return a promise.
      const look = directory.look();
      if (!('problems' in look)) {
        reading.tell(place, `${name} is too large for a story`);
        return [];
      }
      for (const problem of look.problems) reading.elsewhere.push(problem);
      return directory.manifests.map(({ raw }) => raw);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      reading.tell(place, error.message, error.hint ?? undefined);
      return [];
    }
  });
}

/** Reads the cluster and fills in defaults. Null if errors were reported. */
export function readCluster(
  values: ClusterValues,
  path: DocumentPath,
  reading: StoryReading,
): ReadCluster | null {
  const given = yamlOf(values.objects);
  const own = readManifests(given, reading.file).manifests;
  const hasDns = own.some(({ kind, name }) => kind === 'Service' && name === 'kube-dns');
  const text = [
    given,
    hasDns ? '' : usualObjects(values.dnsPods),
    values.nodeCache ? upstreamService : '',
    yamlOf(podObjects(values)),
  ].join('\n');
  const { manifests, problems } = readManifests(text, reading.file);
  for (const { message, hint, remedy } of problems)
    reading.tell(path, message, hint ?? remedy ?? undefined);
  const names = new Set<string>();
  values.pods.forEach(({ namespace, name }, index) => {
    const key = `${namespace}/${name}`;
    if (names.has(key))
      reading.tell([...path, 'pods', index, 'name'], `two pods are called ${key}`);
    names.add(key);
  });
  if (reading.mistakes.length > 0 || reading.elsewhere.length > 0) return null;
  let pods: readonly ImpliedPod[];
  try {
    pods = podsOf(manifests, reading.file);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    reading.tell(path, error.message, error.remedy ?? undefined);
    return null;
  }
  for (const { message, remedy } of checkCluster(manifests, pods, values.internetAddresses))
    reading.tell(path, message, remedy ?? undefined);
  const { corefile: corefileText, nodeResolvConf, ipv6, internet, internetAddresses } = values;
  const files = Object.fromEntries(
    values.pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod.files]),
  );
  const script = internet ?? parseAnswers({ delay: 1, rules: [] }, 'the internet');
  const plan: StoryPlan = {
    objects: text,
    corefile: corefileText,
    nodeResolvConf,
    ipv6,
    files,
    ...(values.rules === null ? {} : { mode: values.rules }),
    internet: { addresses: internetAddresses, script },
  };
  return { plan, script, manifests, pods };
}

function podObjects({ pods }: ClusterValues): readonly object[] {
  const taken = new Set(pods.map(({ ip }) => ip));
  let next = 10;
  return pods.map((pod) => {
    const { name, namespace, node, labels, dnsPolicy, dnsConfig, ports } = pod;
    let { ip } = pod;
    while (ip === null) {
      const candidate = `10.244.10.${next++}`;
      if (!taken.has(candidate)) ip = candidate;
    }
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name, labels: { app: name, ...labels } },
      spec: {
        nodeName: node,
        ...(dnsPolicy === null ? {} : { dnsPolicy }),
        ...(dnsConfig === null ? {} : { dnsConfig }),
        containers: [
          { name, ports: ports.map((containerPort) => ({ containerPort, protocol: 'TCP' })) },
        ],
      },
      status: { podIP: ip },
    };
  });
}
