import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, test, type TestContext } from 'node:test';

import { testTls } from '../../../test/kit/certificate.ts';
import {
  StreamClient,
  UdpClient,
  answerOne,
  listenerParts,
  queryBytes,
} from '../../../test/kit/loopback.ts';
import { Problem } from '../base/problem.ts';
import type { ListenAddress, Listener } from './listener.ts';
import { openListeners } from './open.ts';
import { probeEndpoint } from './probe.ts';
import type { UdpMode } from './transports.ts';

const hasIPv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
);

async function start(
  t: TestContext,
  endpoint: Partial<ListenAddress>,
  udp: UdpMode = 'auto',
): Promise<Listener> {
  const listener = openListeners(listenerParts(answerOne, endpoint), udp);
  await listener.open();
  t.after(() => listener.close(0));
  return listener;
}

async function answers(port: number, address: string): Promise<void> {
  const udp = await UdpClient.open(address.includes(':') ? '::' : '0.0.0.0');
  try {
    udp.send(queryBytes('x.', 1), port, address);
    assert.notEqual(await udp.next(), null, `UDP ${address}`);
  } finally {
    udp.close();
  }
  const tcp = await StreamClient.open(port, address);
  try {
    tcp.send(queryBytes('x.', 2));
    assert.notEqual(await tcp.next(), null, `TCP ${address}`);
  } finally {
    tcp.close();
  }
}

describe('listeners of an endpoint', () => {
  for (const udp of ['auto', 'plain'] as const) {
    test(`port 0 gives UDP and TCP the same port (UDP ${udp})`, async (t) => {
      const { port } = await start(t, {}, udp);
      assert.ok(port > 0);
      await answers(port, '127.0.0.1');
    });

    for (const address of ['', '0.0.0.0', '::']) {
      test(`the wildcard address '${address}' serves both families (UDP ${udp})`, async (t) => {
        const { port } = await start(t, { address }, udp);
        await answers(port, '127.0.0.1');
        if (hasIPv6) await answers(port, '::1');
      });
    }
  }

  test('listeners of several threads share an endpoint', async (t) => {
    const all = [listenerParts(answerOne)];
    const first = openListeners(all[0]!, 'auto');
    t.after(() => first.close(0));
    await first.open();
    for (let i = 0; i < 3; i++) {
      const parts = listenerParts(answerOne, { port: first.port });
      const listener = openListeners(parts, 'auto');
      t.after(() => listener.close(0));
      await listener.open();
      all.push(parts);
    }
    for (let i = 0; i < 10; i++) await answers(first.port, '127.0.0.1');
    const received = all.map(({ counts }) => counts.received.value);
    assert.equal(
      received.reduce((sum, count) => sum + count),
      20,
    );
  });

  test('if the TCP port is taken, nothing stays open and the likely owner is reported', async (t) => {
    const holder = createServer();
    holder.listen(0, '127.0.0.1');
    await once(holder, 'listening');
    t.after(() => holder.close());
    const bound = holder.address();
    assert.ok(bound !== null && typeof bound === 'object');
    const { port } = bound;
    const listener = openListeners(listenerParts(answerOne, { port }), 'auto');
    await assert.rejects(listener.open(), (error: unknown) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.code, 'address-in-use');
      assert.equal(error.message, `listen tcp 127.0.0.1:${port}: address already in use`);
      assert.match(error.remedy ?? '', new RegExp(`ss -lnpt sport = :${port}`));
      return true;
    });
    const udp = createSocket('udp4');
    t.after(() => udp.close());
    udp.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(udp, 'listening');
  });

  test('the probe finds a listener that port sharing would hide', async (t) => {
    const { port, endpoint } = await start(t, {});
    await assert.rejects(probeEndpoint({ ...endpoint, port }), { code: 'address-in-use' });
    await assert.rejects(probeEndpoint({ ...endpoint, address: '', port }), {
      code: 'address-in-use',
    });
  });

  test('the probe releases a free endpoint', async (t) => {
    const first = await start(t, {});
    await first.close(0);
    const endpoint = { ...first.endpoint, port: first.port };
    await probeEndpoint(endpoint);
    await probeEndpoint(endpoint);
    await start(t, endpoint);
  });

  test('tls and https endpoints listen with their certificate; others are a Problem', async () => {
    for (const scheme of ['tls', 'https'] as const) {
      const listener = openListeners(listenerParts(answerOne, { scheme }, {}, testTls), 'auto');
      await listener.open();
      assert.ok(listener.port > 0);
      await listener.close(0);
    }
    assert.throws(() => openListeners(listenerParts(answerOne, { scheme: 'quic' }), 'auto'), {
      code: 'transport-not-supported',
    });
  });

  test('closing twice is harmless, and the listener can be opened again afterwards', async (t) => {
    const listener = await start(t, {});
    await listener.close(0);
    await listener.close(0);
    await listener.open();
    await answers(listener.port, '127.0.0.1');
  });
});
