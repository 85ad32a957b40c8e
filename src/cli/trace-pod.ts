/** `--from pod/NAME` and `deploy/NAME`: the resolv.conf of a pod, from the cluster or a manifest and kubelet's settings. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { Problem } from '../base/problem.ts';
import {
  podResolvConf,
  type DnsConfig,
  type DnsPolicy,
  type PodDns,
  type PodResolvConf,
} from '../resolver/dns-policy.ts';
import type { TraceOptions } from './trace-options.ts';

type Json = Readonly<Record<string, unknown>>;

const kinds: Readonly<Record<string, string>> = {
  pod: 'Pod',
  po: 'Pod',
  deploy: 'Deployment',
  deployment: 'Deployment',
  sts: 'StatefulSet',
  statefulset: 'StatefulSet',
  ds: 'DaemonSet',
  daemonset: 'DaemonSet',
  job: 'Job',
};

const mostFiles = 10_000;

export async function resolvConfOfPod(options: TraceOptions): Promise<PodResolvConf> {
  const match = /^([a-z]+)\/([a-z0-9.-]+)$/.exec(options.from ?? '');
  const kind = kinds[match?.[1] ?? ''];
  const name = match?.[2];
  if (kind === undefined || name === undefined) {
    throw new Problem({
      code: 'usage',
      text: `--from takes host, pod/NAME, deploy/NAME, sts/NAME, ds/NAME or job/NAME, not "${options.from ?? ''}"`,
    });
  }
  const object =
    options.manifests === null
      ? askCluster(kind, name, options.namespace)
      : findObject(options.manifests, kind, name, options.namespace);
  if (object === null) {
    throw new Problem({
      code: 'not-found',
      text: `no ${kind} "${name}"${options.namespace === null ? '' : ` in namespace ${options.namespace}`} in ${options.manifests ?? 'the cluster'}`,
    });
  }
  const nodeResolvConf = (() => {
    try {
      return readFileSync('/etc/resolv.conf', 'utf8');
    } catch {
      return null;
    }
  })();
  return podResolvConf(podDnsOf(object, options.namespace), {
    clusterDns: options.clusterDns ?? ['10.96.0.10'],
    clusterDomain: options.clusterDomain,
    nodeResolvConf: options.plan ? '' : (nodeResolvConf ?? ''),
  });
}

/** What a manifest says about DNS; templates of Deployments and the like are looked into. */
export function podDnsOf(object: Json, namespace: string | null): PodDns {
  const metadata = asObject(object['metadata']);
  const spec = asObject(object['spec']);
  const template = asObject(spec['template']);
  const pod = 'template' in spec ? asObject(template['spec']) : spec;
  const policy = typeof pod['dnsPolicy'] === 'string' ? pod['dnsPolicy'] : 'ClusterFirst';
  if (!['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'].includes(policy)) {
    throw new Problem({
      code: 'bad-manifest',
      text: `dnsPolicy "${policy}" is none that Kubernetes knows`,
    });
  }
  return {
    namespace:
      namespace ?? (typeof metadata['namespace'] === 'string' ? metadata['namespace'] : 'default'),
    policy: policy as DnsPolicy,
    config: pod['dnsConfig'] === undefined ? null : dnsConfigOf(asObject(pod['dnsConfig'])),
    hostNetwork: pod['hostNetwork'] === true,
  };
}

function dnsConfigOf(config: Json): DnsConfig {
  const options = Array.isArray(config['options']) ? config['options'].map(asObject) : [];
  return {
    nameservers: texts(config['nameservers']),
    searches: texts(config['searches']),
    options: options.map((option) => ({
      name: text(option['name']),
      value:
        option['value'] === undefined || option['value'] === null
          ? undefined
          : text(option['value']),
    })),
  };
}

const CLUSTER_TIMEOUT_MS = 10_000;

/** The object as the cluster has it, through kubectl: it knows the person's context and how to log in. */
function askCluster(kind: string, name: string, namespace: string | null): Json {
  const words = ['get', kind.toLowerCase(), name, '-o', 'json', '--request-timeout=8s'];
  if (namespace !== null) words.push('-n', namespace);
  const { stdout, stderr, error, status } = spawnSync('kubectl', words, {
    encoding: 'utf8',
    timeout: CLUSTER_TIMEOUT_MS,
  });
  if (error !== undefined) {
    throw new Problem({
      code: 'cluster-not-asked',
      text: `kubectl could not be run: ${error.message}`,
      hint: 'Without --manifests the object is read from the cluster, through kubectl.',
      remedy: 'Install kubectl, or name a folder with the manifest: --manifests DIR',
    });
  }
  if (status !== 0) {
    throw new Problem({
      code: 'cluster-not-asked',
      text: `kubectl ${words.join(' ')}: ${lastWords(stderr)}`,
      remedy: 'Try the command by itself; or name a folder with the manifest: --manifests DIR',
    });
  }
  return asObject(JSON.parse(stdout) as unknown);
}

/** What kubectl says in the end; the log lines of its client library come before, and say it five times. */
function lastWords(stderr: string): string {
  const lines = stderr.trim().split('\n');
  const said = lines.filter((line) => !/^[EWI]\d{4} /.test(line));
  return (said.length > 0 ? said : lines.slice(-1)).join('\n');
}

function findObject(
  path: string,
  kind: string,
  name: string,
  namespace: string | null,
): Json | null {
  for (const file of manifestFiles(path)) {
    for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
      if (!('toJS' in document)) continue;
      const value = asObject(document.toJS() as unknown);
      const items = Array.isArray(value['items']) ? value['items'].map(asObject) : [value];
      const hit = items.find((item) => {
        const metadata = asObject(item['metadata']);
        const inNamespace =
          namespace === null || (metadata['namespace'] ?? 'default') === namespace;
        return item['kind'] === kind && metadata['name'] === name && inNamespace;
      });
      if (hit !== undefined) return hit;
    }
  }
  return null;
}

function manifestFiles(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ya?ml|json)$/.test(name))
      .slice(0, mostFiles)
      .map((name) => join(path, name));
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `${path}: cannot read the manifests`,
      cause: error,
    });
  }
}

function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Json)
    : {};
}

/** YAML makes numbers of values that Kubernetes wants as text. */
function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? value.toString() : '';
}

function texts(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((item): item is string => typeof item === 'string')
    : [];
}
