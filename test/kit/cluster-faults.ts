/** Faults in a cluster's DNS, one at a time. */
import { readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import type { KubeJson } from './apiserver/store.ts';
import {
  clientPod,
  REPLICAS,
  UPSTREAMS,
  usualAnswer,
  usualCorefile,
  VIP,
  type ClusterFault,
} from './living-cluster.ts';

const [one = '', other = ''] = REPLICAS;
const [private_ = '', public_ = ''] = UPSTREAMS;

/** Changes a reply. `what` is `NAME TYPE`, with the type as a number. */
function rewritten(change: (reply: Message, what: string) => Message | null) {
  return (reply: Buffer): Buffer | null => {
    const message = readMessage(reply);
    const { name = '', type = 0 } = message.question[0] ?? {};
    const changed = change(message, `${name.toLowerCase()} ${type}`);
    return changed === null ? null : Buffer.from(writeMessage(changed));
  };
}

const isOfCluster = (what: string): boolean => what.includes('.cluster.local.');
const failed = (reply: Message, rcode: number): Message => ({
  ...reply,
  rcode,
  answer: [],
  authority: [],
});

/** Metrics that grow with every scrape. */
function growing(...lines: readonly (readonly [series: string, by: number])[]) {
  return (nth: number): string =>
    lines.map(([series, by]) => `${series} ${100 + nth * by}\n`).join('');
}

function changed(plural: string, name: string, change: (object: KubeJson) => object): ClusterFault {
  return {
    objects(objects) {
      const list = objects.get(plural) ?? [];
      const at = list.findIndex(({ metadata }) => metadata.name === name);
      list[at] = { ...list[at], ...change(list[at]!) } as KubeJson;
    },
  };
}

function added(plural: string, ...more: readonly KubeJson[]): ClusterFault {
  return { objects: (objects) => objects.set(plural, [...(objects.get(plural) ?? []), ...more]) };
}

const pod = (nth: number, status: object) =>
  changed('pods', `coredns-${nth}`, (object) => ({
    status: { ...(object['status'] as object), ...status },
  }));

const egress = (ports: readonly object[]): KubeJson => ({
  metadata: { name: 'deny', namespace: 'shop' },
  spec: {
    podSelector: { matchLabels: { app: 'cart' } },
    policyTypes: ['Egress'],
    egress: ports.length === 0 ? [] : [{ ports }],
  },
});

/**
 * Maps a fault's description to the fault and the code of the finding that must come first. The slow ones wait for
 * replies.
 */
export const clusterFaults: Readonly<
  Record<string, ClusterFault & { readonly code: string; readonly slow?: boolean }>
> = {
  'a replica that says nothing': { slow: true, code: 'ND3008', servers: { [one]: { mute: true } } },
  'a replica at whose port no server listens': {
    code: 'ND3008',
    servers: { [other]: { closed: true } },
  },
  'replicas that all say nothing': {
    slow: true,
    code: 'ND3005',
    servers: { [one]: { mute: true }, [other]: { mute: true }, [VIP]: { mute: true } },
  },
  'an address of the service that leads nowhere': {
    slow: true,
    code: 'ND3018',
    servers: { [VIP]: { mute: true } },
  },
  'TCP that is closed': { code: 'ND3011', servers: { [one]: { tcp: 'closed' } } },
  'TCP that is taken and not answered': {
    slow: true,
    code: 'ND3011',
    servers: { [VIP]: { tcp: 'mute' } },
  },
  'queries with EDNS that get lost': {
    slow: true,
    code: 'ND3012',
    servers: {
      [one]: {
        reply: lostWithEdns,
      },
    },
  },
  'EDNS that is taken out on the way': {
    code: 'ND3012',
    servers: { [VIP]: { reply: rewritten((reply) => ({ ...reply, edns: null })) } },
  },
  'a replica without the objects of the cluster': {
    code: 'ND5001',
    servers: {
      [one]: { reply: rewritten((reply, what) => (isOfCluster(what) ? failed(reply, 2) : reply)) },
    },
  },
  'a replica that lags behind the others': {
    code: 'ND8001',
    servers: {
      [one]: {
        reply: rewritten((reply, what) =>
          what.startsWith('cart.shop.') ? failed(reply, 3) : reply,
        ),
      },
    },
  },
  'a replica that has an old address of a service': {
    code: 'ND8001',
    servers: {
      [one]: {
        reply: rewritten((reply, what) =>
          what.startsWith('cart.shop.') ? { ...reply, answer: [] } : reply,
        ),
      },
    },
  },
  'AAAA that is dropped': {
    slow: true,
    code: 'ND3009',
    servers: Object.fromEntries(
      [...REPLICAS, VIP].map((address) => [
        address,
        { reply: rewritten((reply, what) => (what.endsWith(' 28') ? null : reply)) },
      ]),
    ),
  },
  'AAAA that is answered with SERVFAIL': {
    code: 'ND8002',
    servers: {
      [one]: {
        reply: rewritten((reply, what) => (what.endsWith(' 28') ? failed(reply, 2) : reply)),
      },
    },
  },
  'AAAA that is answered with NXDOMAIN': {
    code: 'ND8004',
    servers: {
      [other]: {
        reply: rewritten((reply, what) => (what.endsWith(' 28') ? failed(reply, 3) : reply)),
      },
    },
  },
  'a wildcard below a search domain of a pod': {
    code: 'ND2004',
    ...added('pods', clientPod('shop', 'web', 0, { dnsConfig: { searches: ['corp.test'] } })),
    servers: {
      [VIP]: {
        reply: rewritten((reply, what) =>
          what.includes('.corp.test. 1')
            ? { ...reply, rcode: 0, authority: [], answer: [addressOf(reply)] }
            : reply,
        ),
      },
    },
  },
  'a search domain that no server serves': {
    code: 'ND2003',
    ...added('pods', clientPod('shop', 'web', 0, { dnsConfig: { searches: ['corp.test'] } })),
    servers: {
      [VIP]: {
        reply: rewritten((reply, what) =>
          what.includes('.corp.test.') ? failed(reply, 5) : reply,
        ),
      },
    },
  },
  'an upstream that is silent, and whose health checks fail': {
    slow: true,
    code: 'ND4008',
    servers: {
      [private_]: { mute: true },
      [one]: {
        metrics: growing([
          `coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="${private_}:10054"}`,
          9,
        ]),
      },
    },
  },
  'an upstream without TCP': { code: 'ND4009', servers: { [private_]: { tcp: 'closed' } } },
  'upstreams of which one does not know the private names': {
    code: 'ND4005',
    upstream: (name, at) =>
      at === public_ && name.startsWith('api.') ? usualAnswer('none.') : usualAnswer(name),
  },
  'a tenth of SERVFAIL': {
    code: 'ND4002',
    servers: {
      [one]: {
        metrics: growing(
          ['coredns_dns_responses_total{rcode="SERVFAIL",zone="."}', 100],
          ['coredns_dns_responses_total{rcode="NOERROR",zone="."}', 400],
        ),
      },
    },
  },
  'queries that are refused because of a limit': {
    code: 'ND7001',
    servers: { [one]: { metrics: growing(['coredns_forward_max_concurrent_rejects_total', 7]) } },
  },
  'an upstream that takes a second': {
    code: 'ND4003',
    servers: {
      [one]: {
        metrics: growing(
          ['coredns_proxy_request_duration_seconds_sum{to="192.0.2.9:53",rcode="NOERROR"}', 90],
          ['coredns_proxy_request_duration_seconds_count{to="192.0.2.9:53",rcode="NOERROR"}', 100],
        ),
      },
    },
  },
  'replies that are mostly NXDOMAIN': {
    code: 'ND2001',
    servers: {
      [one]: {
        metrics: growing(
          ['coredns_dns_responses_total{rcode="NXDOMAIN",zone="."}', 800],
          ['coredns_dns_responses_total{rcode="NOERROR",zone="."}', 200],
        ),
      },
    },
  },
  panics: { code: 'ND5004', servers: { [one]: { metrics: () => 'coredns_panics_total 3\n' } } },
  'a reload that failed': {
    code: 'ND1002',
    servers: { [one]: { metrics: () => 'coredns_reload_failed_total 1\n' } },
  },
  'replicas with different configurations': {
    code: 'ND1002',
    servers: Object.fromEntries(
      REPLICAS.map((address) => [
        address,
        { metrics: () => `coredns_reload_version_info{hash="sha512",value="${address}"} 1\n` },
      ]),
    ),
  },
  'memory that is nearly used up': {
    code: 'ND7002',
    servers: { [one]: { metrics: () => 'process_resident_memory_bytes 530000000\n' } },
  },
  'a pod that was killed for its memory': {
    code: 'ND7002',
    ...pod(0, {
      containerStatuses: [
        {
          name: 'coredns',
          restartCount: 14,
          lastState: { terminated: { reason: 'OOMKilled', finishedAt: '2026-11-22T03:07:00Z' } },
        },
      ],
    }),
  },
  'a pod that ends again and again': {
    code: 'ND5002',
    ...pod(1, {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [
        { name: 'coredns', restartCount: 31, state: { waiting: { reason: 'CrashLoopBackOff' } } },
      ],
    }),
  },
  'a service without endpoints': {
    code: 'ND5003',
    ...changed('endpointslices', 'kube-dns-abcde', () => ({ endpoints: [] })),
  },
  'endpoints, one of which is not a pod': {
    code: 'ND5003',
    ...changed('endpointslices', 'kube-dns-abcde', (object) => ({
      endpoints: [...(object['endpoints'] as object[]), { addresses: ['127.44.9.9'] }],
    })),
    servers: {},
  },
  'a service without a port for TCP': {
    code: 'ND5003',
    ...changed('services', 'kube-dns', (object) => {
      const spec = object['spec'] as { ports: { protocol: string }[] };
      return { spec: { ...spec, ports: spec.ports.filter(({ protocol }) => protocol === 'UDP') } };
    }),
  },
  'all DNS pods on one node': {
    code: 'ND5006',
    ...changed('pods', 'coredns-1', (object) => ({
      spec: { ...(object['spec'] as object), nodeName: 'node-a' },
    })),
  },
  'an autoscaler that may make no more': {
    code: 'ND7003',
    ...added('horizontalpodautoscalers', {
      metadata: { name: 'coredns', namespace: 'kube-system' },
      spec: { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'coredns' } },
      status: { currentReplicas: 2, desiredReplicas: 2 },
    }),
  },
  'an autoscaler that takes pods away while queries fail': {
    code: 'ND7004',
    servers: {
      [one]: {
        metrics: growing(
          ['coredns_dns_requests_total{zone="."}', 500],
          ['coredns_dns_responses_total{rcode="SERVFAIL",zone="."}', 300],
          ['coredns_dns_responses_total{rcode="NOERROR",zone="."}', 200],
        ),
      },
    },
    ...added('horizontalpodautoscalers', {
      metadata: { name: 'coredns', namespace: 'kube-system' },
      spec: { maxReplicas: 9, scaleTargetRef: { kind: 'Deployment', name: 'coredns' } },
      status: { currentReplicas: 5, desiredReplicas: 2 },
    }),
  },
  'a policy that blocks all queries of pods': {
    code: 'ND3004',
    ...added('networkpolicies', egress([{ protocol: 'TCP', port: 443 }])),
  },
  'a policy that lets pods ask over UDP only': {
    code: 'ND3004',
    ...added('networkpolicies', egress([{ protocol: 'UDP', port: 53 }])),
  },
  'pods that use another DNS server': {
    code: 'ND2007',
    ...added(
      'pods',
      clientPod('shop', 'odd', 0, { dnsPolicy: 'None', dnsConfig: { nameservers: ['8.8.8.8'] } }),
    ),
  },
  'a webhook that has to answer before pods of kube-system start': {
    code: 'ND1003',
    ...added('validatingwebhookconfigurations', {
      metadata: { name: 'policy' },
      webhooks: [
        {
          name: 'pods.policy.test',
          failurePolicy: 'Fail',
          clientConfig: { service: { name: 'policy', namespace: 'policy' } },
          rules: [{ resources: ['pods'] }],
        },
      ],
    }),
  },
  'a readiness probe that fails after lameduck': {
    code: 'ND1004',
    ...changed('deployments', 'coredns', (object) => {
      const readinessProbe = { httpGet: { path: '/ready', port: 8181 } };
      return withContainer(object, { readinessProbe });
    }),
  },
  'a Corefile with an error': {
    code: 'ND1001',
    corefile: usualCorefile.replace(
      '    loop\n',
      '    loop\n    hosts {\n        192.0.2.7 a.test\n    }\n',
    ),
  },
};

/** A workload whose only container is different. */
function withContainer(object: KubeJson, differs: object): object {
  const { spec } = object as unknown as {
    spec: { template: { spec: { containers: readonly object[] } } };
  };
  const containers = spec.template.spec.containers.map((each) => ({ ...each, ...differs }));
  const pods = { ...spec.template.spec, containers };
  return { spec: { ...spec, template: { ...spec.template, spec: pods } } };
}

function lostWithEdns(reply: Buffer): Buffer | null {
  return readMessage(reply).edns !== null ? null : reply;
}

function addressOf(reply: Message): Message['answer'][number] {
  const { name } = reply.question[0]!;
  return { name, type: 1, class: 1, ttl: 60, data: { address: '192.0.2.66' } } as never;
}
