import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  scriptedNetwork,
  type Answer,
  type Asked,
  type ScriptedNetwork,
} from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FLAG } from '../../wire/iana.ts';

async function world(
  lines: string,
  script: (asked: Asked) => Answer,
  behind = '',
): Promise<World & Pick<ScriptedNetwork, 'asked' | 'made'>> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, script);
  const made = await makeWorld(`. {\n prometheus\n grpc ${lines}\n ${behind}\n}`, {
    clock,
    network,
  });
  return { ...made, asked: network.asked, made: network.made };
}

const three = '. 10.0.0.1:9005 10.0.0.2:9005 10.0.0.3:9005';
const answers: Answer = { answer: ['@ 60 A 192.0.2.1'] };

describe('grpc', () => {
  test('queries each upstream once, in order, until one answers', async () => {
    const { ask, asked, metrics, close } = await world(
      `${three} {\n policy sequential\n}`,
      ({ to }) => (to.startsWith('10.0.0.3') ? answers : { fail: 'refused' }),
    );
    const reply = await ask('a.example. A');
    assert.equal(reply.answer.length, 1);
    assert.deepEqual(
      asked.map(({ to, proto }) => `${proto} ${to}`),
      ['grpc 10.0.0.1:9005', 'grpc 10.0.0.2:9005', 'grpc 10.0.0.3:9005'],
    );
    const text = metrics();
    assert.match(text, /coredns_grpc_requests_total\{to="10\.0\.0\.3:9005"\} 1/);
    assert.match(text, /coredns_grpc_responses_total\{rcode="NOERROR",to="10\.0\.0\.3:9005"\} 1/);
    assert.match(text, /coredns_grpc_request_duration_seconds_count\{to="10\.0\.0\.3:9005"\} 1/);
    assert.match(text, /ndots_grpc_failures_total\{to="10\.0\.0\.1:9005"\} 1/);
    assert.match(text, /ndots_grpc_waiting_queries 0/);
    await close();
  });

  test('an upstream gets at most max_concurrent queries at a time', async () => {
    for (const [lines, most] of [
      ['', 4096],
      ['{\n max_concurrent 20\n}', 20],
    ] as const) {
      const { made, ask, close } = await world(`. 10.0.0.1:9005 ${lines}`, () => answers);
      await ask('a.example. A');
      assert.equal(made[0]!.inFlightMax, most);
      await close();
    }
  });

  test('an unreachable upstream is tried last for a second', async () => {
    const { ask, asked, clock, close } = await world(
      `${three} {\n policy sequential\n}`,
      ({ to }) => (to.startsWith('10.0.0.1') ? { fail: 'refused' } : answers),
    );
    await ask('a.example. A');
    await ask('b.example. A');
    assert.equal(asked.at(-1)!.to, '10.0.0.2:9005');
    assert.equal(asked.length, 3);
    await clock.advance(1500);
    await ask('c.example. A');
    assert.equal(asked.length, 5);
    await close();
  });

  test('a silent upstream leaves the others their time', async () => {
    const { ask, clock, close } = await world(`${three} {\n policy sequential\n}`, ({ to }) =>
      to.startsWith('10.0.0.1') ? { fail: 'timeout' } : answers,
    );
    const began = clock.now();
    assert.equal((await ask('a.example. A')).answer.length, 1);
    assert.ok(clock.now() - began < 2100, `${clock.now() - began} ms`);
    await close();
  });

  test('if none answers within five seconds, the client gets SERVFAIL, and the error lists the upstreams', async () => {
    const { ask, clock, close } = await world(three, () => ({ fail: 'timeout' }));
    const began = clock.now();
    const reply = await ask('a.example. A', { edns: true });
    assert.equal(reply.rcode, 2);
    assert.ok(clock.now() - began <= 5100);
    assert.equal(reply.edns!.options.length, 1);
    await close();
  });

  test('round_robin rotates, random spreads', async () => {
    for (const policy of ['round_robin', 'random']) {
      const { ask, asked, close } = await world(`${three} {\n policy ${policy}\n}`, () => answers);
      for (let i = 0; i < 30; i++) await ask(`n${i}.example. A`);
      assert.equal(new Set(asked.map(({ to }) => to)).size, 3);
      if (policy === 'round_robin') {
        assert.deepEqual(
          asked.slice(0, 3).map(({ to }) => to),
          ['10.0.0.1:9005', '10.0.0.2:9005', '10.0.0.3:9005'],
        );
      }
      await close();
    }
  });

  test('forwards names below FROM except the excluded ones; FROM itself is always included', async () => {
    const { ask, asked, close } = await world(
      'example.org 10.0.0.1:9005 {\n except internal.example.org example.org\n}',
      () => answers,
      'whoami',
    );
    await ask('example.org. A');
    assert.equal(asked.length, 1);
    await ask('a.internal.example.org. A');
    await ask('example.com. A');
    assert.equal(asked.length, 1);
    await close();
  });

  test('fallthrough passes on missing names and failed queries', async () => {
    const { ask, asked, close } = await world(
      '. 10.0.0.1:9005 {\n fallthrough example.org\n}\nwhoami',
      ({ proto, name }) =>
        proto !== 'grpc'
          ? answers
          : name.startsWith('down')
            ? { fail: 'refused' }
            : { rcode: 'NXDOMAIN' },
      'whoami',
    );
    assert.equal((await ask('a.example.com. A')).rcode, 3);
    assert.notEqual((await ask('a.example.org. A')).rcode, 3);
    assert.equal((await ask('down.example.com. A')).rcode, 2);
    assert.notEqual((await ask('down.example.org. A')).rcode, 2);
    assert.equal(asked.length, 4);
    await close();
  });

  test('without a plugin after it, missing names stay missing', async () => {
    const { ask, close } = await world('. 10.0.0.1:9005 {\n fallthrough\n}', () => ({
      rcode: 'NXDOMAIN',
    }));
    assert.equal((await ask('a.example. A')).rcode, 3);
    await close();
  });

  test("the reply is the upstream's, including flags", async () => {
    const { ask, close } = await world('. 10.0.0.1:9005', () => ({
      ...answers,
      flags: FLAG.AA,
    }));
    const reply = await ask('a.example. A');
    assert.ok((reply.flags & FLAG.AA) !== 0);
    await close();
  });

  test('addresses have a port, or the default of their scheme', async () => {
    const { asked, ask, close } = await world(
      '. 10.0.0.1 [2001:db8::1] [2001:db8::2]:99 grpc://10.0.0.4 unix:///run/x.sock {\n policy sequential\n}',
      () => ({ fail: 'refused' }),
    );
    await ask('a.example. A');
    assert.deepEqual(
      asked.map(({ parts: { address } }) => `${address.host} ${address.port}`),
      ['10.0.0.1 53', '2001:db8::1 53', '2001:db8::2 99', '10.0.0.4 443', 'unix:/run/x.sock 0'],
    );
    await close();
  });

  test('tls_servername alone enables TLS', async () => {
    const { asked, ask, close } = await world(
      '. 10.0.0.1 {\n tls_servername dns.example\n}',
      () => answers,
    );
    await ask('a.example. A');
    const { parts } = asked[0]!;
    assert.equal(parts.address.serverName, 'dns.example');
    assert.notEqual(parts.tls, null);
    await close();
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['', /[Ww]rong argument count/],
      ['.', /[Ww]rong argument count/],
      ['. 127.0.0.1 {\n blaatl\n}', /unknown property 'blaatl'/],
      ['. 127.0.0.1 {\n except\n}', /[Ww]rong argument count/],
      ['. 127.0.0.1 {\n policy superrandom\n}', /unknown policy 'superrandom'/],
      ['. 127.0.0.1 {\n tls a b c d\n}', /[Ww]rong argument count/],
      ['. 127.0.0.1 {\n tls_servername\n}', /[Ww]rong argument count/],
      ['. /no/such/file', /not an IP address or file/],
      ['. tls://127.0.0.1', /not an IP address or file/],
      [
        `. ${Array.from({ length: 16 }, (_, i) => `10.0.0.${i + 1}`).join(' ')}`,
        /more than 15 TOs configured: 16/,
      ],
    ];
    for (const [line, message] of cases) {
      await assert.rejects(
        world(line, () => answers),
        message,
        line,
      );
    }
  });
});
