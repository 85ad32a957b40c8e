import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { dnsMessage } from '../../../../test/kit/packets.ts';
import { modelUntil } from '../../../../test/kit/watched.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { systemClock, type Clock } from '../../../server/base/clock.ts';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { DnstapWriter, dnstapPrefix, TAP } from '../../../server/wire/dnstap.ts';
import { CONTROL, writeControl } from '../../../server/wire/frame-stream.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { directStream } from './direct-stream.ts';
import { NO_MESSAGE, peerOf, ServerStream, type StreamEvents } from './server-stream.ts';
import { turnsOfThread } from './stream-turns.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-stream-'));
after(() => rmSync(directory, { recursive: true }));
const TOKEN = 'a-token-that-is-long-enough';
writeFileSync(join(directory, 'token'), TOKEN);

function corefileAt(port: number): string {
  const console = `console 127.0.0.1:${port} {\n token_file token\n }`;
  return `. {\n ${console}\n hosts {\n 192.0.2.1 a.example\n }\n}`;
}

async function serve(port: number): Promise<World> {
  return makeWorld(corefileAt(port), { directory });
}

function follow(t: TestContext, ports: readonly number[], token = TOKEN): LiveModel {
  const model = new LiveModel();
  model.advance(Date.now());
  for (const port of ports) {
    // Limits all waits to the shortest one, so that tests need not wait 30 s.
    const clock: Clock = {
      now: () => systemClock.now(),
      wall: () => systemClock.wall(),
      after: (ms, run) => systemClock.after(ms > 10_000 ? ms : Math.min(ms, 50), run),
    };
    const server = { host: '127.0.0.1', port };
    const input = model.open(`server 127.0.0.1:${port}`, { server: peerOf(server) });
    const open = directStream(server, () => token, systemClock);
    const stream = new ServerStream({
      server,
      open,
      input,
      clock,
      model,
      turn: turnsOfThread(clock).open(),
    });
    t.after(() => stream.stop());
  }
  return model;
}

/** Why the server is unavailable; empty until that is known. */
const whyOf = (model: LiveModel): string => {
  const { why } = model.inputs[0]!.row();
  return why === NO_MESSAGE ? '' : why;
};

async function other(t: TestContext, answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

test('two servers form one view with a row each, and the loss of one is shown', async (t) => {
  const [one, two] = (await freePorts(2)) as [number, number];
  const worlds = [await serve(one), await serve(two)];
  t.after(() => worlds[0]!.close());
  const model = follow(t, [one, two]);
  const rows = (): readonly string[] => model.view({ view: 'servers' }).rows.map(({ id }) => id);
  await modelUntil(model, worlds, () => {
    for (const world of worlds) void world.ask('a.example');
    return rows().length === 2;
  });
  assert.deepEqual(rows().toSorted(), [`127.0.0.1:${one}`, `127.0.0.1:${two}`].toSorted());
  assert.deepEqual(model.view({ view: 'now' }).remarks, []);
  const [first, second] = worlds as [World, World];
  await second.close();
  await modelUntil(model, [first], () => model.inputs[1]!.row().state === 'away');
  assert.match(
    model.view({ view: 'now' }).remarks[0]!,
    /^1 of 2 inputs is away since \d\d:\d\d:\d\d UTC/,
  );
  const before = model.inputs[0]!.row().queries;
  await modelUntil(model, [first], () => {
    void first.ask('a.example');
    return model.inputs[0]!.row().queries > before;
  });
  const again = await serve(two);
  t.after(() => again.close());
  await modelUntil(model, [first, again], () => model.inputs[1]!.row().state === 'reading');
  assert.deepEqual(model.view({ view: 'now' }).remarks, []);
});

test('a new configuration is shown as a change, and the stream continues', async (t) => {
  const [port] = (await freePorts(1)) as [number];
  const world = await serve(port);
  t.after(() => world.close());
  const model = follow(t, [port]);
  const queries = (): number => model.inputs[0]!.row().queries;
  await modelUntil(model, [world], () => {
    void world.ask('a.example');
    return queries() > 0;
  });
  const changes = (): readonly string[] => model.changes.rows.map(({ kind }) => kind);
  assert.deepEqual(changes(), []);
  world.setCorefile(corefileAt(port).replace('192.0.2.1', '192.0.2.2'));
  assert.equal(await world.clock.run(world.server.reload()), true);
  await modelUntil(model, [world], () => changes().includes('reload'));
  const before = queries();
  await modelUntil(model, [world], () => {
    void world.ask('a.example');
    return queries() > before;
  });
  assert.deepEqual(changes(), ['reload']);
});

test('a wrong token is reported, and nothing is read', async (t) => {
  const [port] = (await freePorts(1)) as [number];
  const world = await serve(port);
  t.after(() => world.close());
  const model = follow(t, [port], 'another-token-of-this-length');
  await modelUntil(model, [world], () => whyOf(model) !== '');
  assert.match(whyOf(model), /token is wrong/);
  assert.equal(model.inputs[0]!.row().state, 'away');
});

for (const [title, headers, status, why] of [
  [
    'a server of another version',
    { 'ndots-stream': '2' },
    200,
    /another version of ndots \(stream 2/,
  ],
  [
    'a server of another kind',
    {},
    404,
    /HTTP 404, but is neither the console directive nor ndots watch serve/,
  ],
] as const)
  test(`${title} is named`, async (t) => {
    const port = await other(t, (_request, response) => {
      response.writeHead(status, headers).end('x');
    });
    const model = follow(t, [port]);
    await modelUntil(model, [], () => whyOf(model) !== '');
    assert.match(whyOf(model), why);
  });

test('a stream of other bytes is reported and retried', async (t) => {
  let times = 0;
  const port = await other(t, (_request, response) => {
    times++;
    response.writeHead(200, { 'ndots-stream': '1' }).end(Buffer.alloc(4096, 0xff));
  });
  const model = follow(t, [port]);
  await modelUntil(model, [], () => times > 3);
  assert.match(whyOf(model), /sends neither dnstap nor packets/);
});

/** A stream in virtual time whose bytes the test sends. */
function connected(t: TestContext): {
  readonly clock: VirtualClock;
  readonly model: LiveModel;
  readonly send: (bytes: Uint8Array) => void;
  readonly opened: () => number;
} {
  const clock = new VirtualClock();
  const model = new LiveModel();
  model.advance(clock.wall());
  const server = { host: '127.0.0.1', port: 9155 };
  let times = 0;
  let events: StreamEvents | null = null;
  const open = (given: StreamEvents): (() => void) => {
    times++;
    events = given;
    return () => undefined;
  };
  const input = model.open('server', { server: peerOf(server) });
  const turn = turnsOfThread(clock).open();
  const stream = new ServerStream({ server, open, input, clock, model, turn });
  t.after(() => stream.stop());
  return { clock, model, send: (bytes) => void events!.bytes(bytes), opened: () => times };
}

test('a server is unavailable until its first message', async (t) => {
  const { clock, model, send } = connected(t);
  const stateOf = (): string => model.inputs[0]!.row().state;
  assert.deepEqual([stateOf(), model.inputs[0]!.row().why], ['away', NO_MESSAGE]);
  await clock.advance(1000);
  send(writeControl(CONTROL.START, ['protobuf:dnstap.Dnstap']));
  assert.equal(stateOf(), 'reading');
});

test('a server that sends single bytes, but no complete message, is unavailable', async (t) => {
  const { clock, model, send } = connected(t);
  const start = writeControl(CONTROL.START, ['protobuf:dnstap.Dnstap']);
  send(start);
  assert.equal(model.inputs[0]!.row().state, 'reading');
  // The first of these bytes is the length of a frame.
  for (let second = 0; second < 16; second++) {
    send(Uint8Array.of(second === 2 ? 1 : 0));
    await clock.advance(1000);
  }
  assert.equal(whyOf(model), 'it sends no complete message');
});

test('other bytes do not shorten the delay before reconnecting', async (t) => {
  const { clock, send, opened } = connected(t);
  for (let second = 0; second < 60; second++) {
    send(Buffer.alloc(64, 0xff));
    await clock.advance(1000);
  }
  // After 0.5, 1, 2, 4, 8, 16 and 30 s.
  assert.ok(opened() <= 8, `${opened()} connections`);
});

test('a message cannot claim that another server replied to a client', async (t) => {
  const { model, send, clock } = connected(t);
  send(writeControl(CONTROL.START, ['protobuf:dnstap.Dnstap']));
  const writer = new DnstapWriter(dnstapPrefix('', ''), 64);
  const peer = { family: 4, peer: Uint8Array.of(10, 0, 0, 1), peerAt: 0, peerPort: 4000 } as const;
  const other = { ...peer, peer: Uint8Array.of(10, 96, 0, 10), peerPort: 53 };
  const [query, reply] = [false, true].map((isReply) =>
    dnsMessage('a.example.', 'A', { id: 7, reply: isReply }),
  ) as [Uint8Array, Uint8Array];
  writer.begin(TAP.CLIENT_RESPONSE, '');
  writer.socket(4, 'udp', peer, other);
  writer.queryTime(clock.wall());
  writer.queryMessage(query, 0, query.length);
  writer.responseTime(clock.wall());
  writer.responseMessage(reply, 0, reply.length);
  writer.endFrame();
  send(writer.bytes.slice(writer.start, writer.at));
  model.advance(clock.wall() + 30_000);
  assert.deepEqual(
    model.view({ view: 'servers' }).rows.map(({ id }) => id),
    ['127.0.0.1:9155'],
  );
});
