/**
 * The permissions that the chart gives to its parts. Together they suffice, each one is needed, and a missing one is
 * reported.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { request } from 'node:https';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { helmTemplate } from '../kit/helm.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}
type Role = KubeJson & { readonly rules: readonly Rule[] };

/** A verb on a resource in a rule. */
interface Right {
  readonly verb: string;
  readonly resource: string;
}

/** The chart's roles and bindings with this name. */
function rolesOf(values: object, name: string): { roles: readonly Role[]; bindings: KubeJson[] } {
  const objects = parseAllDocuments(helmTemplate(values))
    .map((document) => document.toJS() as KubeJson | null)
    .filter((object) => object?.metadata.name === name) as KubeJson[];
  return {
    roles: objects.filter(({ kind }) => /^(Cluster)?Role$/.test(kind ?? '')) as Role[],
    bindings: objects.filter(({ kind }) => kind?.endsWith('RoleBinding')),
  };
}

const rightsOf = (roles: readonly Role[]): readonly Right[] =>
  roles.flatMap(({ rules }) =>
    rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ verb, resource }))),
    ),
  );

/** The same roles without one of the permissions. */
const without = (roles: readonly Role[], { verb, resource }: Right): readonly Role[] =>
  roles.map((role) => ({
    ...role,
    rules: role.rules.flatMap((rule) => {
      if (!rule.resources.includes(resource)) return [rule];
      const others = rule.resources.filter((one) => one !== resource);
      const verbs = rule.verbs.filter((one) => one !== verb);
      return [
        ...(others.length > 0 ? [{ ...rule, resources: others }] : []),
        ...(verbs.length > 0 ? [{ ...rule, resources: [resource], verbs }] : []),
      ];
    }),
  }));

describe("the chart's permissions", { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start();
  });
  after(async () => cluster?.[Symbol.asyncDispose]());

  describe('to the DNS server', () => {
    /** The log of a server that uses the chart's account. */
    async function logAs(kubernetes: string): Promise<string> {
      const server = await serveProcess(
        `errors\nkubernetes cluster.local {\n kubeconfig ${cluster.kubeconfig('dns')}\n startup_timeout 1s\n ${kubernetes}\n}`,
      );
      await pause(500);
      await server.stop();
      return server.child.output();
    }

    for (const directives of ['pods insecure', 'pods verified', 'topology nodes'])
      test(`are enough for "${directives}", and each of them is needed`, async () => {
        const plugin = { name: 'kubernetes', parameters: 'cluster.local', configBlock: directives };
        const servers = [{ zones: [{ zone: '.' }], port: 53, plugins: [plugin] }];
        const { roles, bindings } = rolesOf(
          { servers, serviceAccount: { name: 'coredns' } },
          'dns-ndots',
        );
        await cluster.put([...roles, ...bindings]);
        assert.doesNotMatch(await logAs(directives), /forbidden|unsynced/i);
        const resources = new Set(rightsOf(roles).map(({ resource }) => resource));
        assert.equal(resources.has('pods'), directives === 'pods verified');
        assert.equal(resources.has('nodes'), directives === 'topology nodes');
        for (const resource of resources) {
          // If the server can list by watching, one of these is enough, while older servers need both.
          const neither = ['list', 'watch'].reduce(
            (left, verb) => without(left, { verb, resource }),
            roles,
          );
          await cluster.put(neither);
          const missing = `Forbidden.*ClusterRole must allow list and watch on ${resource}`;
          assert.match(await logAs(directives), new RegExp(missing, 'i'));
        }
        await cluster.put(roles);
      });
  });

  test('to checks are enough, and each of them is needed', async () => {
    const { roles, bindings } = rolesOf({ check: { enabled: true } }, 'dns-ndots-check');
    const service = { name: 'dns-ndots', namespace: 'kube-system' };
    const slice = {
      metadata: {
        ...service,
        labels: { 'kubernetes.io/service-name': service.name },
      },
      addressType: 'IPv4',
      ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
      endpoints: [{ addresses: ['10.9.9.9'] }],
    };
    await cluster.put([
      ...roles,
      ...bindings,
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: service,
        spec: { ports: [{ port: 53, protocol: 'UDP' }], clusterIP: '10.0.0.53' },
      },
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...slice },
    ] as unknown as KubeJson[]);
    const run = (): { code: number | null; out: string; complaints: string } => {
      const words = ['check', 'run', '--service', 'kube-system/dns-ndots', '-o', 'json'];
      const { status, stdout, stderr } = spawnSync(
        'bin/ndots',
        [...words, '--only', 'tcp', '--kubeconfig', cluster.kubeconfig('check')],
        { encoding: 'utf8', timeout: 60_000 },
      );
      return { code: status, out: stdout, complaints: stderr };
    };
    const all = run();
    assert.equal(all.complaints, '');
    assert.match(all.out, /10\.0\.0\.53/);
    const rights = rightsOf(roles);
    assert.equal(rights.length, 2);
    for (const right of rights) {
      await cluster.put(without(roles, right));
      const { code, complaints } = run();
      if (right.resource === 'endpointslices') {
        assert.match(complaints, /endpointslices \(discovery\.k8s\.io\), or endpoints is required/);
        assert.equal(code, 2);
      } else assert.match(complaints, /address of the service.*must allow get on services/s);
    }
  });

  test('to let it decide about readers are requested only if the values say so', () => {
    const delegators = (values: object): readonly (string | undefined)[] =>
      parseAllDocuments(helmTemplate(values))
        .map((document) => document.toJS() as (KubeJson & { roleRef?: { name: string } }) | null)
        .filter((object) => object?.roleRef?.name === 'system:auth-delegator')
        .map((object) => object?.metadata.name);
    const console = (configBlock: string): object => ({
      servers: [{ zones: [{ zone: '.' }], port: 53, plugins: [{ name: 'console', configBlock }] }],
    });
    assert.deepEqual(delegators(console('token_file /etc/token')), []);
    assert.deepEqual(delegators(console('auth kubernetes')), ['dns-ndots-delegator']);
    assert.deepEqual(delegators({ watch: { enabled: true } }), []);
    assert.deepEqual(delegators({ watch: { enabled: true, auth: 'kubernetes' } }), [
      'dns-ndots-watch-delegator',
    ]);
  });

  describe('to the webhook', () => {
    const name = 'dns-ndots-webhook';
    const values = { webhook: { enabled: true, mode: 'enforce' } };
    let parts: ReturnType<typeof rolesOf>;
    before(() => {
      parts = rolesOf(values, name);
    });

    /** Starts without a certificate or with an invalid one, and returns the log once it matches. */
    async function logUntil(pattern: RegExp, secret: 'no' | 'broken'): Promise<string> {
      await cluster.kubectl('delete', 'secret', name, '-n', 'kube-system', '--ignore-not-found');
      if (secret === 'broken')
        await cluster.put([
          {
            apiVersion: 'v1',
            kind: 'Secret',
            type: 'kubernetes.io/tls',
            metadata: { name, namespace: 'kube-system' },
            data: { 'tls.crt': 'eA==', 'tls.key': 'eA==' },
          } as unknown as KubeJson,
        ]);
      await cluster.kubectl('delete', 'mutatingwebhookconfiguration', name, '--ignore-not-found');
      const configuration = parseAllDocuments(helmTemplate(values))
        .map((document) => document.toJS() as KubeJson | null)
        .filter((object) => object?.kind === 'MutatingWebhookConfiguration') as KubeJson[];
      assert.deepEqual(await cluster.put(configuration), []);
      const [port] = await freePorts(1);
      const child = start('ndots webhook', [
        ...['bin/ndots', 'webhook', 'serve', '--host', '127.0.0.1', '--port', String(port)],
        ...['--namespace', 'kube-system', '--kubeconfig', cluster.kubeconfig('webhook')],
        ...['--service', name, '--secret', name, '--configuration', name],
      ]);
      const asking = setInterval(() => review(port), 200);
      try {
        await printed(child, pattern, 30_000);
      } finally {
        clearInterval(asking);
        await child.stop();
      }
      return child.output();
    }

    test('are sufficient', async () => {
      assert.deepEqual(await cluster.put([...parts.roles, ...parts.bindings]), []);
      // Permissions take effect after a moment.
      await pause(1000);
      for (const secret of ['no', 'broken'] as const) {
        const log = await logUntil(/wrote this webhook's CA to/, secret);
        assert.match(log, /created a certificate/);
        assert.doesNotMatch(log, /Forbidden|WARNING/);
      }
    });

    test('are all needed', async () => {
      await cluster.put([...parts.roles, ...parts.bindings]);
      const rights = rightsOf(parts.roles);
      assert.deepEqual(
        rights.map(({ verb, resource }) => `${verb} ${resource}`),
        [
          'get namespaces',
          'get mutatingwebhookconfigurations',
          'update mutatingwebhookconfigurations',
          'get secrets',
          'update secrets',
          'create secrets',
        ],
      );
      for (const right of rights) {
        await cluster.put(without(parts.roles, right));
        const { verb, resource } = right;
        const work =
          resource === 'namespaces' ? 'the annotations of namespaces' : 'keeping the certificate';
        const pattern = new RegExp(`WARNING.*${work}.*must allow ${verb} of ${resource}`);
        await logUntil(pattern, right.verb === 'update' ? 'broken' : 'no');
      }
      await cluster.put(parts.roles);
    });
  });
});

/** Sends a pod for review, whatever the result. */
function review(port: number): void {
  const asked = request({
    host: '127.0.0.1',
    port,
    path: '/mutate',
    method: 'POST',
    rejectUnauthorized: false,
  });
  asked.on('error', () => undefined);
  asked.on('response', (reply) => reply.resume());
  const object = { kind: 'Pod', metadata: { name: 'a' }, spec: {} };
  asked.end(
    JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid: 'u', namespace: 'default', object },
    }),
  );
}
