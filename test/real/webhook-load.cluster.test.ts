/** The webhook at the rate of deployments in a large cluster, and the effect on pods if it dies in the meantime. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Authority } from '../kit/authority.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';
import { webhookConfiguration } from '../kit/webhook-configuration.ts';

const PODS = 200;

describe('the webhook under load', { skip: noApiServer() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-webhook-load-'));
  const authority = Authority.make('test');
  let cluster: Cluster;
  let child: Child;
  let port = 0;

  before(async () => {
    cluster = await Cluster.start();
    const { cert, key } = authority.issue('127.0.0.1', ['127.0.0.1']);
    writeFileSync(join(directory, 'tls.crt'), cert);
    writeFileSync(join(directory, 'tls.key'), key);
    [port] = await freePorts(1);
    child = await hook();
    await cluster.put([
      {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'shop', annotations: { 'ndots.dev/dns-ndots': '2' } },
      },
      webhookConfiguration('load', {
        url: `https://127.0.0.1:${port}/mutate`,
        caBundle: Buffer.from(authority.cert).toString('base64'),
      }),
    ] as unknown as KubeJson[]);
    await pause(2000);
  });
  after(async () => {
    await child?.stop();
    await cluster?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  async function hook(): Promise<Child> {
    const made = start('ndots', [
      ...['bin/ndots', 'webhook', 'serve', '--mode', 'enforce', '--host', '127.0.0.1'],
      ...['--port', String(port), '--kubeconfig', cluster.kubeconfig('admin')],
      ...['--cert', join(directory, 'tls.crt'), '--key', join(directory, 'tls.key')],
    ]);
    await printed(made, /serving with the certificate/, 20_000);
    return made;
  }

  test('200 reviews a second are answered, most of them at once', async (t) => {
    const agent = new Agent({ ca: authority.cert, keepAlive: true, maxSockets: 8 });
    const review = (uid: string): string =>
      JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: { uid, namespace: 'shop', object: podOf('web', {}) },
      });
    const ask = (uid: string): Promise<number> => {
      const begun = performance.now();
      return new Promise((resolve, reject) => {
        const asked = request(
          { host: '127.0.0.1', port, path: '/mutate', method: 'POST', agent },
          (reply) => {
            let text = '';
            reply.on('data', (piece: Buffer) => (text += piece.toString()));
            reply.on('end', () => {
              assert.match(text, /"patch":/);
              resolve(performance.now() - begun);
            });
          },
        );
        asked.on('error', reject);
        asked.end(review(uid));
      });
    };
    // The first requests only compile the code.
    await Promise.all(Array.from({ length: 200 }, (_, nth) => ask(`warm-${nth}`)));
    const cpu = child.cpuSeconds();
    const times: Promise<number>[] = [];
    const begin = performance.now();
    for (let nth = 0; nth < 2000; nth++) {
      const wait = begin + nth * 5 - performance.now();
      if (wait > 1) await pause(wait);
      times.push(ask(`load-${nth}`));
    }
    const sorted = (await Promise.all(times)).toSorted((a, b) => a - b);
    agent.destroy();
    const at = (share: number): string => sorted[Math.floor(sorted.length * share)]!.toFixed(1);
    const used = ((child.cpuSeconds() - cpu) / 2000) * 1000;
    t.diagnostic(
      `200/s: median ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(0.9999)} ms; ${used.toFixed(2)} ms of a CPU each; ${child.residentMiB().toFixed(0)} MiB`,
    );
    // It takes 20 ms on an idle machine, but this machine has other work too.
    assert.ok(Number(at(0.99)) < 500, `p99 ${at(0.99)} ms`);
    assert.ok(used < 5, `${used} ms each`);
  });

  test('pods are created although it is killed, and the next one takes over', async (t) => {
    const pods = Array.from({ length: PODS }, (_, nth) =>
      podOf(`web-${nth}`, { namespace: 'shop' }),
    );
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods });
    const creating = cluster.kubectlWith(list, 'create', '-f', '-');
    const count = async (): Promise<readonly { spec: { dnsConfig?: object } }[]> =>
      (
        JSON.parse(await cluster.kubectl('get', 'pods', '-n', 'shop', '-o', 'json')) as {
          items: { spec: { dnsConfig?: object } }[];
        }
      ).items;
    while ((await count()).length < 20) await pause(50);
    child.signal('SIGKILL');
    await child.exitCode;
    await creating;
    const made = await count();
    assert.equal(made.length, PODS);
    const changed = made.filter(({ spec }) => spec.dnsConfig !== undefined).length;
    t.diagnostic(`${PODS} pods made, ${changed} of them before it was killed`);
    assert.ok(changed >= 1 && changed < PODS, `${changed}`);
    child = await hook();
    await cluster.kubectlWith(
      JSON.stringify(podOf('later', { namespace: 'shop' })),
      'create',
      '-f',
      '-',
    );
    assert.match(
      await cluster.kubectl('get', 'pod', 'later', '-n', 'shop', '-o', 'json'),
      /"dnsConfig"/,
    );
  });

  test('pods are made while it is flooded by others', async (t) => {
    const agent = new Agent({ rejectUnauthorized: false, maxSockets: 64 });
    let flooding = true;
    const flood = Array.from({ length: 64 }, async () => {
      while (flooding)
        await new Promise<void>((done) => {
          const asked = request({
            host: '127.0.0.1',
            port,
            path: '/mutate',
            method: 'POST',
            agent,
          });
          asked.on('error', () => done());
          asked.on('response', (reply) => reply.resume().on('end', done));
          asked.end(Buffer.alloc(200_000, 0x5b));
        });
    });
    const began = performance.now();
    for (let nth = 0; nth < 5; nth++)
      await cluster.kubectlWith(
        JSON.stringify(podOf(`flooded-${nth}`, { namespace: 'shop' })),
        'create',
        '-f',
        '-',
      );
    t.diagnostic(`5 pods in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    flooding = false;
    await Promise.all(flood);
    agent.destroy();
    assert.ok(child.residentMiB() < 200, `${child.residentMiB()} MiB`);
  });
});

function podOf(name: string, metadata: object): KubeJson {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'a', image: 'a' }] },
  } as unknown as KubeJson;
}
