import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { describe, test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { TYPE } from '../../wire/iana.ts';
import { Query } from '../../transport/query.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { makeLoop } from './loop.ts';
import { reach, udpProbe, type Address } from './probe.ts';
import { LoopWatch } from './loop-watch.ts';

/** A world where the probe returns `rounds` times, as if the server forwarded to itself. */
async function looping(
  rounds: number,
  zone = '.',
): Promise<{ readonly world: World; readonly sent: string[] }> {
  const sent: string[] = [];
  let world: World | null = null;
  const clock = new VirtualClock();
  const loop = makeLoop(async (message, to) => {
    const query = new Query();
    query.read(message, 0, message.length);
    sent.push(`${query.name} ${query.type} ${to.host}:${to.port}`);
    if (world === null) return false;
    for (let i = 0; i < rounds; i++) await world.send(message, { client: '127.0.0.1' });
    return true;
  });
  world = await makeWorld(`${zone} {\n loop\n}`, { clock, plugins: [loop] });
  // The probe is sent during a turn of the clock, so advance it several times.
  for (let turn = 0; turn < 10; turn++) await clock.advance(150);
  return { world, sent };
}

describe('the probe', () => {
  test("HINFO for two random numbers below the first zone is sent to the server's own address", async () => {
    const { sent } = await looping(1, 'example.org');
    assert.match(
      sent[0]!,
      new RegExp(`^\\d+\\.\\d+\\.example\\.org\\. ${TYPE.HINFO} 127\\.0\\.0\\.1:53$`),
    );
  });

  test('a query that returns more than twice ends the process with instructions', async () => {
    const { world } = await looping(3);
    const fatal = world.log.filter((line) => line.includes('[FATAL]'));
    assert.equal(fatal.length, 1);
    assert.match(
      fatal[0]!,
      /plugin\/loop: Loop \(127\.0\.0\.1:40000 -> 10\.96\.0\.10:53\) detected for zone "\.", see .*\. Query: "HINFO \d+\.\d+\."/,
    );
    assert.match(fatal[0]!, /grep nameserver \/etc\/resolv\.conf/);
    assert.match(fatal[0]!, /kubelet/);
  });

  test('the probe itself and one copy are not a loop', async () => {
    const { world } = await looping(2);
    assert.deepEqual(
      world.log.filter((line) => line.includes('[FATAL]')),
      [],
    );
  });

  test('two seconds after the answer, the name is no longer watched', async () => {
    const { world, sent } = await looping(1);
    await world.clock.advance(3000);
    for (let i = 0; i < 5; i++) await world.ask(`${sent.at(-1)!.split(' ')[0]} HINFO`);
    assert.deepEqual(
      world.log.filter((line) => line.includes('[FATAL]')),
      [],
    );
  });
});

describe('the watch', () => {
  test('retries every second for 30 seconds, and a failed attempt resets the count', async () => {
    const clock = new VirtualClock();
    let tries = 0;
    let found = 0;
    let over = 0;
    const watch: LoopWatch = new LoopWatch({
      clock,
      probe: () => {
        tries++;
        watch.see({ from: 'a', to: 'b' });
        return Promise.resolve(false);
      },
      found: () => found++,
      over: () => over++,
    });
    void watch.run();
    await clock.advance(60_000);
    assert.equal(tries, 30);
    assert.deepEqual([found, over], [0, 1]);
  });
});

describe('over sockets', () => {
  test('the probe is answered by a server at the address', async () => {
    const server = createSocket('udp4');
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
    server.on('message', (message, from) => server.send(message, from.port, from.address));
    const to: Address = { host: '127.0.0.1', port: server.address().port };
    assert.equal(await udpProbe(new Uint8Array(20).fill(7), to, 2000, systemClock), true);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    assert.equal(await udpProbe(new Uint8Array(20), to, 500, systemClock), false);
  });

  test('a probe in progress does not keep a program running', async () => {
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length;
    const before = sockets();
    const clock = new VirtualClock();
    const probe = udpProbe(new Uint8Array(20), { host: '127.0.0.1', port: 9 }, 500, clock);
    assert.equal(sockets(), before);
    await clock.advance(500);
    assert.equal(await probe, false);
  });

  test('an unreachable address is not an answer', async () => {
    // A broadcast address, to which no IPv4 socket can be connected.
    const to: Address = { host: '255.255.255.255', port: 53 };
    assert.equal(await udpProbe(new Uint8Array(20), to, 500, systemClock), false);
  });

  test('listen addresses and how to reach them', () => {
    assert.deepEqual(reach('dns://:53'), { host: '127.0.0.1', port: 53 });
    assert.deepEqual(reach('dns://[::]:5353'), { host: '::1', port: 5353 });
    assert.deepEqual(reach('dns://10.0.0.1:53'), { host: '10.0.0.1', port: 53 });
    assert.deepEqual(reach('dns://[fd00::1]:53'), { host: 'fd00::1', port: 53 });
    assert.equal(reach('tls://:853'), null);
    assert.equal(reach('dns://127.0.0.1:0'), null);
  });
});
