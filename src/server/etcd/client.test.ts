import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttp2, constants, type ServerHttp2Stream } from 'node:http2';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { systemClock } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { EtcdClient, type EtcdClientParts } from './client.ts';
import { dial, parseEndpoint, printEndpoint } from './endpoint.ts';
import { EtcdFailure, type EtcdFailureKind } from './etcd-failure.ts';
import { MessageBuilder } from '../base/protobuf.ts';

/** Tests the client against servers that behave like etcd, and some that behave as etcd never should. */

type Answer = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void;

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Starts a gRPC server whose connections are closed at the end of the test. */
async function grpcServer(
  t: TestContext,
  answer: Answer,
  maxConcurrentStreams = 4_294_967_295,
): Promise<number> {
  const server = createHttp2({ settings: { maxConcurrentStreams } });
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined);
    answer(stream, headers);
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  return listen(t, server as unknown as Server);
}

const typeOfGrpc = { ':status': 200, 'content-type': 'application/grpc' };

function reply(stream: ServerHttp2Stream, message: Buffer, status = 0, text = ''): void {
  stream.respond(typeOfGrpc, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    stream.sendTrailers({
      'grpc-status': String(status),
      'grpc-message': encodeURIComponent(text),
    });
  });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([prefix, message]));
}

/** Sends a status without a message. */
function refuse(stream: ServerHttp2Stream, status: number, text: string): void {
  stream.respond(
    { ...typeOfGrpc, 'grpc-status': String(status), 'grpc-message': encodeURIComponent(text) },
    { endStream: true },
  );
}

const header = new MessageBuilder().number(1, 1).number(3, 9).build();
const range = new MessageBuilder()
  .message(1, header)
  .message(2, new MessageBuilder().bytes(1, '/a').bytes(5, 'v').build())
  .build();

function clientOf(
  t: TestContext,
  ports: readonly number[],
  more: Partial<EtcdClientParts> = {},
): EtcdClient {
  const client = new EtcdClient({
    endpoints: ports.map((port) => parseEndpoint(`http://127.0.0.1:${port}`)!),
    tls: null,
    credentials: null,
    clock: systemClock,
    ...more,
  });
  t.after(() => client.close());
  return client;
}

const ask = (client: EtcdClient) => client.range({ key: Buffer.from('/a'), end: null });

async function fails(
  promise: Promise<unknown>,
  kind: EtcdFailureKind,
  text: RegExp,
): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof EtcdFailure, String(error));
    assert.equal(error.kind, kind);
    assert.match(error.message, text);
    return true;
  });
}

describe('endpoints', () => {
  test('host and port, with or without a scheme, addresses of both families, sockets', () => {
    for (const [text, host, port, secure] of [
      ['http://localhost:2379', 'localhost', 2379, false],
      ['https://etcd-0.example:4001/', 'etcd-0.example', 4001, true],
      ['10.0.0.1:2379', '10.0.0.1', 2379, null],
      ['etcd', 'etcd', 2379, null],
      ['http://[fd00::1]:2379', 'fd00::1', 2379, false],
    ] as const)
      assert.deepEqual(parseEndpoint(text), { host, port, socket: null, secure });
    assert.equal(parseEndpoint('unix:///run/etcd.sock')!.socket, '/run/etcd.sock');
    assert.equal(printEndpoint(parseEndpoint('http://[fd00::1]')!), '[fd00::1]:2379');
    for (const text of [
      '',
      'ftp://a:1',
      'http://',
      'http://a:0',
      'http://a:70000',
      'a b',
      'http://a:1/path',
    ])
      assert.equal(parseEndpoint(text), null, text);
  });
});

describe('an etcd client', () => {
  test('invalid TLS files do not block the caller', async () => {
    const endpoint = parseEndpoint('https://127.0.0.1:1')!;
    const tls = { certificate: '', key: '', authority: '/dev/zero' };
    await assert.rejects(
      dial(endpoint, tls, new AbortController().signal),
      /127\.0\.0\.1:1: cannot read \/dev\/zero: is a device, not a file/,
    );
  });

  test('a missing endpoint, and one whose member cannot serve, are skipped', async (t) => {
    const sick = await grpcServer(t, (stream) => refuse(stream, 14, 'etcdserver: no leader'));
    const well = await grpcServer(t, (stream) => reply(stream, range));
    const { kvs } = await ask(clientOf(t, [1, sick, well]));
    assert.equal(kvs[0]!.value.toString(), 'v');
  });

  test('if none is available, the first one is reported', async (t) => {
    await fails(ask(clientOf(t, [1, 2])), 'unavailable', /127\.0\.0\.1:1: nothing listens there/);
  });

  test('the token is fetched once, sent with each call, and fetched again when it has expired', async (t) => {
    let logins = 0;
    let good = 'token1';
    const seen: unknown[] = [];
    const port = await grpcServer(t, (stream, headers) => {
      if (headers[':path'] === '/etcdserverpb.Auth/Authenticate') {
        good = `token${++logins}`;
        return reply(stream, new MessageBuilder().bytes(2, good).build());
      }
      seen.push(headers['token']);
      if (headers['token'] !== good) return refuse(stream, 16, 'etcdserver: invalid auth token');
      reply(stream, range);
    });
    const client = clientOf(t, [port], { credentials: { user: 'u', password: 'p' } });
    await ask(client);
    await ask(client);
    assert.equal(logins, 1);
    good = 'another';
    await ask(client);
    assert.deepEqual(seen, ['token1', 'token1', 'token1', 'token2']);
  });

  test('a cluster without authentication accepts any client', async (t) => {
    const port = await grpcServer(t, (stream, headers) => {
      if (headers[':path'] === '/etcdserverpb.Auth/Authenticate')
        return refuse(stream, 9, 'etcdserver: authentication is not enabled');
      assert.equal(headers['token'], undefined);
      reply(stream, range);
    });
    await ask(clientOf(t, [port], { credentials: { user: 'u', password: 'p' } }));
  });

  test('a message above the size limit fails only its own call', async (t) => {
    let large = true;
    const port = await grpcServer(t, (stream) => reply(stream, large ? Buffer.alloc(5000) : range));
    const client = clientOf(t, [port], { messageMax: 1000 });
    await fails(ask(client), 'large', /5000 bytes, but at most 1000/);
    large = false;
    await ask(client);
  });

  test('a large message in many frames arrives whole, and windows are renewed', async (t) => {
    const value = Buffer.alloc(3_000_000, 'x');
    const kv = new MessageBuilder().bytes(1, '/a').bytes(5, value).build();
    const big = new MessageBuilder().message(1, header).message(2, kv).build();
    const port = await grpcServer(t, (stream) => reply(stream, big));
    const client = clientOf(t, [port]);
    for (let i = 0; i < 3; i++) assert.equal((await ask(client)).kvs[0]!.value.length, 3_000_000);
  });

  test("a request larger than the server's window waits for it", async (t) => {
    let got = 0;
    const port = await grpcServer(t, (stream) => {
      stream.on('data', (chunk: Buffer) => (got += chunk.length));
      stream.on('end', () => reply(stream, new MessageBuilder().message(1, header).build()));
    });
    await clientOf(t, [port]).put(Buffer.from('/a'), Buffer.alloc(1_000_000, 'x'));
    assert.ok(got > 1_000_000);
  });

  test("a peer that does not use HTTP/2, gRPC or etcd's API is reported as such", async (t) => {
    const web = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    });
    await fails(ask(clientOf(t, [await listen(t, web)])), 'malformed', /not HTTP\/2/);
    const page = await grpcServer(t, (stream) => {
      stream.respond({ ':status': 404 });
      stream.end('not found');
    });
    await fails(ask(clientOf(t, [page])), 'malformed', /HTTP status 404/);
    const noise = await grpcServer(t, (stream) => reply(stream, Buffer.from([0xff, 0xff])));
    await fails(ask(clientOf(t, [noise])), 'malformed', /ends in the middle of a number/);
    const empty = await grpcServer(t, (stream) => refuse(stream, 0, ''));
    await fails(ask(clientOf(t, [empty])), 'malformed', /empty/);
  });

  test('a call that the server aborts, and a closed connection, are retried at the next endpoint', async (t) => {
    const resets = await grpcServer(t, (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM));
    const leaves = await grpcServer(t, (stream) => stream.session!.destroy());
    const well = await grpcServer(t, (stream) => reply(stream, range));
    for (const bad of [resets, leaves]) await ask(clientOf(t, [bad, well]));
  });

  test('a silent server is abandoned after 5 s', async (t) => {
    const port = await grpcServer(t, () => undefined);
    const clock = new VirtualClock();
    const failed = fails(ask(clientOf(t, [port], { clock })), 'silent', /no reply in 5 s/);
    // The connection is established in real time.
    for (let i = 0; i < 40; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      await clock.advance(200);
    }
    await failed;
  });

  test('a watch on a half-open connection ends within 10 s', async (t) => {
    const silent = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.resume();
    });
    const port = await listen(t, silent);
    const clock = new VirtualClock();
    const client = clientOf(t, [port], { clock });
    const { promise, resolve } = Promise.withResolvers<EtcdFailure | null>();
    await client.watch({ onMessage: () => undefined, onEnd: resolve });
    await clock.advance(10_000);
    assert.equal((await promise)?.kind, 'silent');
  });

  test('a list whose bytes arrive in pieces has all its keys, wherever the network splits it', async (t) => {
    const port = await grpcServer(t, (stream) => reply(stream, range));
    for (const size of [1, 5, 40, 1000]) {
      const proxy = createServer((near) => {
        const far = connect(port, '127.0.0.1');
        near.setNoDelay(true);
        near.on('error', () => far.destroy()).on('close', () => far.destroy());
        far.on('error', () => near.destroy()).on('close', () => near.destroy());
        near.pipe(far);
        cutUp(far, near, size).catch(() => near.destroy());
      });
      const { kvs } = await ask(clientOf(t, [await listen(t, proxy)]));
      assert.deepEqual(
        kvs.map(({ key, value }) => `${key.toString()}=${value.toString()}`),
        ['/a=v'],
        `in pieces of ${size} bytes`,
      );
    }
  });

  test("calls beyond the server's concurrency limit wait for their turn", async (t) => {
    let most = 0;
    let open = 0;
    const answer: Answer = (stream) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        if (!stream.destroyed) reply(stream, range);
      }, 2);
    };
    const port = await grpcServer(t, answer, 10);
    const client = clientOf(t, [port]);
    await ask(client);
    const found = await Promise.all(Array.from({ length: 300 }, () => ask(client)));
    assert.ok(found.every(({ kvs }) => kvs.length === 1));
    assert.equal(most, 10);
  });

  test('calls that fail with their connection move to the next endpoint together, over one connection', async (t) => {
    let connections = 0;
    let asked = 0;
    const port = await grpcServer(t, (stream) => {
      if (++asked === 50) stream.session?.destroy();
      else if (asked > 50) reply(stream, range);
    });
    const counting = { dial: ((...words) => (connections++, dial(...words))) as typeof dial };
    const client = clientOf(t, [port, port], counting);
    const found = await Promise.all(Array.from({ length: 50 }, () => ask(client)));
    assert.ok(found.every(({ kvs }) => kvs.length === 1));
    assert.equal(connections, 2);
  });
});

/** Forwards the input in pieces of `size` bytes. */
async function cutUp(from: Socket, to: Socket, size: number): Promise<void> {
  for await (const chunk of from) {
    for (let at = 0; at < (chunk as Buffer).length; at += size) {
      to.write((chunk as Buffer).subarray(at, at + size));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

test('if several endpoints are unreachable, each is listed', async (t) => {
  const dead = async (): Promise<number> => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    return port;
  };
  const ports = [await dead(), await dead()];
  const client = clientOf(t, ports);
  await assert.rejects(
    client.range({ key: Buffer.from('/a'), end: null, limit: 1 }),
    ({ message }: Error) => ports.every((port) => message.includes(`127.0.0.1:${port}: `)),
  );
});
