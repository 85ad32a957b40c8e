/** Rules about the kubelet's settings and the resolv.conf that it gives to pods. */
import { text, texts } from '../../../server/base/json-object.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { corefileRule, objectRule, type LintRule } from '../lint-rule.ts';
import type { LintObject, LintedCorefile, Subject } from '../subject.ts';
import { dnsServerIn, dnsServiceAddresses, podSpecOf } from '../workload.ts';
import { ownCorefiles } from './own-corefiles.ts';

/** The cluster's zones that the Corefiles serve, except for reverse zones. */
function clusterZones({ corefiles }: Subject): readonly string[] {
  return corefiles
    .filter(({ role }) => role === 'server')
    .flatMap(({ blocks }) => blocks.flatMap(({ kubernetesZones }) => kubernetesZones))
    .filter((zone) => !/(in-addr|ip6)\.arpa$/.test(zone));
}

/** The addresses of the cluster's DNS service and of node caches, according to the input. */
function dnsAddresses({ objects, corefiles }: Subject): readonly string[] {
  const caches = corefiles.filter(({ role }) => role === 'node-cache');
  const local = caches.flatMap(({ blocks }) => blocks.flatMap(({ binds }) => binds));
  return [...dnsServiceAddresses(objects), ...local];
}

const kubelet: LintRule = objectRule({
  code: 'CF36',
  severity: 'error',
  summary: 'a kubelet clusterDomain or clusterDNS that no server serves',
  kinds: ['KubeletConfiguration'],
  find(object, tell, subject) {
    const domain = text(object.value, 'clusterDomain').toLowerCase().replace(/\.$/, '');
    const zones = clusterZones(subject);
    if (domain !== '' && zones.length > 0 && !zones.includes(domain))
      tell({
        at: { object, path: ['clusterDomain'] },
        text: `kubelet sets the search path for ${domain}, but the Corefile serves ${[...new Set(zones)].join(', ')}`,
        hint: 'Short names fail in every pod that starts from now on.',
        remedy: 'Use the same domain in both.',
      });
    const known = dnsAddresses(subject);
    texts(object.value, 'clusterDNS').forEach((address, index) => {
      if (known.length === 0 || known.includes(address)) return;
      tell({
        at: { object, path: ['clusterDNS', index] },
        text: `kubelet sets ${address}, but cluster DNS answers at ${[...new Set(known)].join(', ')}`,
        hint: 'Pods that start from now on cannot reach a DNS server.',
        remedy: 'Use the address of the kube-dns Service or of node-cache.',
      });
    });
  },
});

const shortList: LintRule = corefileRule({
  code: 'CF33',
  severity: 'warning',
  summary: 'forward to a resolv.conf with more than three name servers',
  find({ blocks }, tell, { resolvConfs }) {
    for (const { file, text: conf } of resolvConfs) {
      const servers = readNameservers(conf).length;
      if (servers <= 3) continue;
      for (const directive of blocks.flatMap((block) => block.directives('forward'))) {
        const to = directive.args.find(({ text: word }) => /(^|\/)resolv\.conf$/.test(word));
        if (to === undefined) continue;
        tell({
          at: to,
          text: `${file} lists ${servers} servers, but kubelet gives pods only the first three`,
          hint: 'The others are dropped silently. Changes to the file never reach running pods.',
          remedy: 'List the upstreams in the Corefile, or keep three in the file.',
        });
      }
    }
  },
});

const ownPolicy: LintRule = {
  code: 'CF52',
  severity: 'error',
  summary: 'a DNS server whose own dnsPolicy leads back to itself',
  find(subject, tell) {
    for (const object of subject.objects)
      if (dnsServerIn(object)?.role === 'server')
        if (ownCorefiles(object, subject).some(forwardsToFile)) leadsBack(object, tell);
  },
};

function forwardsToFile({ blocks }: LintedCorefile): boolean {
  return blocks.some((block) =>
    block
      .directives('forward')
      .some(({ args }) => args.some(({ text: word }) => word === '/etc/resolv.conf')),
  );
}

function leadsBack(object: LintObject, tell: Parameters<LintRule['find']>[1]): void {
  const { spec, path } = podSpecOf(object)!;
  const policy = text(spec, 'dnsPolicy') || 'ClusterFirst';
  const host = spec['hostNetwork'] === true;
  if (policy !== 'ClusterFirstWithHostNet' && (policy !== 'ClusterFirst' || host)) return;
  tell({
    at: {
      object,
      path: spec['dnsPolicy'] === undefined ? [...path, 'containers'] : [...path, 'dnsPolicy'],
    },
    text: `the resolv.conf of ${object.name} lists cluster DNS (dnsPolicy ${policy}), and the Corefile forwards to it`,
    hint: 'Each query loops; with the loop plugin, the server exits at startup instead.',
    remedy: 'Write dnsPolicy: Default',
  });
}

export const kubeletRules: readonly LintRule[] = [kubelet, shortList, ownPolicy];
