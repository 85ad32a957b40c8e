/** The service in front of the DNS pods: its endpoints, and whether its address answers. */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { podAt, serversOf } from '../facts.ts';
import { askingRule, clusterRule, finding, type ClusterRule } from './rule.ts';

/** A service that leads nowhere, or to pods that are no more. */
export const serviceEndpoints: ClusterRule = clusterRule(
  {
    code: 'ND5003',
    title: 'The DNS service does not lead to the DNS pods',
    name: 'a service that leads nowhere',
  },
  (facts, about) => {
    const { service, endpoints, pods, namespace } = facts;
    if (service === null) return unknown(`no DNS service was found in ${namespace}`);
    if (endpoints === null) return unknown('endpoint slices could not be listed');
    const label = `${service.namespace}/${service.name}`;
    const ready = endpoints.filter((each) => each.ready);
    const servers = serversOf(facts).filter((pod) => pod.ready && !pod.leaving);
    const behind = new Set(endpoints.map(({ host }) => host));
    const missing = servers.filter(({ addresses }) => !addresses.some((each) => behind.has(each)));
    const all = new Set((pods ?? []).flatMap(({ addresses }) => addresses));
    const gone = pods === null || all.size === 0 ? [] : ready.filter(({ host }) => !all.has(host));
    const noTcp = service.protocols.length > 0 && !service.protocols.includes('TCP');
    if (ready.length > 0 && missing.length === 0 && gone.length === 0 && !noTcp)
      return excluded(
        `${label} has ${ready.length} endpoints that are ready, all of them DNS pods`,
      );
    const nobody = ready.length === 0;
    return finding(about, {
      severity: nobody || gone.length > 0 ? 'critical' : 'warning',
      confidence: nobody ? 0.96 : 0.85,
      seen: [
        ...(nobody ? [`${label} has no endpoint that is ready.`] : []),
        ...(gone.length > 0
          ? [`No pod has these of its addresses: ${listed(gone.map(({ host }) => host))}.`]
          : []),
        ...(missing.length > 0
          ? [`Ready, and not behind it: ${listed(missing.map(({ name }) => name))}.`]
          : []),
        ...(noTcp ? [`${label} has no port of TCP: large answers cannot be fetched.`] : []),
      ],
      affected: [`service ${label}`],
      why: nobody
        ? 'Queries to the address of the service are refused or dropped on the node that sends them.'
        : 'What kube-proxy writes follows the endpoint slices: a part of the queries goes where nobody is, or some pods get none.',
      fix: [
        `Compare: kubectl -n ${service.namespace} get endpointslices -l kubernetes.io/service-name=${service.name} -o wide, and the labels of the pods with the selector of the service.`,
        'If slices lag behind the pods: see kube-controller-manager.',
      ],
      prove: `kubectl -n ${service.namespace} get endpointslices -l kubernetes.io/service-name=${service.name}`,
      disproved: 'a rollout is under way, and it is right a minute later',
      places: [`Service ${label} spec.selector`],
    });
  },
);

/** The service's address is silent, and the pods behind it are not. */
export const serviceAddress: ClusterRule = askingRule(
  {
    code: 'ND3018',
    title: 'The address of the DNS service does not answer, the DNS pods do',
    name: 'the address of the service',
  },
  (answers, facts, about) => {
    const { service, proxyMode } = facts;
    if (answers.vips.length === 0) return unknown('the address of the service is not known');
    const alive = answers.replicas.filter(({ asked }) => asked.reply !== null);
    const silent = answers.vips.filter(({ asked }) => asked.reply === null);
    const fresh = answers.checks.get('fresh')?.observations.filter((each) => each.lost > 0) ?? [];
    if (alive.length === 0) return unknown('no DNS pod answers by its own address, either');
    if (silent.length === 0 && fresh.length === 0)
      return excluded('the address of the service answers');
    const dead = answers.replicas.length - alive.length;
    // One of several pods that is dead takes its share of the queries: that is another finding.
    if (silent.length === 0 && dead > 0)
      return excluded('the address of the service answers, but for the pods that are silent');
    return finding(about, {
      severity: silent.length > 0 ? 'critical' : 'warning',
      confidence: silent.length > 0 ? 0.9 : 0.6,
      seen: [
        ...silent.map(({ server, outcome }) => `${server}: ${outcome}.`),
        ...fresh.map(({ target, text }) => `${target}: ${text}.`),
        `${alive.length} of ${answers.replicas.length} DNS pods answer by their own address: ${listed(alive.map(({ server }) => podAt(facts, server)))}.`,
        ...(proxyMode === null ? [] : [`kube-proxy’s mode is ${proxyMode}.`]),
      ],
      affected: [
        `service ${service?.namespace}/${service?.name}`,
        'pods of this node, if not of all',
      ],
      why: 'Queries to the service’s address are translated on the node that sends them. There the rules are missing or old (kube-proxy is away), a policy drops them, or a node-local cache has taken the address and is gone.',
      fix: [
        'On this node: see that kube-proxy (or what stands for it) runs, and its log.',
        'With NodeLocal DNSCache: whether its pod runs here; its rules keep the address even when it is gone.',
      ],
      prove:
        'on the node: iptables-save | grep KUBE-SVC | grep kube-dns, or nft list ruleset, or ipvsadm -Ln',
      disproved: 'another node’s pods are answered at the same address: then it is this node alone',
    });
  },
);
