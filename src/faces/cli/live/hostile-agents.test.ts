import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  hostileAgents,
  hostileBehaviours,
  type HostileBehaviour,
} from '../../../../test/kit/hostile-agent.ts';
import { DnsPodsApi, kubeconfigOf } from '../../../../test/kit/dns-pods-api.ts';
import { every, systemClock } from '../../../server/base/clock.ts';
import type { LiveInput } from '../../../tools/watch/live-input.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { viewNames, type ServerRow } from '../../../tools/watch/view.ts';
import type { Io } from '../command.ts';
import { adminServers } from '../cache/admin-servers.ts';
import { directStream } from './direct-stream.ts';
import type { ReplicaChoice } from './replica-choice.ts';
import { ReplicaStreams } from './replica-streams.ts';
import { peerOf, ServerStream } from './server-stream.ts';
import { turnsOfThread } from './stream-turns.ts';

/** After this time, a condition counts as never met, in milliseconds. */
const PATIENCE_MS = 120_000;

/** Reads all of these agents into one model, as `top --server` does. */
async function read(
  t: TestContext,
  names: readonly HostileBehaviour[],
): Promise<{
  readonly model: LiveModel;
  readonly input: (name: HostileBehaviour) => LiveInput;
  readonly until: (holds: () => boolean) => Promise<void>;
}> {
  const good = await hostileAgents(['good']);
  t.after(() => good.child.stop());
  const hostile = await hostileAgents(names);
  t.after(() => hostile.child.stop());
  const model = new LiveModel();
  model.advance(Date.now());
  const turns = turnsOfThread(systemClock);
  const inputs = new Map<HostileBehaviour, LiveInput>();
  const sources = [...good.ports, ...hostile.ports].map((port, at) => {
    const name = at === 0 ? 'good' : names[at - 1]!;
    const server = { host: '127.0.0.1', port };
    const input = model.open(name, { server: peerOf(server) });
    inputs.set(name, input);
    const open = directStream(server, () => 'a-token', systemClock);
    const turn = turns.open();
    const parts = { server, open, input, clock: systemClock, model, turn };
    return { stream: new ServerStream(parts), input };
  });
  const timer = every(systemClock, 250, () => {
    for (const { stream, input } of sources) input.lostByKernel(stream.dropped());
    model.advance(Date.now());
  });
  t.after(() => {
    timer.cancel();
    for (const { stream } of sources) stream.stop();
  });
  return {
    model,
    input: (name) => inputs.get(name)!,
    async until(holds) {
      for (const end = Date.now() + PATIENCE_MS; !holds();) {
        assert.ok(Date.now() < end, JSON.stringify(model.inputs.map((each) => each.row())));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  };
}

/** Queries of the good agent's clients in the view. */
const goodQueries = (model: LiveModel): number =>
  [0, 1, 2, 3, 4].reduce((sum, host) => {
    const [row] = model.view({ view: 'clients', id: `10.0.0.${host}` }).rows;
    return sum + (row?.queries ?? 0);
  }, 0);

/** The server that only the good agent's clients query. */
const goodServer = (model: LiveModel): ServerRow | undefined =>
  model.view({ view: 'servers', id: '10.96.0.11' }).rows[0];

for (const name of [
  'swinging clock',
  'years',
  'no time',
  'wrong types',
  'markup',
  'losses',
] as const)
  test(`beside an agent with "${name}", the view of a good agent stays right`, async (t) => {
    const { model, input, until } = await read(t, [name]);
    const good = input('good');
    await until(() => good.row().queries >= 150);
    const { queries } = good.row();
    assert.ok(goodQueries(model) >= queries, `${goodQueries(model)} of ${queries}`);
    const server = goodServer(model);
    assert.equal(server?.lost, 0);
    assert.equal(good.row().aheadMs, 0);
    for (const view of viewNames) {
      const text = JSON.stringify(model.view({ view }));
      assert.ok(Array.from(text).every((letter) => letter >= ' ' && letter !== '\u007f'));
    }
  });

test('a good agent is read beside all kinds of hostile agents at once', async (t) => {
  const { model, input, until } = await read(t, hostileBehaviours);
  const good = input('good');
  await until(() => good.row().queries >= 250);
  assert.equal(good.row().state, 'reading');
  assert.equal(goodServer(model)?.lost, 0);
  for (const [name, why] of [
    ['zeros', /neither dnstap nor packets/],
    ['long frame', /neither dnstap nor packets/],
    ['other bytes', /neither dnstap nor packets/],
    ['redirect', /HTTP 302/],
    ['endless refusal', /maximum number of readers/],
    ['endless hints', /interim responses/],
  ] as const)
    // On a busy machine, a connection may first end for another reason.
    await until(() => why.test(input(name).row().why));
  const { memory } = model.view({ view: 'now' });
  assert.ok(memory.usedBytes <= memory.limitBytes, `${memory.usedBytes} of ${memory.limitBytes}`);
});

test('an agent that reports reloads without end displaces neither other changes nor reloads', async (t) => {
  const { model, input, until } = await read(t, ['reloads']);
  const good = input('good');
  model.reloaded(good, { fromMs: Date.now(), toMs: Date.now() }, null);
  await until(() => input('reloads').remarks.length > 0);
  await until(() => good.row().queries >= 50);
  const servers = model.reloads().rows.flatMap((row) => row.servers);
  assert.ok(servers.includes('good'));
  assert.equal(servers.filter((server) => server === 'reloads').length, 5);
});

/** An API server with a pod for each agent, and the choice of these pods. */
async function podsOf(
  t: TestContext,
  names: readonly HostileBehaviour[],
): Promise<{ readonly choice: ReplicaChoice; readonly io: Pick<Io, 'env' | 'signal'> }> {
  const { ports, child } = await hostileAgents(names);
  t.after(() => child.stop());
  const api = await DnsPodsApi.start(t, 'test');
  api.pods = names.map((name, at) => ({
    ...{ name: name.replaceAll(' ', '-'), podIP: `10.244.0.${at}`, port: ports[at]! },
  }));
  const access = { kubeconfig: kubeconfigOf(t, [api]), context: null, as: null, asGroup: [] };
  const pods = { namespace: 'kube-system', selector: null, port: 9155, access };
  const choice = { ...pods, nodes: [], nodeSelector: null, podsMax: 64 };
  return { choice, io: { env: {}, signal: new AbortController().signal } };
}

test('a good replica is read beside hostile ones through the API server', async (t) => {
  const names = ['good', 'flood', 'packed flood', 'bomb', 'slow bytes', 'endless refusal'] as const;
  const { choice, io } = await podsOf(t, names);
  const model = new LiveModel();
  model.advance(Date.now());
  const streams = await ReplicaStreams.start({
    ...{ choice, io, model, token: () => 'a-token', ports: [53], clock: systemClock },
    turns: turnsOfThread(systemClock),
  });
  t.after(() => streams.stop());
  const good = model.inputs[0]!;
  while (good.row().queries < 150) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    model.advance(Date.now());
  }
  assert.equal(goodServer(model)?.lost, 0);
  const texts = JSON.stringify(model.inputs.map((input) => input.row()));
  assert.ok(!texts.includes('\u001b'));
});

test('a pod that sends its reply byte by byte does not block cache commands', async (t) => {
  const { choice, io } = await podsOf(t, ['slow bytes']);
  const admin = {
    servers: [],
    tokenFile: null,
    tokenOption: '--token',
    tls: null,
    timeoutMs: 1500,
  };
  const { servers, close } = await adminServers({ ...admin, cluster: choice }, io);
  t.after(close);
  await assert.rejects(servers[0]!.run('cache-explain', {}), /does not answer in time/);
});
