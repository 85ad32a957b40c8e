/** The object shapes used in the conformance table. */
import type { KubeJson } from '../kit/apiserver/store.ts';

/** Objects of every shape that DNS distinguishes, in API format. */

interface PortSpec {
  readonly name?: string;
  readonly protocol?: string;
  readonly port: number;
}

const http: PortSpec = { name: 'http', protocol: 'TCP', port: 80 };
const dnsPorts: readonly PortSpec[] = [
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'dns-tcp', protocol: 'TCP', port: 53 },
];

function object(
  kind: string,
  apiVersion: string,
  namespace: string,
  name: string,
  rest: object,
  labels = {},
): KubeJson {
  const metadata = { name, labels, ...(namespace === '' ? {} : { namespace }) };
  return { apiVersion, kind, metadata, ...rest } as unknown as KubeJson;
}

function namespace(name: string, labels = {}): KubeJson {
  return object('Namespace', 'v1', '', name, { status: { phase: 'Active' } }, labels);
}

function service(place: string, spec: object, labels = {}): KubeJson {
  const [name, of] = place.split('.');
  return object('Service', 'v1', of!, name!, { spec: { type: 'ClusterIP', ...spec } }, labels);
}

function clusterIP(
  place: string,
  ips: readonly string[],
  ports: readonly PortSpec[],
  labels = {},
): KubeJson {
  const families = ips.length > 1 ? { ipFamilyPolicy: 'RequireDualStack' } : {};
  return service(place, { clusterIP: ips[0], clusterIPs: ips, ports, ...families }, labels);
}

function headless(place: string, ports: readonly PortSpec[] = [http]): KubeJson {
  return service(place, { clusterIP: 'None', clusterIPs: ['None'], ports });
}

function external(place: string, externalName: string): KubeJson {
  return service(place, { type: 'ExternalName', externalName });
}

interface EndpointSpec {
  readonly ip: string;
  readonly hostname?: string;
  readonly pod?: string;
  /** The kind is `pod` by default. */
  readonly kind?: string;
  readonly zone?: string;
  /** The `ready` condition, or undefined if the API does not set it. */
  readonly ready?: boolean;
}

function slice(
  place: string,
  ports: readonly PortSpec[],
  endpoints: readonly EndpointSpec[],
  nth = 1,
  labels = {},
): KubeJson {
  const [of, where] = place.split('.');
  const first = endpoints[0]?.ip ?? '';
  const addressType = first.includes(':') ? 'IPv6' : /^[\d.]*$/.test(first) ? 'IPv4' : 'FQDN';
  return object(
    'EndpointSlice',
    'discovery.k8s.io/v1',
    where!,
    `${of}-${nth}`,
    {
      addressType,
      ports: ports.map((port) => ({ protocol: 'TCP', name: '', ...port })),
      endpoints: endpoints.map(({ ip, hostname, pod, zone, ready, kind = 'Pod' }) => ({
        addresses: [ip],
        conditions: ready === undefined ? {} : { ready },
        ...(hostname === undefined ? {} : { hostname }),
        ...(zone === undefined ? {} : { zone }),
        ...(pod === undefined ? {} : { targetRef: { kind, name: pod, namespace: where } }),
      })),
    },
    { 'kubernetes.io/service-name': of, ...labels },
  );
}

function pod(
  place: string,
  ips: readonly string[],
  more: { phase?: string; hostNetwork?: boolean } = {},
): KubeJson {
  const [name, of] = place.split('.');
  const { phase = 'Running', hostNetwork } = more;
  return object('Pod', 'v1', of!, name!, {
    spec: { containers: [{ name: 'app', image: 'app' }], ...(hostNetwork ? { hostNetwork } : {}) },
    status: { phase, podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) },
  });
}

function imported(place: string, spec: object): KubeJson {
  const [name, of] = place.split('.');
  return object('ServiceImport', 'multicluster.x-k8s.io/v1alpha1', of!, name!, { spec });
}

const mcs = (name: string, cluster: string): object => ({
  'multicluster.kubernetes.io/service-name': name,
  'multicluster.kubernetes.io/source-cluster': cluster,
});

export const objects: readonly KubeJson[] = [
  namespace('testns', { exposed: 'yes' }),
  namespace('other'),
  namespace('empty', { exposed: 'yes' }),

  clusterIP('svc1.testns', ['10.0.0.1'], [http], { app: 'web' }),
  clusterIP('svcdual.testns', ['10.0.0.3', 'fd00:10::3'], [http]),
  clusterIP('svc6.testns', ['fd00:10::6'], [http]),
  clusterIP('twoports.testns', ['10.0.0.5'], dnsPorts),
  clusterIP('unnamed.testns', ['10.0.0.7'], [{ protocol: 'TCP', port: 8080 }]),
  clusterIP('portless.testns', ['10.0.0.8'], []),
  clusterIP('unbacked.testns', ['10.0.0.9'], [http]),
  clusterIP('unready.testns', ['10.0.0.10'], [http]),
  service('node.testns', { type: 'NodePort', clusterIP: '10.0.0.11', ports: [http] }),
  service('lb.testns', {
    type: 'LoadBalancer',
    clusterIP: '10.0.0.12',
    clusterIPs: ['10.0.0.12'],
    ports: [http],
  }),
  clusterIP('svc1.other', ['10.0.1.1'], [http]),
  slice('svc1.testns', [http], [{ ip: '172.16.0.1' }, { ip: '172.16.0.2', hostname: 'named' }]),
  slice('svcdual.testns', [http], [{ ip: '172.16.0.3' }]),
  slice('svcdual.testns', [http], [{ ip: 'fd00:16::3' }], 2),
  slice('svc6.testns', [http], [{ ip: 'fd00:16::6' }]),
  slice('twoports.testns', dnsPorts, [{ ip: '172.16.0.5' }]),
  slice('unnamed.testns', [{ port: 8080 }], [{ ip: '172.16.0.7' }]),
  slice('portless.testns', [], [{ ip: '172.16.0.8' }]),
  slice('unready.testns', [http], [{ ip: '172.16.0.10', ready: false }]),
  slice('svc1.other', [http], [{ ip: '172.16.1.1' }]),

  headless('hdls.testns'),
  slice(
    'hdls.testns',
    [http],
    [
      { ip: '172.20.0.1', hostname: 'dup-name', ready: true },
      { ip: '172.20.0.2', pod: 'hdls-pod-2' },
      { ip: '172.20.0.3', ready: false },
      { ip: '172.20.0.4', hostname: 'dup-name' },
    ],
  ),
  // The same addresses with a different port, as the slice controller writes them if pods' port numbers differ.
  slice(
    'hdls.testns',
    [{ name: 'admin', protocol: 'TCP', port: 9000 }],
    [{ ip: '172.20.0.2', pod: 'hdls-pod-2' }],
    2,
  ),
  headless('hdls6.testns'),
  slice('hdls6.testns', [http], [{ ip: 'fd00:20::1' }, { ip: 'fd00:20::' }]),
  headless('hdlsdual.testns'),
  slice('hdlsdual.testns', [http], [{ ip: '172.20.1.1', hostname: 'a' }]),
  slice('hdlsdual.testns', [http], [{ ip: 'fd00:20:1::1', hostname: 'a' }], 2),
  headless('hdlsportless.testns', []),
  slice('hdlsportless.testns', [], [{ ip: '172.20.2.1' }]),
  headless('hdlsunready.testns'),
  slice('hdlsunready.testns', [http], [{ ip: '172.20.3.1', ready: false }]),
  headless('hdlsalone.testns'),
  headless('zoned.testns'),
  slice(
    'zoned.testns',
    [http],
    [
      { ip: '172.20.5.1', zone: 'zone-a' },
      { ip: '172.20.5.2', zone: 'Zone-B' },
      { ip: '172.20.5.3', zone: 'corp.example.com' },
    ],
  ),
  headless('six.testns'),
  slice(
    'six.testns',
    [http],
    [1, 2, 3, 4, 5, 6].map((n) => ({ ip: `172.20.6.${n}` })),
  ),

  headless('named.testns'),
  slice('named.testns', [http], [{ ip: 'ext.example.org', hostname: 'db' }]),
  headless('namedin.testns'),
  slice('namedin.testns', [http], [{ ip: 'svc1.testns.svc.cluster.local' }]),
  headless('namedtwice.testns'),
  slice('namedtwice.testns', [http], [{ ip: 'ext.example.org' }, { ip: 'dead.example.org' }]),
  headless('namedmixed.testns'),
  slice('namedmixed.testns', [http], [{ ip: 'ext.example.org' }]),
  slice('namedmixed.testns', [http], [{ ip: '172.20.7.1' }], 2),
  headless('namedself.testns'),
  slice('namedself.testns', [http], [{ ip: 'namedself.testns.svc.cluster.local' }]),
  headless('namedunready.testns'),
  slice('namedunready.testns', [http], [{ ip: 'ext.example.org', ready: false }]),
  external('extnamed.testns', 'named.testns.svc.cluster.local'),

  // Written as in old clusters, where leading zeros are ignored and IPv4-mapped IPv6 counts as IPv4.
  clusterIP('zeros.testns', ['010.000.008.001'], [http]),
  headless('hdlszeros.testns'),
  slice('hdlszeros.testns', [http], [{ ip: '010.009.000.006' }]),
  headless('hdlsmapped.testns'),
  slice('hdlsmapped.testns', [http], [{ ip: '::ffff:172.20.8.2' }]),

  headless('targets.testns'),
  slice(
    'targets.testns',
    [http],
    [
      { ip: '172.20.9.1', pod: 'vm-1', kind: 'VirtualMachineInstance' },
      { ip: '172.20.9.2', pod: 'web.2' },
      { ip: '172.20.9.3', pod: 'same-a' },
      { ip: '172.20.9.3', pod: 'same-b' },
    ],
  ),

  external('ext.testns', 'ext.example.org'),
  external('extdot.testns', 'dead.example.org.'),
  external('extfails.testns', 'fails.example.org'),
  external('extip.testns', '203.0.113.9'),
  external('extin.testns', 'svc1.testns.svc.cluster.local'),
  external('extchain.testns', 'extin.testns.svc.cluster.local'),
  external('extself.testns', 'extself.testns.svc.cluster.local'),
  external('extloop1.testns', 'extloop2.testns.svc.cluster.local'),
  external('extloop2.testns', 'extloop1.testns.svc.cluster.local'),
  external('extmissing.testns', 'missing.testns.svc.cluster.local'),
  external('ext2out.testns', 'ext.testns.svc.cluster.local'),
  ...Array.from({ length: 13 }, (_, n) =>
    external(
      `chain${n}.testns`,
      n === 0 ? 'svc1.testns.svc.cluster.local' : `chain${n - 1}.testns.svc.cluster.local`,
    ),
  ),

  pod('running.testns', ['172.30.0.1', 'fd00:30::1']),
  pod('finished.testns', ['172.30.0.2'], { phase: 'Succeeded' }),
  pod('failed.testns', ['172.30.0.3'], { phase: 'Failed' }),
  pod('six.testns', ['fd00:30::6']),
  pod('same-a.testns', ['172.30.0.7']),
  pod('same-b.testns', ['172.30.0.7']),
  pod('zeros.testns', ['172.030.000.008']),

  imported('mc.testns', { type: 'ClusterSetIP', ips: ['10.9.0.1'], ports: [http] }),
  imported('mchdls.testns', { type: 'Headless', ports: [http] }),
  slice(
    'mchdls-east.testns',
    [http],
    [{ ip: '172.40.0.1', hostname: 'db-0' }],
    1,
    mcs('mchdls', 'east'),
  ),
  slice(
    'mchdls-west.testns',
    [http],
    [{ ip: '172.40.1.1', hostname: 'db-0' }],
    1,
    mcs('mchdls', 'west'),
  ),
];

export const plurals: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  Service: 'services',
  EndpointSlice: 'endpointslices',
  Pod: 'pods',
  ServiceImport: 'serviceimports',
};
