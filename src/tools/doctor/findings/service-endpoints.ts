/** A Service that leads nowhere, or to pods that no longer exist. */
import { serversOf } from '../cluster/facts.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

export const serviceEndpoints: FindingKind = {
  code: 'ND5003',
  title: 'The DNS Service does not lead to the DNS pods',
  name: 'a Service that leads nowhere',
  inCluster(facts) {
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
      return excluded(`${label} has ${ready.length} ready endpoints, all of them DNS pods`);
    const nobody = ready.length === 0;
    return {
      severity: nobody || gone.length > 0 ? 'critical' : 'warning',
      confidence: nobody ? 0.96 : 0.85,
      seen: [
        nobody && `${label} has no ready endpoint.`,
        gone.length > 0 &&
          `These endpoint addresses do not belong to any pod: ${listed(gone.map(({ host }) => host))}.`,
        missing.length > 0 &&
          `These pods are ready but not among its endpoints: ${listed(missing.map(({ name }) => name))}.`,
        noTcp && `${label} has no TCP port, so large answers cannot be fetched.`,
      ],
      affected: [`service ${label}`],
      why: nobody
        ? 'Queries to the Service’s address are refused or dropped on the node that sends them.'
        : 'kube-proxy writes its rules from the EndpointSlices, so some queries do not reach a pod, or some pods do not get queries.',
      fix: [
        `Check the endpoints (kubectl -n ${service.namespace} get endpointslices -l kubernetes.io/service-name=${service.name} -o wide), and compare the pods’ labels with the Service’s selector.`,
        'If the EndpointSlices lag behind the pods, check kube-controller-manager.',
      ],
      prove: `kubectl -n ${service.namespace} get endpointslices -l kubernetes.io/service-name=${service.name}`,
      disproved: 'the endpoints are right a minute later (then a rollout was in progress)',
      places: [`Service ${label} spec.selector`],
    };
  },
};
