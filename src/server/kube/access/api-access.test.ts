import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, ServerResponse, IncomingMessage, type Server } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { beforeEach, afterEach, describe, test } from 'node:test';
import { decideAgain, type AccessDecision, type AccessRefusal } from '../../base/http-access.ts';
import { asObject, child, text } from '../../base/json-object.ts';
import { makeLog } from '../../base/log.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { endpointConnection } from '../api/connection.ts';
import { ACCESS_AUDIENCE, ApiAccess } from './api-access.ts';

/**
 * An API server that knows two users: `ada`, who may read, and `bob`, who may not. Its other answers are set by the
 * tests.
 */
class Reviews {
  identify: (token: string) => object = (token) =>
    ['ada', 'bob'].includes(token)
      ? {
          authenticated: true,
          audiences: [ACCESS_AUDIENCE],
          user: { username: token, uid: '7', groups: ['g'], extra: { a: ['b'] } },
        }
      : { authenticated: false, error: 'service account token has expired' };
  permit: (user: string) => object = (user) => ({ allowed: user === 'ada' });
  isAway = false;
  isSilent = false;
  isForbidden = false;
  readonly asked: string[] = [];
  last: unknown = null;
  readonly #server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const kind = request.url!.split('/').at(-1)!;
      this.asked.push(kind);
      if (this.isSilent) return;
      if (this.isAway) return void request.socket.destroy();
      if (this.isForbidden) return void response.writeHead(403).end('{"reason":"Forbidden"}');
      const spec = child(asObject(JSON.parse(body)), 'spec');
      this.last = spec;
      const status =
        kind === 'tokenreviews'
          ? this.identify(text(spec, 'token'))
          : this.permit(text(spec, 'user'));
      response.writeHead(201, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ kind, status }));
    });
  });

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

describe('a decision of the API server', () => {
  let api: Reviews;
  let clock: VirtualClock;
  let access: ApiAccess;
  let lines: string[];
  beforeEach(async () => {
    api = new Reviews();
    clock = new VirtualClock();
    lines = [];
    access = new ApiAccess({
      connection: endpointConnection(await api.listen()),
      version: '1.2.3',
      clock,
      log: makeLog((line) => lines.push(line)),
    });
  });
  afterEach(() => {
    access.close();
    api.close();
  });

  const decide = (token: string | null): AccessDecision | Promise<AccessDecision> =>
    access.decide({ token, verb: 'get', path: '/v1/exchanges' });
  const statusOf = async (token: string | null): Promise<number | null> =>
    (await decide(token))?.status ?? null;

  test('accepts a user with the permission, and passes on everything that describes the user', async () => {
    assert.equal(await statusOf('ada'), null);
    assert.deepEqual(api.last, {
      user: 'ada',
      uid: '7',
      groups: ['g'],
      extra: { a: ['b'] },
      nonResourceAttributes: { path: '/v1/exchanges', verb: 'get' },
    });
  });

  test('refuses a user without the permission, and names the command that shows it', async () => {
    const refusal = (await decide('bob')) as AccessRefusal;
    assert.equal(refusal.status, 403);
    assert.match(refusal.text, /bob has no permission .* kubectl auth can-i get \/v1\/exchanges/);
  });

  test('refuses an expired token with the reason', async () => {
    const refusal = (await decide('old')) as AccessRefusal;
    assert.equal(refusal.status, 401);
    assert.match(refusal.text, /service account token has expired/);
  });

  test('refuses a request without a token, and does not ask', async () => {
    assert.deepEqual([await statusOf(null), await statusOf('')], [401, 401]);
    assert.deepEqual(api.asked, []);
  });

  for (const [title, identified] of [
    ['of an authenticator that ignores audiences', { audiences: undefined }],
    ['for another audience', { audiences: ['https://kubernetes.default.svc'] }],
    ['without a user name', { user: {} }],
    ['that is authenticated only in words', { authenticated: 'true' }],
  ] as const)
    test(`refuses a token ${title}`, async () => {
      const known = api.identify;
      api.identify = (token) => ({ ...known(token), ...identified });
      assert.equal(await statusOf('ada'), 401);
    });

  for (const permitted of [{}, { allowed: 'true' }, { allowed: true, denied: true }])
    test(`refuses a review of ${JSON.stringify(permitted)}`, async () => {
      api.permit = () => permitted;
      assert.equal(await statusOf('ada'), 403);
    });

  test('is reused for 10 s, whether it accepts or refuses', async () => {
    for (const token of ['ada', 'bob', 'old']) {
      api.asked.length = 0;
      const first = await statusOf(token);
      const { length } = api.asked;
      await clock.advance(9999);
      assert.equal(await statusOf(token), first);
      assert.equal(api.asked.length, length, token);
      await clock.advance(1);
      assert.equal(await statusOf(token), first);
      assert.equal(api.asked.length, 2 * length, token);
    }
  });

  test('belongs to one verb and path', async () => {
    assert.equal(await statusOf('ada'), null);
    api.permit = () => ({ allowed: false });
    const other = await access.decide({ token: 'ada', verb: 'post', path: '/v1/exchanges' });
    assert.equal(other?.status, 403);
  });

  test('is requested once for requests that arrive together', async () => {
    await Promise.all(Array.from({ length: 100 }, () => statusOf('ada')));
    assert.equal(api.asked.length, 2);
  });

  test('refuses while the API server is away, says why in the log, and is not reused', async () => {
    api.isAway = true;
    for (let i = 0; i < 5; i++) assert.equal(await statusOf('ada'), 503);
    assert.equal(lines.length, 1);
    assert.match(lines[0]!, /WARNING.*review of a token.*requests are refused until then/);
    api.isAway = false;
    assert.equal(await statusOf('ada'), null);
    assert.match(lines[1]!, /works again/);
  });

  test('refuses after 10 s if the API server does not answer', async () => {
    api.isSilent = true;
    const decision = decide('ada') as Promise<AccessDecision>;
    while (api.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(10_000);
    assert.equal((await decision)?.status, 503);
  });

  test('refuses if the API server may not be asked, and names the permission', async () => {
    api.isForbidden = true;
    assert.equal(await statusOf('ada'), 503);
    assert.match(lines[0]!, /ClusterRole must allow create on tokenreviews/);
  });

  test('costs at most 32 pending reviews and 20 requests per second, however many tokens are forged', async () => {
    const forged = Array.from({ length: 1000 }, (_, i) => statusOf(`forged-${i}`));
    const busy = await Promise.all(forged.slice(32));
    assert.ok(busy.every((status) => status === 503));
    assert.ok((await Promise.all(forged.slice(0, 32))).every((status) => status === 401));
    // Eight of the burst are left, and after that each has to wait for its turn.
    for (let i = 0; i < 8; i++) assert.equal(await statusOf(`more-${i}`), 401);
    const waiting = statusOf('one too many');
    await clock.advance(49);
    assert.equal(api.asked.length, 40);
    await clock.advance(1);
    assert.equal(await waiting, 401);
  });

  test('for a permitted reader is not evicted by forged tokens', async () => {
    assert.equal(await statusOf('ada'), null);
    api.isAway = true;
    for (let i = 0; i < 40; i++) void statusOf(`forged-${i}`);
    assert.equal(await statusOf('ada'), null);
  });

  describe('about an endless reply', () => {
    let ended: AccessRefusal[];
    let response: ServerResponse;
    beforeEach(() => {
      ended = [];
      response = new ServerResponse(new IncomingMessage(new Socket()));
      const request = { token: 'ada', verb: 'get', path: '/' };
      decideAgain(access, request, response, clock, (refusal) => ended.push(refusal));
    });

    const minutes = async (count: number): Promise<void> => {
      for (let minute = 0; minute < count; minute++) {
        const { length } = api.asked;
        await clock.advance(60_000);
        while (api.asked.length === length) await new Promise((resolve) => setImmediate(resolve));
        for (let turn = 0; turn < 20; turn++)
          await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };

    test('is repeated, and a withdrawn permission ends it within a minute', async () => {
      await minutes(2);
      assert.deepEqual(ended, []);
      api.permit = () => ({ allowed: false });
      await minutes(1);
      assert.deepEqual(
        ended.map(({ status }) => status),
        [403],
      );
    });

    test('lets it continue for 5 min without the API server, and not longer', async () => {
      api.isAway = true;
      await minutes(4);
      assert.deepEqual(ended, []);
      await minutes(1);
      assert.deepEqual(
        ended.map(({ status }) => status),
        [503],
      );
    });

    test('ends with the reply', async () => {
      response.emit('close');
      await clock.advance(600_000);
      assert.deepEqual(api.asked, []);
    });
  });
});
