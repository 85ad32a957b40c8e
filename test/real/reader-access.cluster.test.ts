/**
 * Readers of live views, tested with a real API server. It allows or denies them access to the directive, the agent and
 * the page.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../src/server/base/clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { ACCESS_AUDIENCE, ApiAccess } from '../../src/server/kube/access/api-access.ts';
import { kubeconfigConnection } from '../../src/server/kube/api/connection.ts';
import { LiveModel } from '../../src/tools/watch/live-model.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { fileSource, TestConsole } from '../kit/console-browser.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const GROUP = 'rbac.authorization.k8s.io';

/** The permission to review access, which every cluster defines, and the readers' permission. */
const rights = [
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'ndots-delegates' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'system:auth-delegator' },
    subjects: [{ kind: 'ServiceAccount', name: 'coredns', namespace: 'kube-system' }],
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'ndots-reader' },
    rules: [{ nonResourceURLs: ['/v1/exchanges', '/console'], verbs: ['get'] }],
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'ndots-reader' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'ndots-reader' },
    subjects: [{ kind: 'ServiceAccount', name: 'ada', namespace: 'default' }],
  },
  ...['ada', 'bob'].map((name) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: 'default' },
  })),
] as unknown as KubeJson[];

/** The same token, signed again with an expiry time in the past. */
function expired(token: string, keyFile: string): string {
  const [head = '', body = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
  const earlier = Math.floor(Date.now() / 1000) - 7200;
  const past = { ...claims, iat: earlier, nbf: earlier, exp: earlier + 600 };
  const text = `${head}.${Buffer.from(JSON.stringify(past)).toString('base64url')}`;
  const key = createPrivateKey(readFileSync(keyFile));
  const seal = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
  return `${text}.${seal.toString('base64url')}`;
}

/** A program that delegates authorization, and the resources that its readers request. */
interface Delegate {
  readonly url: string;
  log(): string;
  stop(): Promise<unknown>;
}

const delegates: Readonly<Record<string, (kubeconfig: string) => Promise<Delegate>>> = {
  async 'the directive console'(kubeconfig) {
    const [port] = await freePorts(1);
    const { child, stop } = await serveProcess(
      `console 127.0.0.1:${port} {\n auth kubernetes ${kubeconfig}\n }\n whoami`,
    );
    return { url: `http://127.0.0.1:${port}/v1/exchanges`, log: () => child.output(), stop };
  },
  async 'the agent'(kubeconfig) {
    const [port] = await freePorts(1);
    const child = start('agent', [
      ...[program, 'watch', 'serve', '--listen', `127.0.0.1:${port}`],
      ...['--auth', 'kubernetes', '--kubeconfig', kubeconfig],
    ]);
    await printed(child, /packets for readers on/);
    const url = `http://127.0.0.1:${port}/v1/exchanges`;
    return { url, log: () => child.output(), stop: () => child.stop() };
  },
  async 'the page'(kubeconfig) {
    const lines: string[] = [];
    const gate = new ApiAccess({
      connection: kubeconfigConnection(kubeconfig),
      ...{ version: 'test', clock: systemClock, log: makeLog((line) => lines.push(line)) },
    });
    const page = new TestConsole();
    const server = await page.serve(new LiveModel({}), fileSource(), 'test', { gate });
    const stop = async (): Promise<void> => {
      await server.close();
      gate.close();
      await page.close();
    };
    return { url: `${server.address}api/view/now`, log: () => lines.join('\n'), stop };
  },
};

describe('readers that the API server decides about', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  const token = async (name: string, audience: string = ACCESS_AUDIENCE): Promise<string> =>
    (
      await cluster.kubectl('create', 'token', name, '--audience', audience, '--duration', '1h')
    ).trim();
  before(async () => {
    cluster = await Cluster.start();
    assert.deepEqual(await cluster.put(rights), []);
    // Permissions take effect after a moment.
    await pause(1000);
  });
  after(async () => cluster?.[Symbol.asyncDispose]());

  for (const [name, begin] of Object.entries(delegates))
    test(`${name}: permitted, forbidden, expired, for another audience, API server away`, async (t) => {
      const delegate = await begin(cluster.kubeconfig('dns'));
      t.after(() => delegate.stop());
      const ask = async (given: string): Promise<readonly [number, string]> => {
        const closed = new AbortController();
        const { status, body } = await fetch(delegate.url, {
          headers: { authorization: `Bearer ${given}` },
          signal: closed.signal,
        });
        const said = status === 200 ? '' : await new Response(body).text();
        closed.abort();
        return [status, said];
      };
      const ada = await token('ada');
      assert.deepEqual(await ask(ada), [200, '']);
      const [forbidden, why] = await ask(await token('bob'));
      assert.equal(forbidden, 403);
      assert.match(why, /user system:serviceaccount:default:bob has no permission to get \//);
      for (const [given, reason] of [
        [expired(ada, cluster.accountsKeyFile), /expired/],
        [await token('ada', 'https://kubernetes.default.svc'), /audience/],
        // A static token is only valid for the API server, so even its administrator needs one for us.
        ['token-of-admin', /does not accept the token/],
        [`${ada.slice(0, -8)}AAAAAAAA`, /does not accept the token/],
      ] as const) {
        const [status, text] = await ask(given);
        assert.equal(status, 401, given);
        assert.match(text, reason);
      }
      await cluster.killApiServer();
      const other = await token('ada').catch(() => `${ada}x`);
      assert.deepEqual((await ask(ada))[0], 200, 'a decision is valid for 10 s');
      const [away, text] = await ask(other);
      assert.equal(away, 503);
      assert.match(text, /API server does not decide/i);
      await pause(10_000);
      assert.equal((await ask(ada))[0], 503);
      assert.match(
        delegate.log(),
        /review of a token: nothing listens at the API server's address/,
      );
      await cluster.startApiServer();
      assert.deepEqual(await ask(ada), [200, '']);
    });

  test('a delegate without the permission refuses, and its log names it', async (t) => {
    const delegate = await delegates['the directive console']!(cluster.kubeconfig('check'));
    t.after(() => delegate.stop());
    const { status } = await fetch(delegate.url, {
      headers: { authorization: `Bearer ${await token('ada')}` },
    });
    assert.equal(status, 503);
    while (!/ClusterRole must allow create of tokenreviews/.test(delegate.log())) await pause(50);
  });
});
