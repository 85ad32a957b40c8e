import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { parseAddress } from '../../base/ip.ts';
import { problemsIn } from '../../base/problem.ts';
import { collectMemory } from '../../runtime/memory-policy.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FLAG, OPTION, RCODE, TYPE, typeName } from '../../wire/iana.ts';
import { readMessage, writeMessage, type Message, type Question } from '../../wire/message.ts';
import { parseName } from '../../wire/name.ts';
import { kindOf } from '../../wire/record/table.ts';
import { Words } from '../../wire/record-words.ts';
import { printRecord } from '../../wire/print.ts';
import { plugins as allPlugins } from '../../../../test/kit/plugins.ts';
import {
  scriptedNetwork,
  type Answer,
  type Asked,
  type ScriptedNetwork,
} from '../../../../test/kit/upstream.ts';
import { makeWorld, type World, type WorldParts } from '../../../../test/kit/world.ts';
import { readTo } from './address.ts';
import { forward, makeForward } from './forward.ts';
import type { HostLookup } from './host-addresses.ts';
import { realPlaces, type PlacesWorld } from './find-upstreams.ts';
import { ownUpstreams } from './own-upstreams.ts';

let open: World | null = null;
const directories: string[] = [];

afterEach(async () => {
  await open?.close();
  open = null;
  for (const directory of directories.splice(0))
    rmSync(directory, { recursive: true, force: true });
});

const up: Answer = { answer: ['@ 300 A 192.0.2.1'] };

async function world(
  corefile: string,
  script: (asked: Asked) => Answer = () => up,
  parts: WorldParts = {},
): Promise<World & { readonly network: ScriptedNetwork }> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, script);
  // Braces have to end a line, but the tests write them inline.
  const text = corefile.replaceAll('{', '{\n').replaceAll('}', '\n}\n');
  open = await makeWorld(text, { clock, network, plugins: [forward], ...parts });
  return Object.assign(open, { network });
}

function extendedError(message: Message): string | null {
  const option = message.edns?.options.find(({ code }) => code === OPTION.EDE);
  if (option === undefined) return null;
  return `${(option.data[0]! << 8) | option.data[1]!} ${Buffer.from(option.data.subarray(2)).toString()}`;
}

const served = (world: { readonly network: ScriptedNetwork }): string[] =>
  world.network.asked.map(({ to }) => to);

function directory(files: Readonly<Record<string, string>>): string {
  const made = mkdtempSync(join(tmpdir(), 'forward-'));
  directories.push(made);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(made, name), text);
  return made;
}

describe('forwarding', () => {
  test('a query below FROM is sent to the upstream and its reply passed back', async () => {
    const here = await world('. { forward . 10.0.0.1 }');
    const reply = await here.ask('www.example.org. A');
    assert.equal(reply.rcode, RCODE.NOERROR);
    assert.deepEqual(
      reply.answer.map((record) => printRecord(record)),
      ['www.example.org.\t300\tIN\tA\t192.0.2.1'],
    );
    assert.equal(reply.flags & FLAG.RA, FLAG.RA);
    assert.deepEqual(served(here), ['10.0.0.1:53']);
    assert.equal(here.network.asked[0]!.proto, 'udp');
  });

  test('a name outside FROM, and one below except, goes to the next plugin', async () => {
    const here = await world('. { forward example.org 10.0.0.1 { except b.example.org } }');
    for (const name of ['example.com.', 'b.example.org.', 'x.b.example.org.', 'badexample.org.']) {
      assert.equal((await here.ask(`${name} A`)).rcode, RCODE.SERVFAIL, name);
    }
    assert.equal((await here.ask('example.org. A')).rcode, RCODE.NOERROR);
    assert.deepEqual(served(here), ['10.0.0.1:53']);
  });

  test('except never applies to FROM itself', async () => {
    const here = await world('. { forward example.org 10.0.0.1 { except example.org } }');
    assert.equal((await here.ask('example.org. A')).rcode, RCODE.NOERROR);
    assert.equal((await here.ask('a.example.org. A')).rcode, RCODE.SERVFAIL);
  });

  test('the second forward line gets queries the first does not match', async () => {
    const here = await world('. {\n forward a.example 10.0.0.1\n forward . 10.0.0.2\n}');
    await here.ask('x.a.example. A');
    await here.ask('x.b.example. A');
    assert.deepEqual(served(here), ['10.0.0.1:53', '10.0.0.2:53']);
  });

  test('classes other than IN are allowed', async () => {
    const here = await world('. { forward . 10.0.0.1 }', () => ({}));
    assert.equal((await here.ask('version.bind. TXT', { qclass: 3 })).rcode, RCODE.NOERROR);
  });

  test("DO is sent upstream, the reply's options reach the client, and the reply's OPT repeats the client's size", async () => {
    const here = await world('. { forward . 10.0.0.1 }', () => ({
      ...up,
      options: [{ code: OPTION.NSID, data: Uint8Array.of(65) }],
    }));
    const reply = await here.ask('www.example.org. A', { udpSize: 1400, dnssecOk: true });
    assert.equal(here.network.asked[0]!.query.dnssecOk, true);
    assert.equal(reply.edns?.udpSize, 1400);
    assert.deepEqual(
      reply.edns?.options.map(({ code }) => code),
      [OPTION.NSID],
    );
    assert.equal((await here.ask('www.example.org. A')).edns, null);
  });
});

describe('transports', () => {
  const protos = async (corefile: string, proto: 'udp' | 'tcp'): Promise<string[]> => {
    const here = await world(corefile);
    await here.ask('www.example.org. A', { proto });
    const seen = here.network.asked.map((asked) => asked.proto);
    await here.close();
    open = null;
    return seen;
  };

  test("the client's protocol is used for the upstream", async () => {
    assert.deepEqual(await protos('. { forward . 10.0.0.1 }', 'udp'), ['udp']);
    assert.deepEqual(await protos('. { forward . 10.0.0.1 }', 'tcp'), ['tcp']);
  });

  test('force_tcp and prefer_udp', async () => {
    assert.deepEqual(await protos('. { forward . 10.0.0.1 { force_tcp } }', 'udp'), ['tcp']);
    assert.deepEqual(await protos('. { forward . 10.0.0.1 { prefer_udp } }', 'tcp'), ['udp']);
    assert.deepEqual(
      await protos('. { forward . 10.0.0.1 { \n force_tcp\n prefer_udp\n } }', 'udp'),
      ['tcp'],
    );
  });

  test('tls:// and https:// upstreams get a name, a port and connection limits', async () => {
    const here = await world(
      '. { forward . tls://10.0.0.1%dns.example:8853 tls://10.0.0.2%two.example https://10.0.0.3:8443 {\n policy sequential\n expire 20s\n max_age 30s\n max_idle_conns 7\n doh_method GET\n source_address 10.9.9.9\n failover SERVFAIL\n max_concurrent 70\n} }',
      () => ({ rcode: 'SERVFAIL' }),
    );
    await here.ask('www.example.org. A');
    assert.deepEqual(
      here.network.made.map(
        ({ address, proto }) => `${proto} ${address.host} ${address.port} ${address.serverName}`,
      ),
      ['tls 10.0.0.1 8853 dns.example', 'tls 10.0.0.2 853 two.example', 'https 10.0.0.3 8443 '],
    );
    const { expireMs, maxAgeMs, maxIdle, inFlightMax, source, httpMethod } = here.network.made[0]!;
    assert.deepEqual(
      [expireMs, maxAgeMs, maxIdle, inFlightMax, source, httpMethod],
      [20_000, 30_000, 7, 70, '10.9.9.9', 'GET'],
    );
  });

  test('a reply truncated by the upstream is fetched in full over TCP, so that the client gets all of it', async () => {
    const here = await world('. { forward . 10.0.0.1 }', ({ proto }) =>
      proto === 'udp' ? { flags: FLAG.TC } : up,
    );
    const reply = await here.ask('www.example.org. A');
    assert.equal(reply.flags & FLAG.TC, 0);
    assert.equal(reply.answer.length, 1);
    assert.deepEqual(
      here.network.asked.map(({ proto }) => proto),
      ['udp', 'tcp'],
    );
    assert.match(here.metrics(), /ndots_forward_tcp_retries_total\{to="10.0.0.1:53"\} 1/);
  });

  test('the truncated reply is passed on if TCP fails', async () => {
    const here = await world('. { forward . 10.0.0.1 }', ({ proto }) =>
      proto === 'udp' ? { ...up, flags: FLAG.TC } : { fail: 'refused' },
    );
    const reply = await here.ask('www.example.org. A');
    assert.equal(reply.flags & FLAG.TC, FLAG.TC);
    assert.equal(reply.answer.length, 1);
  });

  test('garbage over UDP becomes an empty reply with TC if TCP fails', async () => {
    const garbage = Uint8Array.of(0, 1, 0x81, 0x80, 0, 1, 0, 9, 0, 0, 0, 0, 1, 97, 0, 0, 1, 0, 1);
    const here = await world('. { forward . 10.0.0.1 }', ({ proto }) =>
      proto === 'udp' ? { bytes: garbage } : { fail: 'refused' },
    );
    const reply = await here.ask('a. A');
    assert.equal(reply.flags & FLAG.TC, FLAG.TC);
    assert.equal(reply.answer.length, 0);
  });

  test('an unreadable reply ends the attempt at once', async () => {
    const here = await world('. { forward . 10.0.0.1 10.0.0.2 { policy sequential } }', ({ to }) =>
      to.startsWith('10.0.0.1') ? { fail: 'garbled' } : up,
    );
    assert.equal((await here.ask('www.example.org. A')).answer.length, 1);
    assert.equal(here.clock.now(), 2);
  });
});

describe('failures', () => {
  test('a silent upstream is abandoned after read_timeout, and the next one is queried', async () => {
    const here = await world('. { forward . 10.0.0.1 10.0.0.2 { policy sequential } }', ({ to }) =>
      to.startsWith('10.0.0.1') ? { fail: 'timeout' } : up,
    );
    const began = here.clock.now();
    assert.equal((await here.ask('www.example.org. A')).answer.length, 1);
    assert.equal(here.clock.now() - began, 2001);
    assert.deepEqual(
      here.network.asked.filter(({ type }) => type === TYPE.A).map(({ to }) => to),
      ['10.0.0.1:53', '10.0.0.2:53'],
    );
  });

  test('each upstream is tried twice, for at most 5 seconds', async () => {
    const here = await world('. { forward . 10.0.0.1 10.0.0.2 }', () => ({ fail: 'timeout' }));
    const reply = await here.ask('www.example.org. A', { edns: true });
    assert.equal(reply.rcode, RCODE.SERVFAIL);
    assert.equal(here.clock.now(), 5000);
    assert.equal(here.network.asked.filter(({ type }) => type === TYPE.A).length, 3);
    assert.match(extendedError(reply)!, /^22 2 of 2 upstreams did not answer$/);
  });

  test('max_connect_attempts ends the search, and the error gives the reason', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_connect_attempts 1 } }', () => ({
      fail: 'refused',
    }));
    const reply = await here.ask('www.example.org. A', { edns: true });
    assert.equal(reply.rcode, RCODE.SERVFAIL);
    assert.equal(here.network.asked.filter(({ type }) => type === TYPE.A).length, 1);
    assert.equal(extendedError(reply), '23 the upstream refused the connection');
  });

  test('unlimited attempts to upstreams that refuse at once do not spin', async () => {
    const here = await world(
      '. { forward . 10.0.0.1 { \n max_connect_attempts 0\n max_fails 0\n } }',
      () => ({ fail: 'refused', afterMs: 0 }),
    );
    await here.ask('www.example.org. A');
    assert.ok(
      here.network.asked.length > 10 && here.network.asked.length < 200,
      String(here.network.asked.length),
    );
  });

  test('failover queries each further upstream once, and the last reply counts', async () => {
    const here = await world(
      '. { forward . 10.0.0.1 10.0.0.2 10.0.0.3 { \n policy sequential\n failover SERVFAIL REFUSED\n } }',
      ({ to }) => ({
        rcode: to.startsWith('10.0.0.1') ? 'SERVFAIL' : 'REFUSED',
      }),
    );
    assert.equal((await here.ask('www.example.org. A')).rcode, RCODE.REFUSED);
    assert.deepEqual(served(here), ['10.0.0.1:53', '10.0.0.2:53', '10.0.0.3:53']);
  });

  test('next and next_on_nodata lead to the next forward, and to no other plugin', async () => {
    const rules = '\n next NXDOMAIN\n next_on_nodata\n';
    const answers = ({ to, name }: Asked): Answer =>
      to.startsWith('10.0.0.2') ? up : name.startsWith('gone') ? { rcode: 'NXDOMAIN' } : {};
    const here = await world(
      `. {\n forward . 10.0.0.1 {${rules}}\n forward . 10.0.0.2 {${rules}}\n}`,
      answers,
    );
    assert.equal((await here.ask('gone.example.org. A')).answer.length, 1);
    assert.equal((await here.ask('empty.example.org. A')).answer.length, 1);
    await here.close();
    const alone = await world(`. {\n forward . 10.0.0.1 {${rules}}\n}`, answers);
    assert.equal((await alone.ask('gone.example.org. A')).rcode, RCODE.NXDOMAIN);
  });

  test('more than max_concurrent concurrent queries are REFUSED with a reason', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_concurrent 2 } }', () => ({
      ...up,
      afterMs: 100,
    }));
    const [first, second, third] = await Promise.all([
      here.ask('a.example.org. A', { edns: true }),
      here.ask('b.example.org. A', { edns: true }),
      here.ask('c.example.org. A', { edns: true }),
    ]);
    assert.deepEqual([first!.rcode, second!.rcode, third!.rcode], [0, 0, RCODE.REFUSED]);
    assert.equal(extendedError(third!), '0 concurrent queries exceeded maximum 2');
    assert.match(here.metrics(), /coredns_forward_max_concurrent_rejects_total 1/);
    assert.equal((await here.ask('d.example.org. A')).rcode, RCODE.NOERROR);
  });
});

test('a query that is not allowed to wait is REFUSED without querying an upstream', async () => {
  const here = await world('. { forward . 10.0.0.1 }');
  const reply = await here.ask('a.example.org. A', { edns: true, mayWait: false });
  assert.equal(reply.rcode, RCODE.REFUSED);
  assert.notEqual(extendedError(reply), null);
  assert.equal(here.network.asked.length, 0);
});

describe('health', () => {
  test('healthy upstreams are not probed', async () => {
    const here = await world('. { forward . 10.0.0.1 }');
    await here.ask('www.example.org. A');
    await here.clock.advance(60_000);
    assert.equal(here.network.asked.length, 1);
  });

  test('after a failure, `. NS` is sent every half second until any answer arrives', async () => {
    for (const rcode of ['NOERROR', 'NXDOMAIN', 'SERVFAIL', 'REFUSED'] as const) {
      let dead = true;
      const here = await world('. { forward . 10.0.0.1 { max_connect_attempts 1 } }', () =>
        dead ? { fail: 'refused' } : { rcode },
      );
      await here.ask('www.example.org. A');
      await here.clock.advance(1400);
      const probes = here.network.asked.filter(({ type }) => type === TYPE.NS);
      assert.equal(probes.length, 3);
      assert.deepEqual([probes[0]!.name, probes[0]!.flags & FLAG.RD], ['.', FLAG.RD]);
      dead = false;
      await here.clock.advance(1000);
      const before = here.network.asked.length;
      await here.clock.advance(10_000);
      assert.equal(here.network.asked.length, before);
      assert.match(
        here.metrics(),
        /coredns_proxy_healthcheck_failures_total\{proxy_name="forward",to="10.0.0.1:53"\} 3/,
      );
    }
  });

  test('health_check sets the interval, the domain and no_rec', async () => {
    const here = await world(
      '. { forward . 10.0.0.1 { \n max_connect_attempts 1\n health_check 5s no_rec domain example.org\n } }',
      () => ({ fail: 'refused' }),
    );
    await here.ask('www.example.org. A');
    await here.clock.advance(9000);
    const probes = here.network.asked.filter(({ type }) => type === TYPE.NS);
    assert.equal(probes.length, 2);
    assert.deepEqual([probes[0]!.name, probes[0]!.flags & FLAG.RD], ['example.org.', 0]);
  });

  test('an upstream that is down is skipped until it answers again', async () => {
    let dead = true;
    const here = await world('. { forward . 10.0.0.1 10.0.0.2 { policy sequential } }', ({ to }) =>
      dead && to.startsWith('10.0.0.1') ? { fail: 'refused' } : up,
    );
    await here.ask('www.example.org. A');
    await here.clock.advance(3000);
    const before = here.network.asked.length;
    await here.ask('www.example.org. A');
    assert.deepEqual(
      here.network.asked
        .slice(before)
        .filter(({ type }) => type === TYPE.A)
        .map(({ to }) => to),
      ['10.0.0.2:53'],
    );
    dead = false;
    await here.clock.advance(1000);
    const again = here.network.asked.length;
    await here.ask('www.example.org. A');
    assert.equal(here.network.asked[again]!.to, '10.0.0.1:53');
  });

  test('if all upstreams are down, one is tried anyway; failfast answers SERVFAIL instead', async () => {
    const all = (extra: string) =>
      `. { forward . 10.0.0.1 10.0.0.2 {\n max_fails 1\n ${extra}\n} }`;
    const down = async (corefile: string): Promise<[Message, number, string]> => {
      const here = await world(corefile, () => ({ fail: 'refused' }));
      await here.ask('www.example.org. A');
      await here.clock.advance(3000);
      const before = here.network.asked.filter(({ type }) => type === TYPE.A).length;
      const reply = await here.ask('www.example.org. A', { edns: true });
      const tries = here.network.asked.filter(({ type }) => type === TYPE.A).length - before;
      const metrics = here.metrics();
      await here.close();
      return [reply, tries, metrics];
    };
    const [tried, tries, metrics] = await down(all(''));
    assert.deepEqual([tried.rcode, tries], [RCODE.SERVFAIL, 1]);
    assert.match(metrics, /coredns_forward_healthcheck_broken_total 1/);
    const [refused, none] = await down(all('failfast_all_unhealthy_upstreams'));
    assert.deepEqual([refused.rcode, none], [RCODE.SERVFAIL, 0]);
    assert.match(extendedError(refused)!, /^22 all upstreams are down$/);
  });

  test('max_fails 0 never probes and never marks an upstream down', async () => {
    const here = await world(
      '. { forward . 10.0.0.1 { \n max_fails 0\n max_connect_attempts 1\n } }',
      () => ({ fail: 'refused' }),
    );
    for (let i = 0; i < 5; i++) await here.ask('www.example.org. A');
    await here.clock.advance(5000);
    assert.equal(here.network.asked.length, 5);
  });
});

describe('policies', () => {
  const ask = async (
    here: World & { readonly network: ScriptedNetwork },
    times: number,
  ): Promise<string[]> => {
    const before = here.network.asked.length;
    for (let i = 0; i < times; i++) await here.ask('www.example.org. A');
    return here.network.asked.slice(before).map(({ to }) => to.replace(/^10.0.0.|:53$/g, ''));
  };

  test('round_robin rotates, sequential always starts with the first, random spreads', async () => {
    const line = (policy: string) =>
      `. { forward . 10.0.0.1 10.0.0.2 10.0.0.3 { policy ${policy} } }`;
    assert.deepEqual(await ask(await world(line('round_robin')), 5), ['1', '2', '3', '1', '2']);
    await open!.close();
    assert.deepEqual(await ask(await world(line('sequential')), 3), ['1', '1', '1']);
    await open!.close();
    assert.equal(new Set(await ask(await world(line('random')), 50)).size, 3);
  });

  test('latency prefers the fastest upstream and notices when that changes', async () => {
    let slow = '10.0.0.1:53';
    const here = await world('. { forward . 10.0.0.1 10.0.0.2 { policy latency } }', ({ to }) => ({
      ...up,
      afterMs: to === slow ? 80 : 2,
    }));
    const first = await ask(here, 100);
    assert.ok(first.filter((to) => to === '2').length > 80, first.join());
    slow = '10.0.0.2:53';
    await ask(here, 100);
    const then = await ask(here, 100);
    assert.ok(then.filter((to) => to === '1').length > 80, then.join());
  });
});

describe('the packet budget', () => {
  test('at most max_pps packets are sent within any second', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_pps 20 } }');
    await Promise.all(Array.from({ length: 40 }, (_, i) => here.ask(`n${i}.example.org. A`)));
    await here.clock.advance(3000);
    const times = here.network.asked.map(({ at }) => at);
    for (const at of times) {
      const within = times.filter((other) => other >= at && other < at + 1000).length;
      assert.ok(within <= 20, `${within} packets within a second`);
    }
    assert.match(here.metrics(), /ndots_forward_budget_delayed_total\{to="10.0.0.1:53"\} [1-9]/);
  });

  test('an upstream with budget left takes over', async () => {
    const here = await world(
      '. { forward . 10.0.0.1 10.0.0.2 { \n policy sequential\n max_pps 10\n } }',
    );
    await Promise.all([0, 1].map((i) => here.ask(`n${i}.example.org. A`)));
    assert.deepEqual(served(here), ['10.0.0.1:53', '10.0.0.2:53']);
  });

  test('queries that would wait longer than a second get SERVFAIL with a reason', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_pps 10 } }');
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, i) => here.ask(`n${i}.example.org. A`, { edns: true })),
    );
    const shed = replies.filter(({ rcode }) => rcode === RCODE.SERVFAIL);
    assert.ok(shed.length >= 15, String(shed.length));
    assert.match(extendedError(shed[0]!)!, /^0 packet budget of the upstream used up$/);
    await here.clock.advance(3000);
    assert.match(here.metrics(), /ndots_forward_budget_headroom_packets\{to="10.0.0.1:53"\} 10/);
  });
});

describe('sources of upstreams', () => {
  test('nameservers in a file are used, and changes are picked up', async () => {
    const base = directory({ 'resolv.conf': '# dhcp\nsearch a.example\nnameserver 10.0.0.1\n' });
    const here = await world('. { forward . resolv.conf }', () => up, { directory: base });
    await here.ask('www.example.org. A');
    writeFileSync(join(base, 'resolv.conf'), 'nameserver 10.0.0.2\nnameserver 2001:db8::2\n');
    await here.clock.advance(5001);
    for (let i = 0; i < 20; i++) await here.ask('www.example.org. A');
    assert.deepEqual([...new Set(served(here))].toSorted(), [
      '10.0.0.1:53',
      '10.0.0.2:53',
      '[2001:db8::2]:53',
    ]);
    assert.ok(
      here.log.some((line) =>
        /upstreams of .*resolv.conf changed: 10.0.0.1:53 → 10.0.0.2:53, \[2001:db8::2\]:53/.test(
          line,
        ),
      ),
      here.log.join('\n'),
    );
    await here.clock.advance(6001);
    assert.equal(here.network.closed.length, 1);
  });

  test('a partly binary upstream file is reported with the line, and the rest is used', async () => {
    const base = directory({ 'resolv.conf': '# dhcp\nnameserver 10.0.0.1\n\0\0\0' });
    const here = await world('. { forward . resolv.conf }', () => up, { directory: base });
    const odd = (): readonly string[] => here.log.filter((line) => line.includes('is not text'));
    assert.deepEqual(odd(), [
      `[WARNING] plugin/forward: ${join(base, 'resolv.conf')}:3: part of this line is not text, and only \`nameserver IP\` lines are used; check that the file is complete`,
    ]);
    await here.clock.advance(10_000);
    assert.equal(odd().length, 1);
  });

  test('that are this server are reported at startup and when a file changes', async () => {
    const base = directory({ 'resolv.conf': 'nameserver 10.0.0.1\nnameserver 127.0.0.53\n' });
    const here = await world('. { forward . resolv.conf }', () => up, { directory: base });
    const own = (): readonly string[] =>
      here.log.filter((line) => line.includes("this server's own"));
    assert.deepEqual(own(), [
      `[WARNING] plugin/forward: ${join(base, 'resolv.conf')} lists 127.0.0.53:53, which is one of this server's own addresses, so every query loops back unless another program uses the address; specify a different resolver`,
    ]);
    writeFileSync(join(base, 'resolv.conf'), 'nameserver ::1\n');
    await here.clock.advance(5001);
    assert.equal(own().length, 2);
    assert.match(own()[1]!, /lists \[::1\]:53, which is one of this server's own addresses/);
  });

  test('are this server if it listens on their address and port with the same transport', () => {
    const at = (to: string, servers: readonly string[]): boolean => {
      const read = readTo(to);
      assert.equal(read.kind, 'address');
      const { upstream } = read as Extract<typeof read, { kind: 'address' }>;
      const machine = ['10.0.0.5', 'fd00::5'].map((address) => parseAddress(address)!);
      return ownUpstreams([upstream], servers, () => machine).length === 1;
    };
    for (const to of ['10.0.0.5', 'fd00::5', '127.0.0.1', '127.0.0.53', '::1', '10.0.0.5:53'])
      assert.ok(at(to, ['dns://:53']), to);
    for (const to of ['10.0.0.6', '10.0.0.5:5353', 'tls://10.0.0.5', 'fd00::6'])
      assert.ok(!at(to, ['dns://:53']), to);
    assert.ok(at('10.0.0.5', ['dns://10.0.0.6:53', 'dns://10.0.0.5:53']));
    assert.ok(!at('127.0.0.1', ['dns://10.0.0.5:53']));
    assert.ok(at('fd00::5', ['dns://[fd00:0::5]:53']));
    assert.ok(!at('fd00::5', ['dns://0.0.0.0:53']));
    assert.ok(at('tls://10.0.0.5', ['tls://:853']));
    assert.ok(!at('10.0.0.5', []));
  });

  test('stay open for a while after a reload, but keep nothing else from the old configuration in memory', async () => {
    const links: WeakRef<object>[] = [];
    const remembered = allPlugins.map((plugin) =>
      plugin.name === 'cache'
        ? {
            ...plugin,
            setup: (...parts: Parameters<NonNullable<typeof plugin.setup>>) => {
              const link = plugin.setup!(...parts);
              links.push(new WeakRef(link));
              return link;
            },
          }
        : plugin,
    );
    const here = await world('. { cache 10 \n forward . 10.0.0.1 }', () => up, {
      plugins: remembered,
    });
    await here.ask('www.example.org. A');
    here.setCorefile('. {\n cache 20\n forward . 10.0.0.1\n}\n');
    assert.equal(await here.clock.run(here.server.reload()), true);
    await here.ask('www.example.org. A');
    await here.clock.advance(2000);
    await setImmediate();
    collectMemory();
    assert.equal(here.network.closed.length, 0);
    assert.deepEqual(
      links.map((link) => link.deref() === undefined),
      [true, false],
    );
    await here.clock.advance(4001);
    assert.equal(here.network.closed.length, 1);
  });

  test('a file that loses its nameservers leaves the upstreams unchanged, with one warning', async () => {
    const base = directory({ 'resolv.conf': 'nameserver 10.0.0.1\n' });
    const here = await world('. { forward . resolv.conf }', () => up, { directory: base });
    writeFileSync(join(base, 'resolv.conf'), '');
    await here.clock.advance(20_001);
    assert.equal((await here.ask('www.example.org. A')).rcode, RCODE.NOERROR);
    assert.equal(here.log.filter((line) => line.includes('keeping the previous')).length, 1);
  });

  const refusal = async (
    corefile: string,
    files: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    try {
      await world(corefile, () => up, { directory: directory(files) });
    } catch (error) {
      return String((error as Error).message);
    }
    return 'it started';
  };

  test('a resolver may have a port', async () => {
    const line = 'resolver 10.0.0.53 10.0.0.53:5353 [2001:db8::53]:5353 2001:db8::53';
    assert.equal(await refusal(`. { forward . 10.0.0.1 { ${line} } }`), 'it started');
  });

  test('errors are reported with their location', async () => {
    assert.match(
      await refusal('. { forward . nofile.conf/x }'),
      /Corefile|not an IP address or file: "nofile.conf\/x"/,
    );
    assert.match(
      await refusal('. { forward . empty.conf }', { 'empty.conf': 'search x\n' }),
      /no valid upstream addresses found/,
    );
    assert.match(await refusal('. { forward . https://10.0.0.1/x }'), /path is not allowed/);
    assert.match(await refusal('. { forward . grpc://10.0.0.1 }'), /unsupported transport/);
    assert.match(await refusal('. { forward . 10.0.0.1:99999 }'), /invalid port/);
    assert.match(
      await refusal(
        `. { forward . ${Array.from({ length: 16 }, (_, i) => `10.0.0.${i + 1}`).join(' ')} }`,
      ),
      /more than 15 TOs configured: 16/,
    );
    assert.match(await refusal('. { forward . }'), /Wrong argument count/);
    assert.match(
      await refusal('. { forward . 10.0.0.1 { max_fails -1 } }'),
      /max_fails can't be negative: -1/,
    );
    for (const [line, told] of [
      ['max_concurrent -1', /max_concurrent can't be negative: -1/],
      ['read_timeout 0s', /read_timeout must be positive: 0s/],
      ['resolver dns.example', /resolver must be an IP address or IP:port: "dns.example"/],
      ['resolver 10.0.0.53:99999', /resolver must be an IP address or IP:port/],
    ] as const)
      assert.match(await refusal(`. { forward . 10.0.0.1 { ${line} } }`), told);
    assert.match(
      await refusal('. { forward . tls://10.0.0.1%a.example { tls_servername b.example } }'),
      /both forward \('b.example'\) and proxy level \('a.example'\) TLS servernames are set for upstream proxy 'tls:\/\/10.0.0.1:853'/,
    );
    assert.match(
      await refusal('. { forward . 10.0.0.1 { max_age 5s } }'),
      /max_age \(5s\) must not be less than expire \(10s\)/,
    );
    assert.match(
      await refusal('. { forward . 10.0.0.1 { failover NOERROR } }'),
      /NoError cannot be used in failover/,
    );
    assert.match(
      await refusal('. { forward . 10.0.0.1 { failover NOPE } }'),
      /NOPE is not a valid rcode/,
    );
    assert.match(
      await refusal('. { forward . 10.0.0.1 { next 3 } }'),
      /3 is not a valid rcode/,
      'a number is none, as in CoreDNS',
    );
    assert.match(await refusal('. { forward . 10.0.0.1 { policy fastest } }'), /unknown/);
    assert.match(
      await refusal('. { forward . tls://10.0.0.1 { tls no.crt no.key } }'),
      /could not load TLS file no.crt/,
    );
  });
});

describe('upstreams by host name', () => {
  type LookUp = PlacesWorld['lookUp'];
  /** Creates a world where names resolve as listed in `zone`, until a test changes them. */
  const hosts = async (
    corefile: string,
    lookUp: LookUp,
  ): Promise<World & { readonly network: ScriptedNetwork }> =>
    world(corefile, () => up, { plugins: [makeForward({ readFile: () => null, lookUp })] });
  const found = (addresses: readonly string[], ttlMs: number | null = null): HostLookup => ({
    addresses,
    ttlMs,
    whole: true,
  });
  const ask = async (here: World & { readonly network: ScriptedNetwork }): Promise<string[]> => {
    const before = here.network.asked.length;
    for (let i = 0; i < 12; i++) await here.ask(`${i}.example.org. A`);
    return [...new Set(served(here).slice(before))].toSorted();
  };

  test('are looked up again, and queries go to the new addresses', async () => {
    let now = found(['10.0.0.1']);
    const here = await hosts('. { forward . dns.example }', () => Promise.resolve(now));
    assert.deepEqual(await ask(here), ['10.0.0.1:53']);
    now = found(['10.0.0.2', '2001:db8::2']);
    await here.clock.advance(29_000);
    assert.deepEqual(await ask(here), ['10.0.0.1:53']);
    await here.clock.advance(2000);
    assert.deepEqual(await ask(here), ['10.0.0.2:53', '[2001:db8::2]:53']);
    const changes = here.log.filter((line) => line.includes('changed'));
    assert.deepEqual(changes, [
      '[INFO] plugin/forward: upstreams of dns.example changed: 10.0.0.1:53 → 10.0.0.2:53, [2001:db8::2]:53',
    ]);
    // Servers rotate addresses, so a different order is not a change.
    now = found(['2001:db8::2', '10.0.0.2']);
    await here.clock.advance(120_000);
    assert.equal(here.log.filter((line) => line.includes('changed')).length, 1);
    assert.match(here.metrics(), /ndots_forward_host_addresses\{host="dns.example"\} 2/);
  });

  test('keep their addresses while lookups fail, return nothing or lack a family, with one warning', async () => {
    const failures: (() => Promise<HostLookup>)[] = [
      () => Promise.reject(new Error('ESERVFAIL')),
      () => Promise.resolve(found([])),
      () => Promise.resolve({ addresses: ['2001:db8::1'], ttlMs: 1000, whole: false }),
    ];
    for (const failure of failures) {
      let lookUp = (): Promise<HostLookup> => Promise.resolve(found(['10.0.0.1', '2001:db8::1']));
      const here = await hosts('. { forward . dns.example }', () => lookUp());
      lookUp = failure;
      await here.clock.advance(100_000);
      assert.deepEqual(await ask(here), ['10.0.0.1:53', '[2001:db8::1]:53']);
      const warnings = here.log.filter((line) => line.includes('keeping its addresses'));
      assert.equal(warnings.length, 1, warnings.join('\n'));
      assert.match(
        warnings[0]!,
        /lookup of the upstream dns\.example failed: .*; keeping its addresses \(10\.0\.0\.1, 2001:db8::1\)/,
      );
      assert.match(here.metrics(), /lookups_total\{host="dns.example",result="failed"\} 3/);
      lookUp = () => Promise.resolve(found(['10.0.0.3']));
      await here.clock.advance(31_000);
      assert.deepEqual(await ask(here), ['10.0.0.3:53']);
      await here.close();
    }
  });

  test('are looked up when the TTL expires, within resolve_interval and resolve_hold', async () => {
    const lookups = async (lines: string, ttlMs: number | null): Promise<number> => {
      let count = 0;
      const lookUp = (): Promise<HostLookup> => {
        count++;
        return Promise.resolve(found(['10.0.0.1'], ttlMs));
      };
      const here = await hosts(`. { forward . dns.example { ${lines} } }`, lookUp);
      await here.clock.advance(3_600_500);
      await here.close();
      return count - 1;
    };
    assert.equal(await lookups('resolve_interval 30s', null), 120);
    assert.equal(await lookups('resolve_interval 30s', 100_000), 36);
    assert.equal(await lookups('resolve_interval 30s', 1000), 120);
    assert.equal(await lookups('resolve_interval 30s', 86_400_000), 12);
    assert.equal(await lookups('resolve_hold 10m', 86_400_000), 6);
    assert.equal(await lookups('resolve_interval 0s', 1000), 0);
  });

  test('cause an error with its location if they cannot be looked up at startup', async () => {
    const failed = hosts('. { forward . dns.example }', () =>
      Promise.reject(new Error('ETIMEOUT')),
    );
    await assert.rejects(failed, /not an IP address or file: "dns.example"/);
    await assert.rejects(
      hosts('. { forward . dns.example }', () => Promise.resolve(found([]))),
      /not an IP address or file: "dns.example"/,
    );
  });

  test('are never looked up through this server itself', async () => {
    const own: boolean[] = [];
    await hosts(
      '. { forward . dns.example { resolver 10.0.0.53 127.0.0.1 127.0.0.1:5353 } }',
      (_name, servers, isOwn) => {
        own.push(...servers.map(isOwn));
        return Promise.resolve(found(['10.0.0.1']));
      },
    );
    assert.deepEqual(own, [false, true, false]);
    await assert.rejects(
      realPlaces.lookUp('dns.example', ['10.0.0.53'], () => true),
      /every resolver is this server itself/,
    );
  });

  test('get addresses and the TTL from a real name server, queried for the name as written', async () => {
    const named: string[] = [];
    const server = createSocket('udp4');
    server.on('message', (bytes, from) => {
      const query = readMessage(bytes);
      const [{ name, type }] = query.question as [Question];
      named.push(`${name} ${typeName(type)}`);
      const records = [1, 2].map((last) => ({
        name,
        type,
        class: 1,
        ttl: 40 + last,
        data: kindOf(TYPE.A)!.parse(new Words([`10.0.0.${last}`], parseName('.'))),
      }));
      const answer = type === TYPE.A ? records : [];
      const reply = { ...query, flags: FLAG.QR | FLAG.RA, answer, additional: [], edns: null };
      server.send(writeMessage(reply), from.port, from.address);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    const at = `127.0.0.1:${server.address().port}`;
    const answer = await realPlaces.lookUp('dns', [at], () => false);
    server.close();
    assert.deepEqual(answer, { addresses: ['10.0.0.1', '10.0.0.2'], ttlMs: 41_000, whole: true });
    assert.deepEqual(named.toSorted(), ['dns. A', 'dns. AAAA']);
  });
});

describe('all errors are reported at once', () => {
  const problemsOf = async (text: string): Promise<string[]> => {
    try {
      await world(text);
    } catch (error) {
      return problemsIn(error)!.map(
        ({ place, message }) =>
          message.replace(/^.*?(?=could|not an|unsup|invalid|\w+ is not|resolver)/, '') +
          (place === null ? ' nowhere' : ''),
      );
    }
    return assert.fail('no mistake');
  };

  test('in adjacent words', async () => {
    const problems = await problemsOf(
      '. {\n forward . 10.0.0.1:99999 http://x {\n next FOO BAR\n resolver x y\n }\n}',
    );
    assert.equal(problems.length, 6);
    assert.match(problems[1]!, /^unsupported transport in 'http:\/\/x'/);
    assert.match(problems[3]!, /^BAR is not a valid rcode/);
  });

  test('for missing places and files, in all lines and blocks', async () => {
    const problems = await problemsOf(
      `.:53 {\n forward a.example no|such /no/file {\n tls /no/cert /no/key\n }\n forward . no|other\n}
b.example {\n forward . /no/other\n}`.replaceAll('a.example no', '. no'),
    );
    assert.deepEqual(problems, [
      'could not load TLS file /no/cert: no such file or directory',
      'could not load TLS file /no/key: no such file or directory',
      'not an IP address or file: "no|such"',
      'not an IP address or file: "/no/file"',
      'not an IP address or file: "no|other"',
      'not an IP address or file: "/no/other"',
    ]);
  });
});

describe('the old proxy directive', () => {
  test('its properties are accepted, mapped, and reported with their current equivalents', async () => {
    const here = await world(
      '. { proxy . 10.0.0.1 10.0.0.2 {\n policy first\n fail_timeout 5s\n max_fails 3\n health_check /health:8080 10s\n health_check_port 8081\n except a.example\n spray\n protocol dns force_tcp\n} }',
    );
    await here.ask('www.example.org. A');
    assert.deepEqual(
      [here.network.asked[0]!.to, here.network.asked[0]!.proto],
      ['10.0.0.1:53', 'tcp'],
    );
    const log = here.log.join('\n');
    for (const told of [
      /'proxy' is read as 'forward'/,
      /policy sequential/,
      /fail_timeout/,
      /health_check 500ms/,
      /health_check_port/,
      /spray/,
      /Write: force_tcp/,
    ]) {
      assert.match(log, told);
    }
  });

  test('least_conn, https_google and grpc do not stop the server', async () => {
    for (const line of ['policy least_conn', 'protocol https_google', 'protocol grpc insecure']) {
      const here = await world(`. { proxy . 10.0.0.1 { ${line} } }`);
      assert.equal((await here.ask('www.example.org. A')).rcode, RCODE.NOERROR, line);
      assert.ok(
        here.log.some((text) => text.includes('[WARNING]')),
        line,
      );
      await here.close();
    }
  });
});

test('metrics have the names and labels that dashboards query', async () => {
  const here = await world('. { forward . 10.0.0.1 }', () => ({ ...up, reused: true }));
  await here.ask('www.example.org. A');
  const text = here.metrics();
  for (const series of [
    'coredns_proxy_request_duration_seconds_count{proxy_name="forward",rcode="NOERROR",to="10.0.0.1:53"} 1',
    'coredns_proxy_conn_cache_hits_total{proto="udp",proxy_name="forward",to="10.0.0.1:53"} 1',
    'coredns_proxy_conn_cache_misses_total{proto="udp",proxy_name="forward",to="10.0.0.1:53"} 0',
    'coredns_proxy_healthcheck_failures_total{proxy_name="forward",to="10.0.0.1:53"} 0',
    'coredns_forward_healthcheck_broken_total 0',
    'coredns_forward_max_concurrent_rejects_total 0',
    'ndots_forward_waiting_queries 0',
    'ndots_forward_timeouts_total{to="10.0.0.1:53"} 0',
    'ndots_forward_strays_total{to="10.0.0.1:53"} 0',
    'ndots_forward_paced_total{to="10.0.0.1:53"} 0',
    'ndots_forward_sockets{to="10.0.0.1:53"} 0',
  ]) {
    assert.ok(text.includes(series), `${series}\n${text}`);
  }
});
