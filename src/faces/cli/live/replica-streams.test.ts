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

const directory = mkdtempSync(join(tmpdir(), 'ndots-replicas-'));
after(() => rmSync(directory, { recursive: true }));
const TOKEN = 'a-token-that-is-long-enough';
writeFileSync(join(directory, 'token'), TOKEN);

async function serve(t: TestContext, port: number): Promise<World> {
  const console = `console 127.0.0.1:${port} {\n token_file token\n }`;
  const world = await makeWorld(`. {\n ${console}\n hosts {\n 192.0.2.1 a.example\n }\n}`, {
    directory,
  });
  t.after(() => world.close());
  return world;
}

/** Shortens all waits except the silence timeout. */
function shortClock(waits: number[] = []): Clock {
  return {
    now: () => systemClock.now(),
    wall: () => systemClock.wall(),
    after(ms, run) {
      waits.push(ms);
      return systemClock.after(ms > 10_000 ? ms : Math.min(ms, 50), run);
    },
  };
}

async function follow(
  t: TestContext,
  api: DnsPodsApi,
  token = TOKEN,
  chosen: Partial<ReplicaChoice> = {},
  clock = shortClock(),
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
    assert.deepEqual(model.unread, []);
  });

test('pods beyond the limit are counted, and the view says how to choose', async (t) => {
  const [model, streams] = await follow(t, await fiveAgents(t), TOKEN, { podsMax: 2 });
  assert.equal(streams.name, '2 of 5 DNS pods of context test');
  assert.equal(
    model.view({ view: 'now' }).remarks[0],
    '2 of 5 pods are followed: --replica-node and --replica-node-selector choose which, --replica-max raises the limit',
  );
});

/** The followed pods, without their namespace. */
const followed = (model: LiveModel): string =>
  model.inputs.map(({ name }) => name.replace('pod kube-system/', '')).join();

test('a named node without a pod is reported until it has one', async (t) => {
  const api = await fiveAgents(t);
  const [model] = await follow(t, api, TOKEN, { nodes: ['node1', 'node9', 'node1'] });
  assert.equal(model.view({ view: 'now' }).remarks[0], 'no pod runs on node9');
  api.pods = [...api.pods, { ...api.pods[0]!, name: 'watch-f', node: 'node9' }];
  await modelUntil(model, [], () => followed(model) === 'watch-a on node1,watch-f on node9');
  assert.deepEqual(model.unread, []);
});

test('labels that no node has are reported beside a named node', async (t) => {
  const chosen = { nodes: ['node1'], nodeSelector: 'zone=c' };
  const [model] = await follow(t, await fiveAgents(t), TOKEN, chosen);
  assert.equal(followed(model), 'watch-a on node1');
  assert.deepEqual(model.unread, ['no pod runs on a node with zone=c, which selects none']);
});

test('pods whose nodes lose the label are dropped, and followed again when it is back', async (t) => {
  const api = await fiveAgents(t);
  const { nodes } = api;
  const [model, streams] = await follow(t, api, TOKEN, { nodeSelector: 'zone=a' });
  api.nodes = { 'zone=a': ['node2'] };
  await modelUntil(model, [], () => followed(model) === 'watch-b on node2');
  const texts = model.view({ view: 'now' }).changes.rows.map(({ text }) => text);
  assert.ok(texts.includes('pod kube-system/watch-d on node4 is no longer chosen'), texts.join());
  api.nodes = {};
  await modelUntil(model, [], () => followed(model) === '');
  assert.equal(streams.name, '0 DNS pods of context test');
  assert.deepEqual(model.view({ view: 'now' }).remarks, [
    'none of the 5 pods in kube-system runs on a node with zone=a, which selects none',
  ]);
  api.nodes = nodes;
  await modelUntil(model, [], () => model.inputs.length === 3);
  assert.deepEqual(model.unread, []);
});

test('while the pods cannot be listed, the known ones stay and the view gives the reason', async (t) => {
  const api = await fiveAgents(t);
  const [model] = await follow(t, api, TOKEN, { nodeSelector: 'zone=a' });
  for (const resource of ['nodes', 'pods']) {
    api.failures = { [resource]: [500, 'InternalError', 'etcdserver: request timed out'] };
    await modelUntil(model, [], () => model.unread.length > 0);
    const [remark] = model.view({ view: 'now' }).remarks;
    assert.match(remark!, /^the pods cannot be listed, .*etcdserver: request timed out$/);
    assert.equal(model.inputs.length, 3);
    api.failures = {};
    await modelUntil(model, [], () => model.unread.length === 0);
  }
});

test('a pod recreated on another node is shown there, even with the same address', async (t) => {
  const api = await fiveAgents(t);
  const [model] = await follow(t, api, TOKEN, { nodes: ['node1', 'node2'] });
  api.pods = api.pods.map((pod) => (pod.name === 'watch-a' ? { ...pod, node: 'node2' } : pod));
  await modelUntil(model, [], () => followed(model) === 'watch-b on node2,watch-a on node2');
});

test('the interval between lists depends on the listed pods, not on the followed ones', async (t) => {
  const api = await fiveAgents(t);
  const [pod] = api.pods;
  api.pods = Array.from({ length: 2000 }, (_, at) => ({
    ...pod!,
    ...{ name: `watch-${at}`, node: `node${at}` },
  }));
  const waits: number[] = [];
  await follow(t, api, TOKEN, { nodes: ['node1'] }, shortClock(waits));
  assert.ok(waits.includes(60_000), waits.join());
});

test('at the highest limit, the view does not propose to raise it', async (t) => {
  const api = await fiveAgents(t);
  const [pod] = api.pods;
  api.pods = Array.from({ length: 1001 }, (_, at) => ({ ...pod!, name: `watch-${at}` }));
  const [model] = await follow(t, api, TOKEN, { podsMax: 1000 });
  assert.deepEqual(model.unread, [
    '1000 of 1001 pods are followed: --replica-node and --replica-node-selector choose which',
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
    'a misspelt node after one that is like no other',
    { nodes: ['x', 'node-1', 'x'] },
    /runs on x, node-1$/,
    /did you mean node1\?/,
  ],
  [
    'many nodes without a pod',
    { nodes: Array.from({ length: 300 }, (_, at) => `w${at}`) },
    /runs on w0, w1, w2 and 297 more$/,
    /get pods -o wide/,
  ],
  [
    'named nodes that the labels select as well',
    { nodes: ['node9'], nodeSelector: 'zone=b' },
    /runs on node9 or a node with zone=b$/,
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
    assert.match(
      error.hint ?? '',
      /^--replica-node-selector needs .*kubectl auth can-i list nodes/,
    );
    assert.match(error.remedy ?? '', /--replica-node NAME/);
    return true;
  });
});

test('labels that the API server cannot read are a problem with its reason', async (t) => {
  const api = await fiveAgents(t);
  api.failures = {
    nodes: [400, 'BadRequest', "unable to parse requirement: found '', expected: '='"],
  };
  await assert.rejects(follow(t, api, TOKEN, { nodeSelector: 'a b' }), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.match(error.message, /400 BadRequest to "list nodes": unable to parse requirement/);
    assert.match(error.remedy ?? '', /kubectl get nodes -l 'a b'/);
    return true;
  });
});

test('one pod on another node is counted in the singular', async (t) => {
  const api = await fiveAgents(t);
  api.pods = api.pods.slice(0, 1);
  await assert.rejects(follow(t, api, TOKEN, { nodes: ['node7'] }), {
    message: 'the only pod in kube-system does not run on node7',
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
