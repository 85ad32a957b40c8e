/**
 * Live views of a real cluster. `top` and `console` show the agents in deploy/watch and the console directive in ndots
 * DNS pods.
 */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { CachesView } from '../../src/faces/cli/console/server-caches.ts';
import type { MapView } from '../../src/tools/watch/map-shape.ts';
import type { ClientRow, ClientsView, InputRow, NowView } from '../../src/tools/watch/view.ts';
import { buildConsole } from '../../tools/browser-bundle.ts';
import { printed, type Child } from '../kit/child.ts';
import { DNS_DEPLOYMENT, DNS_PODS } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/watch');
/** The page of `ndots console`, which `npm ci` builds. */
const page = resolve(import.meta.dirname, '../../dist/console');
const NAMESPACE = 'ndots-watch';
const TOKEN = 'a-token-that-is-long-enough';
/** A name with fewer dots than ndots, so that every search domain is tried. */
const EXTERNAL = 'www.example.com';
const LOOKUPS = 5;
/** A and AAAA queries for each of the five search domains and for the name itself. */
const QUERIES = 12;

describe('live views of a real cluster', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  let token = '';
  before(async () => {
    if (!existsSync(join(page, 'console.js'))) await buildConsole(page);
    node = await NodeCluster.start();
    token = join(node.space.directory, 'token');
    writeFileSync(token, TOKEN);
  });
  after(() => node?.[Symbol.asyncDispose]());

  async function lookUp(selector: string, name: string): Promise<void> {
    const pid = await node.pidOf('shop', selector);
    await node.inPod(pid, ['/usr/local/bin/lookup-glibc', name, '0', '1']);
  }

  /**
   * Looks up names in another pod until every input shows queries. Only then will an input show all queries that
   * follow.
   */
  const untilRead = (inputs: () => Promise<readonly InputRow[]>): Promise<void> =>
    until('queries in every input', async () => {
      await lookUp('app=web', 'first.example.com');
      const rows = await inputs();
      const shown = rows.map(({ name, state, queries }) => `${name} ${state} ${queries}`);
      return rows.length > 0 && rows.every(({ queries }) => queries > 0)
        ? null
        : shown.join(', ') || 'no inputs';
    });

  const clientIn = (rows: readonly ClientRow[]): ClientRow | undefined =>
    rows.find(({ name }) => name.startsWith('shop/client-'));

  /**
   * The clients after lookups in the client pod, from the first view with all its queries and from the view after that.
   */
  async function clientsAfterLookups(
    view: () => Promise<ClientsView | null>,
  ): Promise<ClientsView> {
    await untilRead(async () => (await view())?.inputs ?? []);
    for (let i = 0; i < LOOKUPS; i++) await lookUp('app=client', EXTERNAL);
    let complete: ClientsView | null = null;
    await until("a view after all of the client's queries", async () => {
      const shown = await view();
      const { lookups = 0, queries = 0 } = clientIn(shown?.rows ?? []) ?? {};
      if (queries < LOOKUPS * QUERIES || lookups < LOOKUPS)
        return `${lookups} lookups, ${queries} queries`;
      complete ??= shown;
      return shown!.atMs > complete!.atMs ? null : 'the same view';
    });
    const last = (await view())!;
    const figures = last.rows.map(
      ({ name, lookups, queries }) => `${name} ${lookups} lookups ${queries} queries`,
    );
    say(figures.join(', '));
    return last;
  }

  /** The clients that `top` shows. */
  async function inTop(...from: readonly string[]): Promise<ClientsView> {
    const top = node.startNdots([
      ...['top', '--replicas', ...from, '--server-token', token, '--cluster'],
      ...['--view', 'clients', '-o', 'json'],
    ]);
    let ended = false;
    void top.exitCode.then(() => (ended = true));
    try {
      return await clientsAfterLookups(async () => {
        if (ended) throw new Error(`ndots top ended: ${top.output()}`);
        const lines = top.output().split('\n');
        const line = lines.slice(0, -1).findLast((each) => each.startsWith('{'));
        return line === undefined ? null : (JSON.parse(line) as ClientsView);
      });
    } finally {
      await top.stop();
    }
  }

  test('the agents of deploy/watch show the lookups of a pod, whatever serves DNS', async () => {
    const yaml = await node.kubectl('kustomize', manifests);
    await node.kubectlWith(yaml, 'apply', '-f', '-');
    await node.kubectl(
      ...['-n', NAMESPACE, 'create', 'secret', 'generic', 'ndots-watch'],
      `--from-literal=token=${TOKEN}`,
    );
    await node.rolledOut(NAMESPACE, 'daemonset/ndots-watch');
    const { rows, inputs, lostByKernel } = await inTop(
      ...['--replica-namespace', NAMESPACE, '--replica-selector', 'app=ndots-watch'],
      ...['--replica-node-selector', 'kubernetes.io/hostname=node1'],
    );
    assert.deepEqual(
      inputs.map(({ name }) => name.replace(/-\w+ on/, ' on')),
      [`pod ${NAMESPACE}/ndots-watch on node1`],
    );
    assert.equal(lostByKernel, 0);
    const client = clientIn(rows);
    assert.deepEqual(
      [client?.lookups, client?.queries, client?.lost],
      [LOOKUPS, LOOKUPS * QUERIES, 0],
    );
    await node.kubectlWith(yaml, 'delete', '--wait=false', '-f', '-');
  });

  test('the directive console of all DNS pods shows the same through the API server', async () => {
    await addDirectives();
    const { rows, inputs } = await inTop();
    assert.equal(inputs.length, 2);
    assertClient(rows);
  });

  /** Replaces CoreDNS with ndots and enables the console and admin directives. */
  async function addDirectives(): Promise<void> {
    const corefile = await node.kubectl(
      ...['-n', 'kube-system', 'get', 'configmap', 'coredns', '-o', 'jsonpath={.data.Corefile}'],
    );
    await node.kubectl(
      ...['-n', 'kube-system', 'create', 'secret', 'generic', 'dns-console'],
      `--from-literal=token=${TOKEN}`,
    );
    const directives = [
      ['console', 9155],
      ['admin', 9154],
    ].map(
      ([name, port]) => `    ${name} :${port} {\n        token_file /etc/dns-console/token\n    }`,
    );
    await node.kubectl(
      ...['-n', 'kube-system', 'patch', 'configmap', 'coredns', '--type=merge', '-p'],
      JSON.stringify({
        data: { Corefile: corefile.replace('.:53 {', `.:53 {\n${directives.join('\n')}`) },
      }),
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
  }

  function assertClient(rows: readonly ClientRow[]): void {
    const client = clientIn(rows);
    // kube-proxy chooses a pod for each socket, so one lookup's queries go to both pods.
    assert.deepEqual([client?.queries, client?.lost], [LOOKUPS * QUERIES, 0]);
    assert.ok(client!.lookups >= LOOKUPS);
    assert.equal(client!.workload, 'deploy/client');
  }

  test('console shows in a browser what top does, the map of the cluster, and the caches of its DNS pods', async () => {
    const served = node.startNdots([
      ...['console', '--replicas', '--server-token', token, '--admin-token', token, '--no-open'],
    ]);
    try {
      await printed(served, /^http:\S+\n/m);
      await assertConsole(served);
    } finally {
      await served.stop();
    }
  });

  async function assertConsole(served: Child): Promise<void> {
    const [, address = ''] = /^(http:\S+)$/m.exec(served.output())!;
    const cookies = join(node.space.directory, 'cookies');
    const get = (path: string, ...words: readonly string[]): Promise<string> =>
      node.space.must([
        'curl',
        '-sS',
        '-f',
        '-b',
        cookies,
        ...words,
        new URL(path, address).toString(),
      ]);
    const json = async <T>(path: string): Promise<T> => JSON.parse(await get(path)) as T;
    // The first visit moves the token to a cookie and redirects to the page.
    assert.match(await get(address, '-L', '-c', cookies), /<script[^>]+console\.js/);

    const { rows, inputs } = await clientsAfterLookups(() => json('/api/view/clients'));
    const pods = await node.pods('kube-system', DNS_PODS);
    assert.deepEqual(
      inputs.map(({ name }) => name).toSorted(),
      pods.map(({ metadata }) => `pod kube-system/${metadata.name} on node1`).toSorted(),
    );
    assertClient(rows);
    // Other pods send queries between two views.
    const now = await json<NowView>('/api/view/now');
    assert.equal(
      now.queries,
      now.inputs.reduce((sum, input) => sum + input.queries, 0),
    );
    assert.equal(now.lost, 0);

    // The map counts a lookup when it has ended. Both pods see a part of it, so there may be more than the client made.
    await until('the map to show all lookups of the client', async () => {
      const { nodes, edges } = await json<MapView>('/api/view/map');
      const from = nodes.find(({ name }) => name === 'shop/deploy/client');
      const counts = edges.filter((edge) => edge.from === from?.id).map((edge) => edge.queries);
      const queries = counts.reduce((sum, each) => sum + each, 0);
      assert.ok(queries <= LOOKUPS * QUERIES, JSON.stringify({ nodes, edges }));
      return queries === LOOKUPS * QUERIES ? null : JSON.stringify({ nodes, edges });
    });

    const live = ['sh', '-c', 'curl -sSN -b "$1" "$2" | head -n 2', 'sh', cookies];
    const frame = await node.space.must([
      ...live,
      new URL('/api/live/clients', address).toString(),
    ]);
    assertClient((JSON.parse(/^data: (.*)$/m.exec(frame)![1]!) as ClientsView).rows);

    const { answers } = await json<CachesView>(`/api/cache?name=${EXTERNAL}`);
    assert.equal(answers.length, pods.length);
    assert.ok(
      answers.every(({ failure }) => failure === undefined),
      JSON.stringify(answers),
    );
    assert.match(JSON.stringify(answers), /NOERROR/);
  }
});
