import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { typeNumber } from '../../src/server/wire/iana.ts';
import { readMessage, type Message } from '../../src/server/wire/message.ts';
import { objects } from '../conformance/objects.ts';
import { check, readRows, resultOf } from '../conformance/rows.ts';
import { configurations } from '../conformance/table.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, question, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer, testedMinors } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';

/**
 * Tests the answers of `ndots serve` for a real cluster against the conformance table, with objects written by kubectl.
 */

/** Only has the permissions in deploy/README.md. */
const permissions = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'system:coredns' },
    rules: [
      { apiGroups: [''], resources: ['services', 'namespaces', 'pods'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      {
        apiGroups: ['multicluster.x-k8s.io'],
        resources: ['serviceimports'],
        verbs: ['list', 'watch'],
      },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'system:coredns' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
    subjects: [{ kind: 'ServiceAccount', name: 'coredns', namespace: 'kube-system' }],
  },
] as unknown as readonly KubeJson[];

/** The multicluster API's ServiceImport (KEP-1645), limited to the fields that the table needs. */
const serviceImports = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'serviceimports.multicluster.x-k8s.io',
    annotations: {
      'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements/pull/1645',
    },
  },
  spec: {
    group: 'multicluster.x-k8s.io',
    scope: 'Namespaced',
    names: { kind: 'ServiceImport', plural: 'serviceimports', singular: 'serviceimport' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
} as unknown as KubeJson;

/**
 * Objects in the table that this API server refuses, and the names in rows that concern them. Older versions accepted
 * some.
 */
const impossible: Readonly<Record<string, RegExp>> = {
  'Service portless': /^portless\./,
  'Service zeros': /^zeros\.|^1\.8\.0\.10\./,
  'EndpointSlice hdlszeros-1': /hdlszeros\.|^6\.0\.9\.10\./,
  'EndpointSlice hdlsmapped-1': /hdlsmapped\.|^2\.8\.20\.172\./,
  'Pod zeros': /^172-30-0-8\./,
};

/** The rest of the internet in the table (test/conformance/elsewhere.ts), as a server block. */
const elsewhere = (port: number): string => `.:${port} {
  bind 127.0.0.1
  template IN A ext.example.org {
    answer "{{ .Name }} 303 IN A 198.51.100.1"
  }
  template ANY ANY ext.example.org
  template IN PTR in-addr.arpa {
    answer "{{ .Name }} 303 IN PTR elsewhere.example.org."
  }
  template ANY ANY in-addr.arpa
  template ANY ANY fails.example.org {
    rcode SERVFAIL
  }
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
`;

/** Queries over TCP, where replies are not truncated. */
function ask(port: number, name: string, type: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const query = question(name, typeNumber(type)!);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat([length, query])));
    let read = Buffer.alloc(0);
    socket.setTimeout(5000, () => socket.destroy(new Error(`no reply for ${name} ${type}`)));
    socket.on('error', reject);
    socket.on('data', (piece: Buffer) => {
      read = Buffer.concat([read, piece]);
      if (read.length < 2 || read.length < 2 + read.readUInt16BE(0)) return;
      socket.destroy();
      resolve(readMessage(read, 2, read.length));
    });
  });
}

/** Repeats the query until the condition holds, or fails with the last answer. */
async function soon(port: number, name: string, holds: (reply: Message) => boolean): Promise<void> {
  const begin = performance.now();
  for (;;) {
    const reply = await ask(port, name, 'A');
    if (holds(reply)) return;
    if (performance.now() - begin > 5000)
      assert.fail(`${name} is ${resultOf(reply)}, ${reply.answer.length} records, after 5 s`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

for (const minor of testedMinors)
  describe(
    `a real API server${minor === null ? '' : ` of Kubernetes ${minor}`}`,
    { skip: noApiServer(minor) ?? false },
    () => {
      /** Objects that the API server refuses. Older versions accept some that the newest one refuses. */
      let refused: ReadonlySet<string> = new Set();
      const directory = mkdtempSync(join(tmpdir(), 'ndots-conformance-'));
      let cluster: Cluster;
      let server: Child;
      let ports: readonly number[];

      before(async () => {
        cluster = await Cluster.start(minor);
        await cluster.put([serviceImports, ...permissions]);
        await cluster.kubectl(
          'wait',
          '--for=condition=Established',
          'crd',
          '--all',
          '--timeout=30s',
        );
        refused = new Set((await cluster.put(objects)).map(({ kind, name }) => `${kind} ${name}`));
        if (minor === null) assert.deepEqual([...refused], Object.keys(impossible));
        else
          assert.deepEqual(
            [...refused].filter((each) => !Object.hasOwn(impossible, each)),
            [],
          );
        ports = await freePorts(configurations.length + 1);
        const beyond = ports.at(-1)!;
        const blocks = configurations.map(
          ({ zones, properties }, nth) => `.:${ports[nth]} {
  bind 127.0.0.1
  kubernetes ${zones} {
    kubeconfig ${cluster.kubeconfig('dns')}
    ${properties.join('\n    ')}
  }
  forward . 127.0.0.1:${beyond}
}
`,
        );
        const corefile = join(directory, 'Corefile');
        writeFileSync(corefile, [...blocks, elsewhere(beyond)].join(''));
        server = start('ndots', ['bin/ndots', 'serve', '-conf', corefile]);
        await printed(server, /^ndots-\d/m, 30_000);
      });

      after(async () => {
        await server?.stop();
        await cluster?.[Symbol.asyncDispose]();
        rmSync(directory, { recursive: true });
      });

      for (const [nth, configuration] of configurations.entries()) {
        describe(configuration.title, () => {
          for (const row of readRows(configuration)) {
            const absent = Object.keys(impossible).find((each) => impossible[each]!.test(row.name));
            test(`${row.name} ${row.type} is ${row.result}`, async (t) => {
              if (absent !== undefined && refused.has(absent))
                return t.skip(`the API server does not take ${absent}`);
              check(row, await ask(ports[nth]!, row.name, row.type));
            });
          }
        });
      }

      test('the permissions that deploy/README.md names are enough', () => {
        assert.doesNotMatch(server.output(), /forbidden|FATAL/i);
      });

      test('changes by kubectl are in the next answer, also after the API server was away', async () => {
        const port = ports[0]!;
        const name = 'late.testns.svc.cluster.local.';
        const create = (address: string): Promise<string> =>
          cluster.kubectl(
            'create',
            'service',
            'clusterip',
            'late',
            '-n',
            'testns',
            '--tcp=80',
            `--clusterip=${address}`,
          );
        await create('10.0.7.1');
        await soon(port, name, ({ answer }) => answer.length === 1);
        await cluster.kubectl('delete', 'service', 'late', '-n', 'testns');
        await soon(port, name, (reply) => resultOf(reply) === 'NXDOMAIN');

        await cluster.killApiServer();
        assert.equal((await ask(port, 'svc1.testns.svc.cluster.local.', 'A')).answer.length, 1);
        await cluster.startApiServer();
        await create('10.0.7.2');
        await soon(port, name, ({ answer }) => answer.length === 1);
        await cluster.kubectl('delete', 'service', 'late', '-n', 'testns');
        await soon(port, name, (reply) => resultOf(reply) === 'NXDOMAIN');
      });
    },
  );
