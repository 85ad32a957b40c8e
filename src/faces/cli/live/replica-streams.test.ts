/** Tests a combined view of a cluster's DNS pods, using real servers behind an API server proxy. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { DnsPodsApi, kubeconfigOf } from '../../../../test/kit/dns-pods-api.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { modelUntil } from '../../../../test/kit/watched.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { systemClock, type Clock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import type { ReplicaChoice } from './replica-choice.ts';
import { ReplicaStreams } from './replica-streams.ts';
import { NO_MESSAGE } from './server-stream.ts';
import { turnsOfThread } from './stream-turns.ts';

const folder = mkdtempSync(join(tmpdir(), 'ndots-replicas-'));
after(() => rmSync(folder, { recursive: true }));
const TOKEN = 'a-token-that-is-long-enough';
writeFileSync(join(folder, 'token'), TOKEN);

async function serve(t: TestContext, port: number): Promise<World> {
  const console = `console 127.0.0.1:${port} {\n token_file token\n }`;
  const world = await makeWorld(`. {\n ${console}\n hosts {\n 192.0.2.1 a.example\n }\n}`, {
    folder,
  });
  t.after(() => world.close());
  return world;
}

/** Shortens all waits except the silence timeout. */
const clock: Clock = {
  now: () => systemClock.now(),
  wall: () => systemClock.wall(),
  after: (ms, run) => systemClock.after(ms > 10_000 ? ms : Math.min(ms, 50), run),
};

async function follow(
  t: TestContext,
  api: DnsPodsApi,
  token = TOKEN,
  chosen: Partial<ReplicaChoice> = {},
): Promise<[LiveModel, ReplicaStreams]> {
  const model = new LiveModel();
  model.advance(Date.now());
  const access = { kubeconfig: kubeconfigOf(t, [api]), context: null, as: null, asGroup: [] };
  const streams = await ReplicaStreams.start({
    choice: {
      ...{ namespace: 'kube-system', selector: null, port: 9155, access },
      ...{ nodes: [], nodeSelector: null, podsMax: 64, ...chosen },
    },
    token: () => token,
    ports: [53],
    model,
    clock,
    io: { env: {}, signal: new AbortController().signal },
    turns: turnsOfThread(clock),
  });
  t.after(() => streams.stop());
  return [model, streams];
}

async function twoPods(t: TestContext, api: DnsPodsApi): Promise<[World, World]> {
  const [one, two] = (await freePorts(2)) as [number, number];
  api.pods = [
    { name: 'coredns-a', podIP: '10.244.0.5', port: one },
    { name: 'coredns-b', podIP: '10.244.1.7', port: two },
  ];
  return [await serve(t, one), await serve(t, two)];
}

test('the pods of a cluster form one view, by their addresses', async (t) => {
  const api = await DnsPodsApi.start(t, 'test');
  const worlds = await twoPods(t, api);
  const [model, streams] = await follow(t, api);
  assert.equal(streams.name, '2 DNS pods of context test');
  const rows = (): readonly string[] => model.view({ view: 'servers' }).rows.map(({ id }) => id);
  await modelUntil(model, worlds, () => {
    for (const world of worlds) void world.ask('a.example');
    return rows().length === 2;
  });
  assert.deepEqual(rows().toSorted(), ['10.244.0.5', '10.244.1.7']);
  assert.deepEqual(
    model.inputs.map(({ name }) => name),
    ['pod kube-system/coredns-a', 'pod kube-system/coredns-b'],
  );
});

test('a pod that goes away is dropped, and its replacement is picked up', async (t) => {
  const api = await DnsPodsApi.start(t, 'test');
  const worlds = await twoPods(t, api);
  const [model] = await follow(t, api);
  const [third] = (await freePorts(1)) as [number];
  const next = await serve(t, third);
  api.pods = [api.pods[0]!, { name: 'coredns-c', podIP: '10.244.1.8', port: third }];
  await modelUntil(model, [...worlds, next], () => {
    void next.ask('a.example');
    return (model.inputs[1]?.row().queries ?? 0) > 0 && model.inputs[1]!.name.endsWith('coredns-c');
  });
  assert.equal(model.inputs.length, 2);
  const texts = model.view({ view: 'now' }).changes.rows.map(({ text }) => text);
  assert.ok(texts.includes('pod kube-system/coredns-b is gone'), texts.join());
});

test('loss of the API server is shown for each pod until it is back', async (t) => {
  const api = await DnsPodsApi.start(t, 'test');
  const worlds = await twoPods(t, api);
  const [model] = await follow(t, api);
  const states = (): string => model.inputs.map((input) => input.row().state).join();
  await modelUntil(model, worlds, () => model.inputs.every((input) => input.row().why === ''));
  const { port } = api;
  await api.close();
  await modelUntil(model, worlds, () => states() === 'away,away');
  await api.listen(port);
  await modelUntil(model, worlds, () => states() === 'reading,reading');
});

for (const [title, change, token, why] of [
  ['a wrong token', {}, 'another-token-of-this-length', /token is wrong/],
  [
    'a missing right',
    { isForbidden: true },
    TOKEN,
    /kubectl auth can-i get pods\/proxy -n kube-system/,
  ],
  [
    'a pod without the directive',
    { closed: true },
    TOKEN,
    /no console directive answers on port 9155/,
  ],
] as const)
  test(`${title} is named`, async (t) => {
    const api = await DnsPodsApi.start(t, 'test');
    const worlds = await twoPods(t, api);
    if ('closed' in change) {
      const [closed] = (await freePorts(1)) as [number];
      api.pods = api.pods.map((pod) => ({ ...pod, port: closed }));
    }
    api.isForbidden = 'isForbidden' in change;
    const [model] = await follow(t, api, token);
    await modelUntil(model, worlds, () =>
      model.inputs.every((input) => ![NO_MESSAGE, ''].includes(input.row().why)),
    );
    assert.match(model.inputs[0]!.row().why, why);
  });

/** Five agents on four nodes, which do not answer. */
async function fiveAgents(t: TestContext): Promise<DnsPodsApi> {
  const api = await DnsPodsApi.start(t, 'test');
  const [port] = (await freePorts(1)) as [number];
  api.pods = [
    { name: 'watch-a', podIP: '10.0.0.1', port, node: 'node1' },
    { name: 'watch-b', podIP: '10.0.0.2', port, node: 'node2' },
    { name: 'watch-c', podIP: '10.0.0.3', port, node: 'node3' },
    { name: 'watch-d', podIP: '10.0.0.4', port, node: 'node4' },
    { name: 'watch-e', podIP: '10.0.0.4', port, node: 'node4' },
  ];
  api.nodes = { 'zone=a': ['node2', 'node4'], 'zone=b': ['node9'] };
  return api;
}

for (const [title, chosen, expected] of [
  ['named nodes', { nodes: ['node1', 'node3'] }, ['watch-a on node1', 'watch-c on node3']],
  [
    'nodes with labels',
    { nodeSelector: 'zone=a' },
    ['watch-b on node2', 'watch-d on node4', 'watch-e on node4'],
  ],
  [
    'named nodes and nodes with labels',
    { nodes: ['node3'], nodeSelector: 'zone=b' },
    ['watch-c on node3'],
  ],
] as const)
  test(`only the pods on ${title} are followed`, async (t) => {
    const [model] = await follow(t, await fiveAgents(t), TOKEN, chosen);
    const names = model.inputs.map(({ name }) => name.replace('pod kube-system/', ''));
    assert.deepEqual(names, expected);
    assert.deepEqual(model.view({ view: 'now' }).remarks.filter(isAboutLimit), []);
  });

const isAboutLimit = (remark: string): boolean => remark.includes('--replica-max');

test('pods beyond the limit are counted, and the view says how to choose', async (t) => {
  const [model, streams] = await follow(t, await fiveAgents(t), TOKEN, { podsMax: 2 });
  assert.equal(streams.name, '2 of 5 DNS pods of context test');
  assert.deepEqual(model.view({ view: 'now' }).remarks.filter(isAboutLimit), [
    '2 of 5 pods are followed: --replica-node and --replica-node-selector choose which, --replica-max raises the limit',
  ]);
});

for (const [title, chosen, message, advice] of [
  [
    'a misspelt node',
    { nodes: ['node-1'] },
    /none of the 5 pods in kube-system runs on node-1$/,
    /did you mean node1\?/,
  ],
  [
    'labels of nodes without a pod',
    { nodeSelector: 'zone=b' },
    /none of the 5 pods in kube-system runs on a node with zone=b$/,
    /get pods -o wide/,
  ],
  [
    'labels that no node has',
    { nodeSelector: 'zone=c' },
    /runs on a node with zone=c, which selects none$/,
    /get pods -o wide/,
  ],
] as const)
  test(`${title}: the problem names it`, async (t) => {
    await assert.rejects(follow(t, await fiveAgents(t), TOKEN, chosen), (error: unknown) => {
      assert.ok(error instanceof Problem);
      assert.match(error.message, message);
      assert.match(`${error.hint} ${error.remedy}`, advice);
      return true;
    });
  });

test('without permission to list nodes, the problem names the option that does without it', async (t) => {
  const api = await fiveAgents(t);
  api.isForbidden = true;
  await assert.rejects(follow(t, api, TOKEN, { nodeSelector: 'zone=a' }), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.match(error.remedy ?? '', /kubectl auth can-i list nodes.*--replica-node/);
    return true;
  });
});

test('a cluster without DNS pods is a problem with a fix', async (t) => {
  const api = await DnsPodsApi.start(t, 'test');
  await assert.rejects(follow(t, api), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.match(error.message, /no pod with .* runs in kube-system on context test/);
    return true;
  });
});
