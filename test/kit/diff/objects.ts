/** A small cluster, available both as a directory of manifests and from an API server. */

interface Shape {
  readonly plural: string;
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: {
      readonly name: string;
      readonly namespace?: string;
      readonly labels?: Readonly<Record<string, string>>;
    };
    readonly [key: string]: unknown;
  };
}

const namespace = (name: string): Shape => ({
  plural: 'namespaces',
  object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
});

const service = (
  name: string,
  spec: Readonly<Record<string, unknown>>,
  labels: Readonly<Record<string, string>> = {},
): Shape => ({
  plural: 'services',
  object: {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop', labels },
    spec,
  },
});

const slice = (name: string, endpoints: readonly Readonly<Record<string, unknown>>[]): Shape => ({
  plural: 'endpointslices',
  object: {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-1`,
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': name, app: name },
    },
    addressType: 'IPv4',
    endpoints,
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  },
});

const pod = (name: string, podIP: string): Shape => ({
  plural: 'pods',
  object: {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels: { app: 'web' } },
    spec: { containers: [{ name: 'c', image: 'c' }] },
    status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
  },
});

const http = [{ name: 'http', port: 80, protocol: 'TCP' }];

/** The objects, along with their plural on an API server. */
export const clusterObjects: readonly Shape[] = [
  namespace('default'),
  namespace('kube-system'),
  namespace('shop'),
  service(
    'web',
    { type: 'ClusterIP', clusterIP: '10.96.40.1', clusterIPs: ['10.96.40.1'], ports: http },
    { app: 'web' },
  ),
  service(
    'db',
    { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'], ports: http },
    { app: 'db' },
  ),
  service('idle', {
    type: 'ClusterIP',
    clusterIP: '10.96.40.2',
    clusterIPs: ['10.96.40.2'],
    ports: http,
  }),
  service('out', { type: 'ExternalName', externalName: 'out.example.com' }),
  slice('web', [
    {
      addresses: ['10.244.1.1'],
      conditions: { ready: true },
      targetRef: { kind: 'Pod', name: 'web-a', namespace: 'shop' },
    },
  ]),
  slice('db', [
    { addresses: ['10.244.1.2'], conditions: { ready: true }, hostname: 'db-0' },
    {
      addresses: ['10.244.1.3'],
      conditions: { ready: true },
      targetRef: { kind: 'Pod', name: 'db-x', namespace: 'shop' },
    },
  ]),
  slice('idle', []),
  pod('web-a', '10.244.1.1'),
];
