/** The files that the kubelet writes for a pod: hosts, and a resolv.conf based on dnsPolicy and dnsConfig. */
import { child, children, text, texts, type JsonObject } from '../../server/base/json-object.ts';
import type { ImpliedPod } from '../../server/kube/manifests/pods.ts';
import { podResolvConf, type DnsPolicy, type PodDns } from '../resolver/dns-policy.ts';
import type { OwnFiles } from './files.ts';

/** The parts of the cluster that determine these files. */
export interface FileSources {
  /** The DNS service's address, or `''` if there is none. */
  readonly clusterDns: string;
  readonly nodeResolvConf: string;
}

export function podFiles(
  { namespace, name, ips, spec }: ImpliedPod,
  { clusterDns, nodeResolvConf }: FileSources,
): OwnFiles {
  const dns: PodDns = {
    namespace,
    policy: (text(spec, 'dnsPolicy') || 'ClusterFirst') as DnsPolicy,
    config: dnsConfig(spec),
    hostNetwork: false,
  };
  const conf = podResolvConf(dns, {
    clusterDns: clusterDns === '' ? [] : [clusterDns],
    clusterDomain: 'cluster.local',
    nodeResolvConf,
  });
  const hosts = [
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost',
    ...ips.map((ip) => `${ip}\t${name}`),
  ];
  return { '/etc/resolv.conf': conf.text, '/etc/hosts': `${hosts.join('\n')}\n` };
}

function dnsConfig(spec: JsonObject): PodDns['config'] {
  const config = child(spec, 'dnsConfig');
  if (Object.keys(config).length === 0) return null;
  return {
    nameservers: texts(config, 'nameservers'),
    searches: texts(config, 'searches'),
    options: children(config, 'options').map((one) => ({
      name: text(one, 'name'),
      value: text(one, 'value') || undefined,
    })),
  };
}
