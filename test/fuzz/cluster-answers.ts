/** Converts answers about a cluster to text for comparison. */
import { asObject } from '../../src/server/base/json-object.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { KubeObject } from '../../src/server/kube/store/objects.ts';
import type { Resource } from '../../src/server/kube/api/resources.ts';
import type { Source } from '../../src/server/kube/store/object-source.ts';
import { SharedRegistry } from '../../src/server/metrics/shared-registry.ts';
import type { KubernetesAnswerer } from '../../src/server/plugins/kubernetes/worker/answer.ts';
import type { ClusterRecord } from '../../src/server/plugins/kubernetes/control/cluster-records.ts';
import { ClusterPublisher } from '../../src/server/plugins/kubernetes/control/publisher.ts';
import { ClusterReplica } from '../../src/server/plugins/kubernetes/worker/replica.ts';
import { rcodeName, typeNumber } from '../../src/server/wire/iana.ts';
import { readMessage, type DnsRecord } from '../../src/server/wire/message.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { printData } from '../../src/server/wire/print.ts';
import { makeQuery } from '../../src/server/transport/query.ts';
import { failure, type Reply } from '../../src/server/wire/reply.ts';
import { stamp } from '../../src/server/wire/stamp.ts';
import type { Store, Stored } from '../kit/apiserver/store.ts';
import { answererOf, replicatedCluster, replicateHere } from '../kit/replicated-cluster.ts';
import { hostNames, serviceNames, spaces } from './odd-objects.ts';

/** Questions about the odd objects: names that exist, may exist, or never do. */
const asked: readonly string[] = [
  ...spaces.flatMap((space) => [
    `${space}.svc.cluster.local.`,
    ...serviceNames.flatMap((name) =>
      ['', '_http._tcp.', '_dns._udp.', '10-1-0-1.', '10-1-0-3.', `${hostNames[0]}.`].map(
        (prefix) => `${prefix}${name}.${space}.svc.cluster.local.`,
      ),
    ),
    ...[0, 1, 2].map((n) => `10-1-0-${n}.${space}.pod.cluster.local.`),
  ]),
  ...Array.from({ length: 8 }, (_, n) => `${n}.0.1.10.in-addr.arpa.`),
  ...Array.from({ length: 8 }, (_, n) => `${n + 1}.0.0.10.in-addr.arpa.`),
  `1.${'0.'.repeat(27)}0.0.d.f.ip6.arpa.`,
];
const types = ['A', 'AAAA', 'SRV', 'PTR'];

const out = new Uint8Array(70_000);

/** An answer as text, without order, TTL and serial. */
export function tell(answerer: KubernetesAnswerer, name: string, type: string): string {
  const query = makeQuery(parseName(name), typeNumber(type)!);
  query.proto = 'tcp';
  const reply = answerer.answer(query, () => failure(5, 'next')) as Reply;
  const message = readMessage(out, 0, stamp(reply, query, out, 0));
  const records = (section: readonly DnsRecord[]): string =>
    section
      .map((record) => `${record.name} ${record.type} ${printData(record.type, record.data)}`)
      .sort()
      .join(' | ');
  return `${rcodeName(message.rcode)} ${records(message.answer)} + ${records(message.additional)}`;
}

export function tellAll(answerer: KubernetesAnswerer): Map<string, string> {
  const answers = new Map<string, string>();
  for (const name of asked) {
    for (const type of types) answers.set(`${name} ${type}`, tell(answerer, name, type));
  }
  return answers;
}

/** The answers from a server that has just listed these objects for the first time. */
export function freshAnswers(objects: Iterable<KubeObject>): Map<string, string> {
  return tellAll(answererOf(replicatedCluster(objects).cluster, { pods: 'verified' }));
}

/** A store's objects, parsed the way the source parses a list. */
export function* objectsIn(
  resources: readonly Resource[],
  form: (resource: Resource) => number,
  stored: (resource: Resource) => readonly Stored[],
): Generator<KubeObject> {
  for (const resource of resources) {
    for (const { object } of stored(resource)) {
      // The wire format is JSON, so undefined fields are omitted.
      const plain: unknown = JSON.parse(JSON.stringify(object));
      yield* resource.forms[form(resource)]!.transform(asObject(plain));
    }
  }
}

/**
 * A worker's answers from a source. They pass through the feed and its messages as in production, but on this thread.
 */
export function answersOf(
  source: Source<ClusterRecord>,
  clock: VirtualClock = new VirtualClock(),
): KubernetesAnswerer {
  const replica = new ClusterReplica();
  const { open, join } = replicateHere(replica, clock);
  const publisher = new ClusterPublisher({
    source,
    clock,
    open,
    metrics: new SharedRegistry(() => undefined),
    clientNames: false,
  });
  join();
  publisher.start();
  return answererOf(replica.cluster, { pods: 'verified' });
}

const plainAddress = /^10\.0\.0\.\d$/;

/**
 * The required results for a few answers, derived from the stored objects and the cluster DNS specification without our
 * code: the A record of each well-formed service with a cluster address in an existing namespace, and NXDOMAIN for a
 * missing service or namespace.
 */
export function plainTruths(store: Store): Map<string, string> {
  const truths = new Map<string, string>();
  for (const space of spaces) {
    for (const service of serviceNames) {
      const name = `${service}.${space}.svc.cluster.local.`;
      if (service.includes('.') || service !== service.toLowerCase()) continue;
      const there = store.get('namespaces', '', space) !== null;
      const found = store.get('services', space, service);
      if (!there || found === null) {
        truths.set(`${name} A`, 'NXDOMAIN  + ');
        continue;
      }
      const spec = found.object['spec'] as { clusterIP?: unknown; type?: unknown } | null;
      const address = spec?.clusterIP;
      if (typeof address !== 'string' || !plainAddress.test(address)) continue;
      if (spec!.type === 'ExternalName') continue;
      truths.set(`${name} A`, `NOERROR ${name} 1 ${address} + `);
    }
  }
  return truths;
}
