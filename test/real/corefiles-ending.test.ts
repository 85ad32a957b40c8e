import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { printed } from '../kit/child.ts';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

/** A server that shuts down slowly (lameduck 1 s) while a client keeps sending queries. */
async function busyServer(t: TestContext): Promise<ServeProcess> {
  const [health] = await freePorts(1);
  const server = await serveProcess(`  health 127.0.0.1:${health} {
    lameduck 1s
  }
  whoami`);
  t.after(() => server.stop());
  const client = await UdpClient.open();
  t.after(() => client.close());
  const ask = setInterval(() => {
    for (let i = 0; i < 100; i++) client.send(queryBytes('a.test', i), server.port);
  }, 2);
  t.after(() => clearInterval(ask));
  await new Promise((resolve) => setTimeout(resolve, 200));
  return server;
}

describe('a server shutting down under load', () => {
  for (const [signals, code] of [
    [['SIGTERM'], 0],
    [['SIGINT'], 0],
    [['SIGQUIT'], 0],
    [['SIGTERM', 'SIGTERM'], 0],
    [['SIGTERM', 'SIGQUIT'], 0],
    [['SIGINT', 'SIGINT'], 2],
    [['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'], 0],
  ] as const) {
    test(`${signals.join(', then ')}: code ${code}, and no crash`, async (t) => {
      const server = await busyServer(t);
      for (const signal of signals) {
        server.child.signal(signal);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      assert.equal(await server.child.exitCode, code, server.child.output());
      assert.doesNotMatch(server.child.output(), /FATAL|Debugger|\s+at .*\.ts:\d+/);
    });
  }

  test('queries are answered through lameduck', async (t) => {
    const server = await busyServer(t);
    server.child.signal('SIGTERM');
    await printed(server.child, /lameduck/, 5000);
    const client = await UdpClient.open();
    t.after(() => client.close());
    const reply = await client.ask(queryBytes('a.test', 4242), server.port);
    assert.equal(reply?.readUInt16BE(0), 4242);
  });
});
