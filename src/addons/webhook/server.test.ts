/** Tests how the webhook server handles clients that are not the API server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { testCertificate, testKey } from '../../../test/kit/certificate.ts';
import { WebhookServer } from './server.ts';

const reviewOf = (pod: object, apiVersion = 'admission.k8s.io/v1'): string =>
  JSON.stringify({
    apiVersion,
    kind: 'AdmissionReview',
    request: { uid: 'u', namespace: 'shop', object: pod },
  });
const pod = { kind: 'Pod', metadata: { name: 'a' }, spec: { dnsPolicy: 'ClusterFirst' } };

describe('the webhook', () => {
  const refused: string[] = [];
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const server = new WebhookServer({
    host: '127.0.0.1',
    port: 0,
    mode: 'enforce',
    sources: ({ namespace }) =>
      Promise.resolve({ namespace: {}, namespaceName: namespace, measured: new Map(), ndots: 2 }),
    metrics: { reviewed: () => undefined, refused: (why) => refused.push(why) },
    scrape: () => '',
    connectionsMax: 20,
  });
  let port = 0;
  const open: (Socket | TLSSocket)[] = [];

  before(async () => {
    port = await server.listen();
    server.use({ cert: testCertificate, key: testKey });
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    agent.destroy();
    await server.close();
  });

  const post = (
    body: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const asked = request(
        { host: '127.0.0.1', port, path: '/mutate', method: 'POST', agent, headers },
        (reply) => {
          let text = '';
          reply.on('data', (piece: Buffer) => (text += piece.toString()));
          reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
        },
      );
      asked.on('error', reject);
      asked.end(body);
    });
  const works = async (): Promise<void> => {
    const { status, text } = await post(reviewOf(pod));
    assert.equal(status, 200, text);
    assert.match(text, /"allowed":true/);
  };

  for (const [what, body, wanted] of [
    ['nothing', '', /not JSON/],
    ['half a review', reviewOf(pod).slice(0, 60), /not JSON/],
    ['bytes that are no text', Buffer.from([0, 255, 254, 128, 10]), /not JSON/],
    ['another object', '{"kind":"Pod"}', /expected an AdmissionReview/],
    ['a list', '[]', /expected an AdmissionReview/],
    [
      'a review of v1beta1',
      reviewOf(pod, 'admission.k8s.io/v1beta1'),
      /expected admission\.k8s\.io\/v1, not "adm/,
    ],
    ['a review of v2', reviewOf(pod, 'admission.k8s.io/v2'), /expected admission\.k8s\.io\/v1/],
    ['no uid', '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}', /uid/],
    [
      'a request that is none',
      '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":[1]}',
      /uid/,
    ],
  ] as const)
    test(`${what} is answered with 400 and the mistake`, async () => {
      const { status, text } = await post(body);
      assert.equal(status, 400, text);
      assert.match(text, wanted);
      await works();
    });

  for (const [what, wrong] of [
    ['a pod that is a number', 5],
    ['a pod without anything', {}],
    ['annotations that are a list', { ...pod, metadata: { annotations: ['ndots.dev/dns-ndots'] } }],
    ['a dnsConfig that is a text', { ...pod, spec: { dnsConfig: 'x' } }],
    ['options that are null', { ...pod, spec: { dnsConfig: { options: [null, 1, {}] } } }],
    ['the prototype', JSON.parse('{"__proto__":{"kind":"Pod"},"spec":{"__proto__":1}}')],
    [
      'an option with a line end',
      { ...pod, metadata: { annotations: { 'ndots.dev/dns-options': 'a\nb:1' } } },
    ],
  ] as const)
    test(`${what} is admitted anyway`, async () => {
      const { status, text } = await post(reviewOf(wrong as object));
      assert.equal(status, 200, text);
      assert.match(text, /"uid":"u","allowed":true/);
    });

  test('a review of ten megabytes is rejected before it is read completely', async () => {
    refused.length = 0;
    const found = await post('x'.repeat(10e6)).catch((error: NodeJS.ErrnoException) => error);
    // The server closes the connection while the client is still sending, so the client may notice that first.
    if ('status' in found) assert.equal(found.status, 413);
    else assert.match(String(found.code), /EPIPE|ECONNRESET/);
    assert.deepEqual(refused, ['too-large']);
    await works();
  });

  test('four megabytes of brackets are rejected without being parsed', async () => {
    const heap = process.memoryUsage().heapUsed;
    const { status, text } = await post(`[${'[],'.repeat(1.3e6)}0]`);
    assert.equal(status, 413);
    assert.match(text, /at most 200000 values/);
    assert.ok(process.memoryUsage().heapUsed - heap < 60e6);
    await works();
  });

  test('many slow senders of large bodies are rejected beyond a limit, and small reviews are still accepted', async () => {
    refused.length = 0;
    const piece = Buffer.alloc(3 * 1024 * 1024, 0x20);
    const senders = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
        open.push(socket);
        socket.on('error', () => undefined);
        await once(socket, 'secureConnect');
        socket.write('POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-length: 4000000\r\n\r\n');
        socket.write(piece);
        return socket;
      }),
    );
    while (!refused.includes('busy')) await new Promise((done) => setTimeout(done, 20));
    for (const socket of senders) socket.destroy();
    await works();
  });

  test('while incomplete bodies use up the memory limit, reviews of any size are accepted', async () => {
    await Promise.all(
      Array.from({ length: 16 }, async (_, nth) => {
        const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
        open.push(socket);
        socket.on('error', () => undefined);
        await once(socket, 'secureConnect');
        socket.write('POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-length: 4190000\r\n\r\n');
        socket.write(Buffer.alloc(nth < 3 ? 4_180_000 : 260_000, 0x20));
      }),
    );
    await new Promise((done) => setTimeout(done, 300));
    for (let count = 0; count < 10; count++) await works();
    const large = { ...pod, metadata: { annotations: { a: 'x'.repeat(2.5e6) } } };
    const { status, text } = await post(reviewOf(large));
    assert.equal(status, 200, text);
  });

  test('silent connections, before or after the TLS handshake, do not block the API server', async () => {
    const silent = Array.from({ length: 60 }, (_, nth) => {
      const socket =
        nth % 2 === 0
          ? connectTcp(port, '127.0.0.1')
          : connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
      socket.on('error', () => undefined);
      open.push(socket);
      return new Promise<void>((done) => socket.once('close', () => done()));
    });
    await new Promise((done) => setTimeout(done, 300));
    await works();
    // The remaining connections end on their own.
    await Promise.race([
      Promise.all(silent.slice(0, 30)),
      new Promise((_, reject) => {
        setTimeout(() => reject(new Error('they stay')), 15_000).unref();
      }),
    ]);
  });

  test('requests other than a posted review get an error', async () => {
    const get = await fetchStatus('/mutate');
    assert.equal(get, 405);
    assert.equal(await fetchStatus('/other'), 404);
    assert.equal(await fetchStatus('/readyz'), 200);
  });

  const fetchStatus = (path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port, path, agent }, (reply) => {
        reply.resume();
        resolve(reply.statusCode ?? 0);
      });
      asked.on('error', reject);
      asked.end();
    });
});
