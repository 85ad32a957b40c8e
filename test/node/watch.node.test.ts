/** Live views of a real cluster: the agents in deploy/watch, and the console directive of ndots DNS pods. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ClientsView } from '../../src/tools/watch/view.ts';
import { DNS_DEPLOYMENT } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say } from './progress.ts';
import { pause } from './stream.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/watch');
const NAMESPACE = 'ndots-watch';
const TOKEN = 'a-token-that-is-long-enough';
/** A name with fewer dots than ndots, so that every search domain is tried. */
const EXTERNAL = 'www.example.com';
const LOOKUPS = 5;
/** A and AAAA for each of five search domains and for the name itself. */
const QUERIES = 12;

describe('live views of a real cluster', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  let token = '';
  before(async () => {
    node = await NodeCluster.start();
    token = join(node.space.folder, 'token');
    writeFileSync(token, TOKEN);
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** The clients that `top` shows after a pod's lookups. */
  async function clientsSeen(...from: readonly string[]): Promise<ClientsView> {
    const client = await node.pidOf('shop', 'app=client');
    const watched = node.ndots([
      ...['top', '--replicas', ...from, '--server-token', token, '--cluster'],
      ...['--once', '--for', '20s', '--view', 'clients', '-o', 'json'],
    ]);
    await pause(8000);
    for (let i = 0; i < LOOKUPS; i++)
      await node.inPod(client, ['/usr/local/bin/lookup-glibc', EXTERNAL, '0', '1']);
    const { code, out, err } = await watched;
    assert.equal(code, 0, err);
    const view = JSON.parse(out) as ClientsView;
    say(view.rows.map(({ name, lookups, queries }) => `${name} ${lookups} ${queries}`).join(', '));
    return view;
  }

  test('the agents of deploy/watch show the lookups of a pod, whatever serves DNS', async () => {
    const yaml = await node.kubectl('kustomize', manifests);
    await node.kubectlWith(yaml, 'apply', '-f', '-');
    await node.kubectl(
      ...['-n', NAMESPACE, 'create', 'secret', 'generic', 'ndots-watch'],
      `--from-literal=token=${TOKEN}`,
    );
    await node.rolledOut(NAMESPACE, 'daemonset/ndots-watch');
    const { rows, inputs, lostByKernel } = await clientsSeen(
      ...['--replica-namespace', NAMESPACE, '--replica-selector', 'app=ndots-watch'],
    );
    assert.equal(inputs.length, 1);
    assert.equal(lostByKernel, 0);
    const client = rows.find(({ name }) => name.includes('client-'));
    assert.deepEqual(
      [client?.lookups, client?.queries, client?.lost],
      [LOOKUPS, LOOKUPS * QUERIES, 0],
    );
    await node.kubectlWith(yaml, 'delete', '--wait=false', '-f', '-');
  });

  test('the directive console of all DNS pods shows the same through the API server', async () => {
    const corefile = await node.kubectl(
      ...['-n', 'kube-system', 'get', 'configmap', 'coredns', '-o', 'jsonpath={.data.Corefile}'],
    );
    await node.kubectl(
      ...['-n', 'kube-system', 'create', 'secret', 'generic', 'dns-console'],
      `--from-literal=token=${TOKEN}`,
    );
    const withConsole = corefile.replace(
      '.:53 {',
      '.:53 {\n    console :9155 {\n        token_file /etc/dns-console/token\n    }',
    );
    await node.kubectl(
      ...['-n', 'kube-system', 'patch', 'configmap', 'coredns', '--type=merge', '-p'],
      JSON.stringify({ data: { Corefile: withConsole } }),
    );
    await node.kubectl(
      ...['-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p'],
      JSON.stringify({
        spec: {
          template: {
            spec: {
              volumes: [{ name: 'dns-console', secret: { secretName: 'dns-console' } }],
              containers: [
                {
                  name: 'coredns',
                  image: NDOTS_IMAGES[0],
                  volumeMounts: [{ name: 'dns-console', mountPath: '/etc/dns-console' }],
                },
              ],
            },
          },
        },
      }),
    );
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
    const { rows, inputs } = await clientsSeen();
    assert.equal(inputs.length, 2);
    const client = rows.find(({ name }) => name.includes('client-'));
    // kube-proxy chooses a pod per socket, so a lookup's queries go to both.
    assert.deepEqual([client?.queries, client?.lost], [LOOKUPS * QUERIES, 0]);
    assert.ok(client!.lookups >= LOOKUPS);
  });
});
