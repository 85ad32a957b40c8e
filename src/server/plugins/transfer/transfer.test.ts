import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { seededRandom } from '../../base/random.ts';
import { TYPE } from '../../wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../../wire/message.ts';
import { Notifier } from './notifier.ts';

const zone = (serial: number, more = ''): string =>
  `$TTL 60\n@ SOA ns host ${serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n${more}`;

async function served(
  t: TestContext,
  more = '',
): Promise<World & { change(text: string): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-transfer-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'db'), zone(1));
  const world = await makeWorld(
    `.:53 {\n file db example.org {\n reload 10s\n }\n transfer example.org {\n to 10.244.0.9\n }\n${more}\n}`,
    { directory },
  );
  t.after(() => world.close());
  return {
    ...world,
    async change(text) {
      writeFileSync(join(directory, 'db'), text);
      await world.clock.advance(10_001);
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

function ixfr(serial: number, authority = 1): Uint8Array {
  const soa = {
    name: 'example.org.',
    type: TYPE.SOA,
    class: 1,
    ttl: 0,
    data: { mname: '.', rname: '.', serial, refresh: 0, retry: 0, expire: 0, minimum: 0 },
  };
  return writeMessage({
    id: 1,
    flags: 0,
    rcode: 0,
    question: [{ name: 'example.org.', type: TYPE.IXFR, class: 1 }],
    answer: [],
    authority: authority === 0 ? [] : [soa],
    additional: [],
    edns: null,
  });
}

const types = ({ answer }: Message): number[] => answer.map(({ type }) => type);

describe('transfer', () => {
  test('AXFR is the whole zone between two SOA records', async (t) => {
    const world = await served(t);
    const reply = await world.ask('example.org. AXFR', { proto: 'tcp' });
    assert.deepEqual(types(reply), [TYPE.SOA, TYPE.NS, TYPE.A, TYPE.SOA]);
    assert.equal(reply.authority.length, 0);
    assert.match(
      world.log.at(-1)!,
      /Outgoing transfer of 4 records of zone "example\.org\." to 10\.244\.0\.9 for 1 SOA/,
    );
  });

  test('only listed servers may transfer, and not over UDP or HTTPS', async (t) => {
    const world = await served(t);
    for (const options of [
      { proto: 'tcp', client: '10.244.0.8' },
      { proto: 'udp' },
      { proto: 'https' },
    ] as const)
      assert.equal((await world.ask('example.org. AXFR', options)).rcode, 5);
    assert.equal((await world.ask('www.example.org. AXFR', { proto: 'tcp' })).rcode, 5, 'no zone');
  });

  test('IXFR for the current serial, a newer one, or over UDP, returns the SOA record', async (t) => {
    const world = await served(t);
    for (const [serial, proto] of [
      [1, 'tcp'],
      [2, 'tcp'],
      [0, 'udp'],
    ] as const) {
      const reply = readMessage((await world.send(ixfr(serial), { proto }))!);
      assert.deepEqual(types(reply), [TYPE.SOA]);
    }
    assert.equal(readMessage((await world.send(ixfr(1, 0), { proto: 'tcp' }))!).rcode, 1);
  });

  test('IXFR for an older serial returns the changes, as far back as they are known', async (t) => {
    const more = Array.from({ length: 50 }, (_, i) => `host${i} A 192.0.2.9\n`).join('');
    const world = await served(t);
    await world.change(zone(2, more));
    await world.change(zone(3, `${more}new A 192.0.2.2\n`));
    await world.change(zone(4, `${more}newer A 192.0.2.2\n`));
    const reply = readMessage((await world.send(ixfr(2), { proto: 'tcp' }))!);
    const lines = reply.answer.map(({ name, type, data }) =>
      type === TYPE.SOA ? (data as { serial: number }).serial : name,
    );
    assert.deepEqual(lines, [
      4,
      2,
      3,
      'new.example.org.',
      3,
      'new.example.org.',
      4,
      'newer.example.org.',
      4,
    ]);
    const whole = readMessage((await world.send(ixfr(1), { proto: 'tcp' }))!);
    assert.equal(whole.answer.length, 55, 'the first change was larger than the zone');
  });

  test('a receiver list must not be empty and must contain addresses', async () => {
    await assert.rejects(makeWorld('. {\n transfer\n}'), /'to' is required/);
    await assert.rejects(
      makeWorld('. {\n transfer {\n to ns.example.org\n }\n}'),
      /not an IP address/,
    );
    await assert.rejects(
      makeWorld('. {\n transfer {\n to *\n source 192.0.2.1\n source 2001:db8::1\n }\n}'),
      /source already specified/,
    );
  });
});

describe('notifications', () => {
  test('several changes are notified once, and the same serial never twice', async () => {
    const clock = new VirtualClock();
    const asked: string[] = [];
    const counter = { add: () => undefined };
    const notifier = new Notifier({
      clock,
      random: seededRandom(1),
      log: { debug() {}, info() {}, warning() {}, error() {} } as never,
      sent: { with: () => counter },
      ask: (message, { host }) => {
        const { question, flags } = readMessage(message);
        asked.push(`${host} ${question[0]!.name} ${flags.toString(16)}`);
        const reply = message.slice();
        reply[2]! |= 0x80;
        return Promise.resolve(reply);
      },
    });
    const to = { to: [{ host: '192.0.2.10', port: 53 }], source: '' };
    notifier.changed('example.org.', 1, to);
    notifier.changed('example.org.', 2, to);
    notifier.changed('example.org.', 2, to);
    await clock.advance(1000);
    notifier.changed('example.org.', 2, to);
    await clock.advance(1000);
    assert.deepEqual(asked, ['192.0.2.10 example.org. 2400']);
  });
});
