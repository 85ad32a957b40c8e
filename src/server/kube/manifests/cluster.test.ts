import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EndpointSlice, ObjectKind, KubeObject, Pod, Service } from '../store/objects.ts';
import type { WantedObjects } from '../store/object-source.ts';
import { ImpliedCluster } from './cluster.ts';
import { readManifests } from './manifest-file.ts';

const wanted: WantedObjects = {
  endpoints: true,
  pods: true,
  multicluster: true,
  labels: '',
  namespaceLabels: '',
  zones: true,
};

/** Returns all objects of one kind that a manifest text implies. */
function imply(text: string, kind: ObjectKind, more: Partial<WantedObjects> = {}): KubeObject[] {
  const { manifests, problems } = readManifests(text, 'a.yaml');
  assert.deepEqual(
    problems.map((problem) => problem.print()),
    [],
  );
  const cluster = new ImpliedCluster({ ...wanted, ...more });
  return cluster
    .build(manifests)
    .entries.get(kind)!
    .flatMap((entry) => entry.objects);
}

const slices = (text: string): EndpointSlice[] => imply(text, 'EndpointSlice') as EndpointSlice[];
const pods = (text: string): Pod[] => imply(text, 'Pod') as Pod[];
const services = (text: string): Service[] => imply(text, 'Service') as Service[];

const template = (labels: string, spec = '{}'): string =>
  `template: {metadata: {labels: {${labels}}}, spec: ${spec}}`;
const workload = (kind: string, name: string, spec: string): string =>
  `kind: ${kind}\nmetadata: {name: ${name}}\nspec: {${spec}}\n---\n`;
const service = (name: string, spec: string): string =>
  `kind: Service\nmetadata: {name: ${name}}\nspec: {${spec}}\n---\n`;

describe('pods of workloads', () => {
  test('are as numerous as specified, one by default', () => {
    const count = (kind: string, spec: string): number =>
      pods(workload(kind, 'web', `${spec}${template('app: web')}`)).length;
    assert.equal(count('Deployment', 'replicas: 3, '), 3);
    assert.equal(count('Deployment', ''), 1);
    assert.equal(count('ReplicaSet', 'replicas: 0, '), 0);
    assert.equal(count('ReplicationController', 'replicas: 2, '), 2);
    assert.equal(count('DaemonSet', ''), 1);
    assert.equal(count('StatefulSet', 'replicas: 5, '), 5);
  });

  test('are named as by controllers', () => {
    const names = (kind: string): string[] =>
      pods(workload(kind, 'web', `replicas: 2, ${template('app: web')}`)).map((pod) => pod.name);
    for (const name of names('Deployment')) assert.match(name, /^web-[b-z0-9]{10}-[b-z0-9]{5}$/);
    for (const name of names('ReplicaSet')) assert.match(name, /^web-[b-z0-9]{5}$/);
    assert.deepEqual(names('StatefulSet'), ['web-0', 'web-1']);
    assert.equal(new Set(names('Deployment')).size, 2);
    const later = `replicas: 2, ordinals: {start: 5}, ${template('app: web')}`;
    assert.deepEqual(
      pods(workload('StatefulSet', 'db', later)).map((pod) => pod.name),
      ['db-5', 'db-6'],
    );
  });

  test('have addresses that other workloads do not affect', () => {
    const one = workload('Deployment', 'one', `replicas: 3, ${template('app: one')}`);
    const two = workload('Deployment', 'two', `replicas: 50, ${template('app: two')}`);
    const alone = pods(one).map((pod) => pod.ips[0]!);
    const beside = pods(two + one)
      .filter((pod) => pod.name.startsWith('one'))
      .map((pod) => pod.ips[0]!);
    assert.deepEqual(beside, alone);
    assert.ok(alone.every((ip) => ip.startsWith('10.244.')));
  });

  test('have the addresses from the annotation, in order, then others', () => {
    const found = pods(
      `kind: Deployment\nmetadata: {name: web, annotations: {ndots.dev/pod-ips: "172.17.0.4-172.17.0.5, fd00::4"}}\nspec: {replicas: 3, ${template('app: web')}}\n`,
    );
    assert.deepEqual(found[0]!.ips, ['172.17.0.4', 'fd00::4']);
    assert.deepEqual(found[1]!.ips, ['172.17.0.5']);
    assert.match(found[2]!.ips[0]!, /^10\.244\./);
  });

  test("on their node's network share its address", () => {
    const found = pods(
      workload('DaemonSet', 'proxy', template('app: proxy', '{hostNetwork: true}')) +
        workload('DaemonSet', 'agent', template('app: agent', '{hostNetwork: true}')),
    );
    assert.equal(found[0]!.ips[0], found[1]!.ips[0]);
    assert.ok(found.every((pod) => pod.hostNetwork && pod.ips[0]!.startsWith('172.18.')));
  });

  test('are not created if the directory contains them, as in an export of a live cluster', () => {
    const owned = (kind: string, owner: string, name: string, rest: string): string =>
      `kind: ${kind}\nmetadata: {name: ${name}, labels: {app: web}, ownerReferences: [{kind: ${owner}, name: web}]}\n${rest}\n---\n`;
    const found = pods(
      workload('Deployment', 'web', `replicas: 2, ${template('app: web')}`) +
        owned('ReplicaSet', 'Deployment', 'web', `spec: {replicas: 2, ${template('app: web')}}`) +
        owned('Pod', 'ReplicaSet', 'web-x', 'status: {phase: Running, podIP: 10.0.0.1}'),
    );
    assert.deepEqual(
      found.map((pod) => [pod.name, pod.ips]),
      [['web-x', ['10.0.0.1']]],
    );
  });
});

describe('explicit pods', () => {
  test('keep the address in their status, get one otherwise, or have none while pending', () => {
    const pod = (name: string, status: string): string =>
      `kind: Pod\nmetadata: {name: ${name}}\nstatus: ${status}\n---\n`;
    const found = pods(
      pod('a', '{podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}') +
        pod('b', '{}') +
        pod('c', '{phase: Pending}') +
        pod('d', '{phase: Succeeded, podIP: 10.0.0.4}'),
    );
    assert.deepEqual(found[0]!.ips, ['10.0.0.1', 'fd00::1']);
    assert.match(found[1]!.ips[0]!, /^10\.244\./);
    assert.deepEqual(found[2]!.ips, []);
    assert.equal(found.length, 3, 'finished pods are gone');
  });
});

describe('slices of services', () => {
  const web = workload('Deployment', 'web', `replicas: 2, ${template('app: web')}`);

  test('contain the pods selected, from the same namespace only', () => {
    const other = web.replace('name: web', 'name: web, namespace: other');
    const [slice, ...rest] = slices(
      service('web', 'selector: {app: web}, ports: [{port: 80}]') + web + other,
    );
    assert.equal(rest.length, 0);
    assert.equal(slice!.service, 'web');
    assert.match(slice!.name, /^web-[b-z0-9]{5}$/);
    assert.equal(slice!.endpoints.length, 2);
    assert.deepEqual(slice!.ports, [{ name: '', protocol: 'TCP', port: 80 }]);
  });

  test('do not exist without a selector, without pods, or for an ExternalName', () => {
    assert.deepEqual(slices(service('a', 'ports: [{port: 80}]') + web), []);
    assert.deepEqual(slices(service('a', 'selector: {app: none}') + web), []);
    assert.deepEqual(
      slices(
        service('a', 'type: ExternalName, externalName: x.example, selector: {app: web}') + web,
      ),
      [],
    );
  });

  test("have the pods' port numbers: by number, by name, and separately where they differ", () => {
    const named = (name: string, port: number): string =>
      workload(
        'Deployment',
        name,
        template('app: web', `{containers: [{ports: [{name: http, containerPort: ${port}}]}]}`),
      );
    const found = slices(
      service(
        'web',
        'selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP, targetPort: 5353}]',
      ) +
        named('one', 8080) +
        named('two', 9090),
    );
    assert.deepEqual(
      found.map((slice) => slice.ports.map((port) => [port.name, port.port])),
      [
        [
          ['http', 8080],
          ['dns', 5353],
        ],
        [
          ['http', 9090],
          ['dns', 5353],
        ],
      ],
    );
    const without = slices(
      service('web', 'selector: {app: web}, ports: [{name: http, port: 80, targetPort: missing}]') +
        named('one', 8080),
    );
    assert.deepEqual(without[0]!.ports, []);
  });

  test('for a headless service without ports exist', () => {
    const [slice] = slices(service('web', 'clusterIP: None, selector: {app: web}') + web);
    assert.equal(slice!.endpoints.length, 2);
    assert.deepEqual(slice!.ports, []);
  });

  test('name the pods of the StatefulSet governed by the service, and no others', () => {
    const db = workload(
      'StatefulSet',
      'db',
      `serviceName: db, replicas: 2, ${template('app: db')}`,
    );
    const found = slices(
      service('db', 'clusterIP: None, selector: {app: db}') +
        service('other', 'selector: {app: db}') +
        db,
    );
    const names = (of: string): string[] =>
      found.find((slice) => slice.service === of)!.endpoints.map((endpoint) => endpoint.hostname);
    assert.deepEqual(names('db'), ['db-0', 'db-1']);
    assert.deepEqual(names('other'), ['', '']);
  });

  test('name a pod that has a host name and a subdomain', () => {
    const [slice] = slices(
      service('sub', 'clusterIP: None, selector: {app: a}') +
        'kind: Pod\nmetadata: {name: a, labels: {app: a}}\nspec: {hostname: busybox, subdomain: sub}\n',
    );
    assert.equal(slice!.endpoints[0]!.hostname, 'busybox');
  });

  test('mark unready pods, unless the service publishes those too', () => {
    const written = (name: string, rest: string): string =>
      `kind: Pod\nmetadata: {name: ${name}, labels: {app: a}${rest}}\n`;
    const all =
      written('annotated', ', annotations: {ndots.dev/ready: "false"}') +
      '---\n' +
      written('going', ', deletionTimestamp: "2026-01-01T00:00:00Z"') +
      '---\n' +
      written('failing', '') +
      'status: {phase: Running, conditions: [{type: Ready, status: "False"}]}\n---\n' +
      written('fine', '') +
      '---\n';
    const ready = (extra: string): string[] =>
      slices(service('a', `selector: {app: a}${extra}`) + all)[0]!
        .endpoints.filter((endpoint) => endpoint.ready)
        .map((endpoint) => endpoint.pod);
    assert.deepEqual(ready(''), ['fine']);
    assert.deepEqual(ready(', publishNotReadyAddresses: true'), [
      'annotated',
      'going',
      'failing',
      'fine',
    ]);
  });

  test('are separate for IPv4 and IPv6, for the families of the service', () => {
    const dual =
      'kind: Pod\nmetadata: {name: a, labels: {app: a}}\nstatus: {podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}\n---\n';
    const addresses = (spec: string): string[] =>
      slices(service('a', `selector: {app: a}${spec}`) + dual).flatMap((slice) =>
        slice.endpoints.flatMap((endpoint) => endpoint.addresses),
      );
    assert.deepEqual(addresses(''), ['10.0.0.1']);
    assert.deepEqual(addresses(', ipFamilyPolicy: PreferDualStack'), ['10.0.0.1', 'fd00::1']);
    assert.deepEqual(addresses(', ipFamilies: [IPv6]'), ['fd00::1']);
    assert.deepEqual(addresses(', clusterIPs: ["fd00::99"]'), ['fd00::1']);
    const six = dual.replace('{ip: 10.0.0.1}, ', '');
    assert.equal(slices(service('a', 'selector: {app: a}') + six).length, 1);
  });

  test("carry the node's zone, from its labels", () => {
    const node = (name: string, zone: string): string =>
      `kind: Node\nmetadata: {name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}}}\n---\n`;
    const text =
      node('n1', 'east') +
      node('n2', 'west') +
      service('a', 'selector: {app: a}') +
      'kind: Pod\nmetadata: {name: a, labels: {app: a}}\nspec: {nodeName: n2}\n';
    assert.equal(slices(text)[0]!.endpoints[0]!.zone, 'west');
    const [plain] = imply(text, 'EndpointSlice', { zones: false }) as EndpointSlice[];
    assert.equal(plain!.endpoints[0]!.zone, '');
  });

  test('that are given explicitly replace generated ones, with slices before Endpoints', () => {
    const written =
      'kind: EndpointSlice\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\nendpoints: [{addresses: [10.9.9.9]}]\n---\n';
    const old =
      'kind: Endpoints\nmetadata: {name: web}\nsubsets: [{addresses: [{ip: 10.8.8.8}]}]\n---\n';
    const ips = (text: string): string[] =>
      slices(service('web', 'selector: {app: web}') + web + text).flatMap((slice) =>
        slice.endpoints.flatMap((endpoint) => endpoint.addresses),
      );
    assert.deepEqual(ips(written + old), ['10.9.9.9']);
    assert.deepEqual(ips(old), ['10.8.8.8']);
  });

  test('are omitted for services excluded by label', () => {
    const text = service('web', 'selector: {app: web}') + web;
    assert.deepEqual(imply(text, 'EndpointSlice', { labels: 'x=y' }), []);
    assert.deepEqual(imply(text, 'EndpointSlice', { endpoints: false }), []);
  });
});

describe('services', () => {
  test('get an address from the range if they specify none', () => {
    const [one] = services(service('web', 'ports: [{port: 80}]'));
    assert.match(one!.clusterIPs[0]!, /^10\.(9[6-9]|10\d|11[01])\./);
  });

  test('keep the address they specify, or none', () => {
    assert.deepEqual(services(service('a', 'clusterIP: 10.3.0.116'))[0]!.clusterIPs, [
      '10.3.0.116',
    ]);
    assert.deepEqual(services(service('a', 'clusterIP: None'))[0]!.clusterIPs, ['None']);
    assert.deepEqual(
      services(service('a', 'type: ExternalName, externalName: x.example'))[0]!.clusterIPs,
      [],
    );
  });

  test('that are dual-stack get one of each family, the first family first', () => {
    const [one] = services(service('a', 'ipFamilies: [IPv6, IPv4]'));
    assert.match(one!.clusterIPs[0]!, /^fd00:10:96::/);
    assert.match(one!.clusterIPs[1]!, /^10\./);
  });

  test('with customary addresses get those', () => {
    const found = services(
      'kind: Service\nmetadata: {name: kubernetes}\n---\nkind: Service\nmetadata: {name: kube-dns, namespace: kube-system}\n',
    );
    assert.deepEqual(
      found.map((one) => one.clusterIPs),
      [['10.96.0.1'], ['10.96.0.10']],
    );
  });

  test('keep their address while others are added, over many builds', () => {
    const cluster = new ImpliedCluster(wanted);
    const build = (names: readonly string[]): Map<string, string> => {
      const text = names.map((name) => service(name, 'ports: [{port: 1}]')).join('');
      const { entries } = cluster.build(readManifests(text, 'a.yaml').manifests);
      return new Map(
        entries
          .get('Service')!
          .flatMap((entry) => entry.objects as Service[])
          .map((one) => [one.name, one.clusterIPs[0]!]),
      );
    };
    const first = build(Array.from({ length: 30 }, (_, i) => `s${i}`));
    const second = build(Array.from({ length: 50 }, (_, i) => `s${49 - i}`));
    for (const [name, ip] of first) assert.equal(second.get(name), ip, name);
    assert.equal(new Set(second.values()).size, 50);
  });
});

test('a namespace exists because an object is in it, and default always exists', () => {
  const names = (more: Partial<WantedObjects> = {}): string[] =>
    imply(
      'kind: Namespace\nmetadata: {name: empty, labels: {team: a}}\n---\nkind: Pod\nmetadata: {name: p, namespace: implied}\n',
      'Namespace',
      more,
    ).map((one) => one.name);
  assert.deepEqual(names(), ['default', 'empty', 'implied']);
  assert.deepEqual(names({ namespaceLabels: 'team=a' }), ['empty']);
  assert.deepEqual(names({ namespaceLabels: 'kubernetes.io/metadata.name=implied' }), ['implied']);
});

test('service imports and their slices are included', () => {
  const text =
    'kind: ServiceImport\nmetadata: {name: db}\nspec: {type: ClusterSetIP, ips: [10.42.0.1]}\n---\n' +
    'kind: EndpointSlice\nmetadata: {name: db-1, labels: {multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}}\nendpoints: [{addresses: [10.9.9.9]}]\n';
  const [found] = imply(text, 'ServiceImport');
  assert.ok(found?.kind === 'ServiceImport');
  assert.deepEqual(found.ips, ['10.42.0.1']);
  const [slice] = imply(text, 'EndpointSlice', { endpoints: false }) as EndpointSlice[];
  assert.equal(slice!.importedService, 'db');
  assert.equal(slice!.cluster, 'east');
});
