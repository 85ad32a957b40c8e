import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { plugins } from '../../../../test/kit/plugins.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';

const address = '127.0.0.1:0';

async function get(world: World, port = world.server.httpPort(address)): Promise<string> {
  const reply = await fetch(`http://127.0.0.1:${port}/ready`);
  return `${reply.status} ${await reply.text()}`;
}

/** A plugin whose readiness is controlled by `state`. */
function waiting(name: string, state: { ready: boolean }): Plugin {
  return definePlugin({
    syntax: directive({ name, summary: 'waits', repeat: 'last' }),
    control: (_options, context) => context.readiness(() => state.ready),
  });
}

describe('ready', () => {
  test('the names of plugins that are not ready are sorted, and then it is OK', async () => {
    const [zebra, ape] = [{ ready: false }, { ready: false }];
    const world = await makeWorld(`.:53 {\n ready ${address}\n zebra\n ape\n}`, {
      plugins: [...plugins, waiting('zebra', zebra), waiting('ape', ape)],
    });
    assert.equal(await get(world), '503 ape,zebra');
    assert.deepEqual(world.log, ['[INFO] plugin/ready: Plugins not ready: "ape,zebra"']);
    ape.ready = true;
    assert.equal(await get(world), '503 zebra');
    zebra.ready = true;
    assert.equal(await get(world), '200 OK');
    await world.close();
  });

  for (const [monitor, after] of [
    ['until-ready', '200 OK'],
    ['continuously', '503 ape'],
  ] as const) {
    test(`monitor ${monitor}: a plugin that is no longer ready returns ${after}`, async () => {
      const ape = { ready: true };
      const world = await makeWorld(
        `.:53 {\n ready ${address} {\n monitor ${monitor}\n }\n ape\n}`,
        {
          plugins: [...plugins, waiting('ape', ape)],
        },
      );
      assert.equal(await get(world), '200 OK');
      ape.ready = false;
      assert.equal(await get(world), after);
      await world.close();
    });
  }

  test('at shutdown it is not ready before lameduck is over', async () => {
    const world = await makeWorld(
      `.:53 {\n ready ${address}\n health 127.0.0.1:0 {\n lameduck 5s\n }\n}`,
    );
    assert.equal(await get(world), '200 OK');
    const ended = world.server.stop();
    await world.clock.advance(1000);
    assert.equal(await get(world), '503 Shutting down');
    await world.clock.run(ended);
  });

  test('erratic is ready while three or four queries have arrived', async () => {
    const world = await makeWorld(
      `.:53 {\n ready ${address} {\n monitor continuously\n }\n erratic\n}`,
    );
    const states: string[] = [];
    for (let i = 0; i < 5; i++) {
      states.push(await get(world));
      await world.tryAsk('example.org.');
    }
    states.push(await get(world));
    assert.deepEqual(
      states.map((state) => state.slice(0, 3)),
      ['503', '503', '503', '200', '200', '503'],
    );
    await world.close();
  });

  test('during the first listing, /health is OK and /ready names the waiting plugins', async () => {
    const [port] = await freePorts(1);
    const asked = async (path: string): Promise<string> => {
      const reply = await fetch(`http://127.0.0.1:${port}${path}`);
      return `${reply.status} ${reply.headers.get('content-length')} ${await reply.text()}`;
    };
    const told: string[] = [];
    const lister = definePlugin({
      syntax: directive({ name: 'lister', summary: 'lists at first', repeat: 'last' }),
      control: (_options, context) => {
        let ready = false;
        context.readiness(() => ready);
        context.onStart(async () => {
          told.push(await asked('/health'), await asked('/ready'));
          ready = true;
        });
      },
    });
    const world = await makeWorld(
      `.:53 {\n ready 127.0.0.1:${port}\n health 127.0.0.1:${port}\n lister\n}`,
      { plugins: [...plugins, lister] },
    );
    assert.deepEqual(told, ['200 2 OK', '503 6 lister']);
    assert.equal(await asked('/ready'), '200 2 OK');
    await world.close();
  });

  /** Sends a request like kubelet does, and returns the bytes that it received. */
  async function probe(port: number): Promise<string> {
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /ready HTTP/1.1\r\nHost: a\r\nUser-Agent: kube-probe/1.36\r\n\r\n');
    let text = '';
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.endsWith('\r\n\r\nOK')) break;
    }
    socket.destroy();
    return text;
  }

  test('a kubelet probe waits for the first readiness', async () => {
    const ape = { ready: false };
    const [port] = await freePorts(1);
    const world = await makeWorld(`.:53 {\n ready 127.0.0.1:${port}\n ape\n}`, {
      plugins: [...plugins, waiting('ape', ape)],
    });
    const asked = probe(port);
    assert.equal(await get(world, port), '503 ape');
    await world.clock.advance(700);
    ape.ready = true;
    await world.clock.advance(100);
    assert.match(await asked, /^HTTP\/1\.1 200 OK[^]*\r\n\r\nOK$/);
    ape.ready = false;
    await world.close();
  });

  test('a probe that would wait too long gets a 503 with a truncated body', async () => {
    const [port] = await freePorts(1);
    const world = await makeWorld(`.:53 {\n ready 127.0.0.1:${port}\n ape\n}`, {
      plugins: [...plugins, waiting('ape', { ready: false })],
    });
    let text = '';
    const asked = probe(port).then((all) => {
      text = all;
    });
    while (text === '') await world.clock.advance(100);
    await asked;
    assert.match(text, /^HTTP\/1\.1 503 [^]*content-length: 4\r\n[^]*\r\n\r\nape$/i);
    assert.deepEqual(world.log, ['[INFO] plugin/ready: Plugins not ready: "ape"']);
    await world.close();
  });

  test('no probe waits once the server has been ready, even after reloads', async () => {
    const ape = { ready: true };
    const [port] = await freePorts(1);
    const world = await makeWorld(
      `.:53 {\n ready 127.0.0.1:${port} {\n monitor continuously\n }\n ape\n}`,
      { plugins: [...plugins, waiting('ape', ape)] },
    );
    assert.match(await probe(port), / 200 /);
    ape.ready = false;
    assert.ok(await world.server.reload());
    const asked = fetch(`http://127.0.0.1:${port}/ready`, {
      headers: { 'user-agent': 'kube-probe/1.36' },
    });
    assert.equal((await asked).status, 503);
    await world.close();
  });

  test("errors use CoreDNS's wording", async () => {
    await assert.rejects(
      makeWorld('.:53 {\n ready {\n monitor maybe\n }\n}'),
      /monitor type 'maybe' not supported/,
    );
    await assert.rejects(
      makeWorld('.:53 {\n ready\n ready\n}'),
      /only be used once per Server Block/,
    );
  });
});
