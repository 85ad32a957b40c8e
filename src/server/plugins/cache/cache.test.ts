import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import type { Answer } from '../../../../test/kit/upstream.ts';
import { Query } from '../../transport/query.ts';
import { tailor } from '../../transport/reply-scope.ts';
import { makeLoop } from '../loop/loop.ts';
import { brief, cacheWorld, errorCode, soa } from './fixture.test.ts';

const a = (ttl: number, address = '192.0.2.1'): Answer => ({ answer: [`@ ${ttl} A ${address}`] });
const nxdomain: Answer = { rcode: 'NXDOMAIN', authority: [soa] };
const nodata: Answer = { authority: [soa] };

describe('hits', () => {
  test('a reply is answered from the cache until its TTL expires, and the TTL counts down in whole seconds', async () => {
    const world = await cacheWorld('cache', () => a(30));
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 30');
    await world.clock.advance(999);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 30');
    await world.clock.advance(20_001);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 9');
    assert.equal(world.asked.length, 1);
    await world.clock.advance(9000);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 30');
    assert.equal(world.asked.length, 2);
  });

  test('the key consists of name (in any case), type, class, DO and CD', async () => {
    const world = await cacheWorld('cache', (query) => ({
      answer: query.type === TYPE.TXT ? ['@ 60 TXT x'] : ['@ 60 A 192.0.2.1'],
    }));
    const count = async (question: string, options = {}): Promise<number> => {
      await world.ask(question, options);
      return world.asked.length;
    };
    assert.equal(await count('www.example.org. A'), 1);
    assert.equal(await count('WWW.example.ORG. A'), 1);
    assert.equal(await count('www.example.org. TXT'), 2);
    assert.equal(await count('www.example.org. A', { dnssecOk: true }), 3);
    assert.equal(await count('www.example.org. A', { flags: FLAG.RD | FLAG.CD }), 4);
    assert.equal(await count('ww.example.org. A'), 5);
    assert.equal(await count('www.example.org. A', { udpSize: 4000 }), 5);
    assert.equal(await count('www.example.org. A', { dnssecOk: true }), 5);
  });

  test("classes without entries are not answered from other classes' entries", async () => {
    const world = await cacheWorld('cache', () => a(60));
    for (const rclass of [0, 1, 3])
      for (const dnssecOk of [false, true])
        await world.ask('www.example.org. A', { qclass: rclass, dnssecOk });
    for (const rclass of [0x2000, 0x2001, 0x4001, 0x8003, 0xa000])
      for (const dnssecOk of [false, true]) {
        const before = world.asked.length;
        await world.ask('www.example.org. A', { qclass: rclass, dnssecOk });
        assert.equal(world.asked.length, before + 1, `class ${rclass}`);
      }
  });

  test("question and owner names follow the client's spelling", async () => {
    const world = await cacheWorld('cache', () => a(60));
    await world.ask('www.example.org. A');
    const reply = await world.ask('wWw.eXample.org. A');
    assert.equal(reply.question[0]!.name, 'wWw.eXample.org.');
    assert.equal(reply.answer[0]!.name, 'wWw.eXample.org.');
  });

  test("AA is set only on hits, RA is as stored, RD and CD are the client's", async () => {
    const world = await cacheWorld('cache', () => a(60));
    const miss = await world.ask('www.example.org. A');
    const hit = await world.ask('www.example.org. A', { flags: 0 });
    assert.deepEqual([miss.flags & FLAG.AA, hit.flags & FLAG.AA], [0, FLAG.AA]);
    assert.deepEqual([hit.flags & FLAG.RA, hit.flags & FLAG.RD], [FLAG.RA, 0]);
  });

  test('AD is requested upstream and passed to clients that set AD or DO', async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), flags: FLAG.AD }));
    assert.equal((await world.ask('www.example.org. A')).flags & FLAG.AD, 0);
    assert.equal(world.asked[0]!.upstreamFlags, FLAG.AD);
    assert.equal(
      (await world.ask('www.example.org. A', { flags: FLAG.RD | FLAG.AD })).flags & FLAG.AD,
      FLAG.AD,
    );
    assert.equal((await world.ask('www.example.org. A')).flags & FLAG.AD, 0);
  });

  test("the query's own AD is unchanged while it waits for a reply", async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), flags: FLAG.AD, afterMs: 5 }));
    assert.equal((await world.ask('www.example.org. A')).flags & FLAG.AD, 0);
  });

  test('keepttl sends the stored TTL', async () => {
    const world = await cacheWorld('cache { keepttl }', () => a(30));
    await world.ask('www.example.org. A');
    await world.clock.advance(20_000);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 30');
  });

  test("names outside the directive's zones are passed on", async () => {
    const world = await cacheWorld('cache 30 example.org 10.0.0.0/8', () => a(30));
    for (let i = 0; i < 2; i++) await world.ask('www.example.com. A');
    assert.equal(world.asked.length, 2);
    for (let i = 0; i < 2; i++) await world.ask('1.0.0.10.in-addr.arpa. A');
    assert.equal(world.asked.length, 3);
    assert.match(
      world.metrics(),
      /coredns_cache_requests_total\{server="dns:\/\/:53",view="",zones="example.org.,10.in-addr.arpa."\} 2/,
    );
  });
});

describe('TTLs', () => {
  const filled = async (lines: string, answer: Answer): Promise<string> =>
    brief(await (await cacheWorld(lines, () => answer)).ask('www.example.org. A'));

  test('the lowest TTL counts, and the first reply already uses it for all records', async () => {
    assert.equal(
      await filled('cache', {
        answer: ['@ 300 CNAME a.example.org.', 'a.example.org. 20 A 192.0.2.1'],
      }),
      'NOERROR a.example.org.,192.0.2.1 20',
    );
    assert.equal(
      await filled('cache', { ...a(300), additional: ['x.example.org. 10 A 192.0.2.9'] }),
      'NOERROR 192.0.2.1 10',
    );
  });

  test('at least 5 s, at most 3600 s, or 1800 s for denials', async () => {
    assert.equal(await filled('cache', a(0)), 'NOERROR 192.0.2.1 5');
    assert.equal(await filled('cache', a(86_400)), 'NOERROR 192.0.2.1 3600');
    assert.equal(
      await filled('cache', {
        rcode: 'NXDOMAIN',
        authority: [soa.replace(' 60 SOA', ' 9000 SOA')],
      }),
      'NXDOMAIN 1800',
    );
  });

  test("the SOA's minimum field is ignored", async () => {
    assert.equal(
      await filled('cache', { rcode: 'NXDOMAIN', authority: [soa.replace(' 60 SOA', ' 50 SOA')] }),
      'NXDOMAIN 50',
    );
  });

  test('`cache N`, and separate limits for success and denial', async () => {
    assert.equal(await filled('cache 20', a(300)), 'NOERROR 192.0.2.1 20');
    assert.equal(await filled('cache 20', nxdomain), 'NXDOMAIN 20');
    assert.equal(await filled('cache 20 { success 100 40 10 }', a(300)), 'NOERROR 192.0.2.1 40');
    assert.equal(await filled('cache { success 100 40 10 }', a(1)), 'NOERROR 192.0.2.1 10');
    assert.equal(await filled('cache { denial 100 7 }', nxdomain), 'NXDOMAIN 7');
  });

  test('minimum 0 passes a TTL of 0 through and stores nothing', async () => {
    const world = await cacheWorld('cache { success 100 40 0 }', () => a(0));
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
    await world.ask('www.example.org. A');
    assert.equal(world.asked.length, 2);
  });

  test('replies that are not stored are sent with 5 s; zone transfers are unchanged', async () => {
    assert.equal(await filled('cache', { rcode: 'REFUSED', authority: [soa] }), 'REFUSED 5');
    assert.equal(
      await filled('cache', {
        rcode: 'NXDOMAIN',
        answer: ['@ 300 CNAME gone.example.org.'],
        authority: [soa],
      }),
      'NXDOMAIN gone.example.org. 5',
    );
    const world = await cacheWorld('cache', () => ({ answer: [soa] }));
    assert.match(brief(await world.ask('example.org. AXFR', { proto: 'tcp' })), / 60$/);
  });
});

describe('what is stored', () => {
  /** Returns `kept` or `passed`, depending on whether the reply has to be requested again. */
  const fate = async (answer: Answer | null, lines = 'cache', options = {}): Promise<string> => {
    const world = await cacheWorld(lines, () => answer);
    await world.ask('www.example.org. A', options);
    await world.ask('www.example.org. A', options);
    return world.asked.length === 1 ? 'kept' : 'passed';
  };

  test('answers, denials with SOA, referrals and empty replies', async () => {
    assert.equal(await fate(a(60)), 'kept');
    assert.equal(await fate(nodata), 'kept');
    assert.equal(await fate(nxdomain), 'kept');
    assert.equal(await fate({ answer: ['@ 60 CNAME b.example.org.'], authority: [soa] }), 'kept');
    assert.equal(await fate({ authority: ['example.org. 60 NS ns.example.org.'] }), 'kept');
    assert.equal(await fate({}), 'kept');
  });

  test('not stored: incomplete chains, NXDOMAIN without SOA or after a CNAME, REFUSED, FORMERR, truncated replies, bare failures', async () => {
    assert.equal(await fate({ answer: ['@ 60 CNAME b.example.org.'] }), 'passed');
    assert.equal(await fate({ rcode: 'NXDOMAIN' }), 'passed');
    assert.equal(
      await fate({ rcode: 'NXDOMAIN', answer: ['@ 60 CNAME b.example.org.'], authority: [soa] }),
      'passed',
    );
    assert.equal(await fate({ rcode: 'REFUSED' }), 'passed');
    assert.equal(await fate({ rcode: 'FORMERR' }), 'passed');
    assert.equal(await fate({ ...a(60), flags: FLAG.TC }), 'passed');
    assert.equal(await fate(null), 'passed');
  });

  test('with DO, a reply with an expired signature is not stored', async () => {
    const signed = (until: string): Answer => ({
      answer: [
        '@ 60 A 192.0.2.1',
        `@ 60 RRSIG A 13 3 60 ${until} 20200101000000 1 example.org. AAAA`,
      ],
    });
    assert.equal(await fate(signed('20200201000000'), 'cache', { dnssecOk: true }), 'passed');
    assert.equal(await fate(signed('20300201000000'), 'cache', { dnssecOk: true }), 'kept');
  });

  test('SERVFAIL and NOTIMP for 5 s, or as long as servfail says', async () => {
    const world = await cacheWorld('cache', () => ({ rcode: 'SERVFAIL', authority: [soa] }));
    await world.ask('www.example.org. A');
    await world.clock.advance(4999);
    assert.equal(brief(await world.ask('www.example.org. A')), 'SERVFAIL 1');
    await world.clock.advance(1);
    await world.ask('www.example.org. A');
    assert.equal(world.asked.length, 2);
    assert.equal(await fate({ rcode: 'NOTIMP' }), 'kept');
    assert.equal(await fate({ rcode: 'SERVFAIL' }, 'cache { servfail 0 }'), 'passed');
  });

  test('disable excludes a kind, for some zones', async () => {
    assert.equal(await fate(nxdomain, 'cache { disable denial example.org }'), 'passed');
    assert.equal(await fate(a(60), 'cache { disable denial example.org }'), 'kept');
    assert.equal(await fate(a(60), 'cache { disable success }'), 'passed');
    assert.equal(await fate(a(60), 'cache { disable success example.com }'), 'kept');
  });

  test('a reply to another question is counted and neither stored nor sent', async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), question: 'evil.example.' }));
    for (let i = 0; i < 2; i++)
      assert.equal((await world.ask('www.example.org. A')).rcode, RCODE.SERVFAIL);
    assert.equal(world.asked.length, 2);
    assert.match(world.metrics(), /coredns_cache_drops_total\{.*\} 2/);
  });
});

describe('prefetch', () => {
  test('a popular entry is refreshed before it expires, as if over TCP', async () => {
    const world = await cacheWorld('cache { prefetch 3 1m 20% }', () => a(100));
    for (let i = 0; i < 3; i++) await world.ask('www.example.org. A');
    await world.clock.advance(79_000);
    await world.clock.advance(500);
    for (let i = 0; i < 3; i++) await world.ask('www.example.org. A');
    assert.equal(
      world.asked.length,
      1,
      'the gap was too long: counting began anew, and 21 s are left',
    );
    await world.clock.advance(1000);
    await world.ask('www.example.org. A');
    await world.clock.advance(0);
    assert.equal(world.asked.length, 2);
    assert.equal(world.asked[1]!.proto, 'tcp');
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 100');
    assert.match(world.metrics(), /coredns_cache_prefetch_total\{.*\} 1/);
  });

  test('refreshes one at a time, while hits are counted', async () => {
    const world = await cacheWorld('cache { prefetch 1 1h 90% }', () => ({
      ...a(10),
      afterMs: 100,
    }));
    await world.ask('www.example.org. A');
    await world.clock.advance(2000);
    for (let i = 0; i < 5; i++) await world.ask('www.example.org. A');
    await world.clock.advance(200);
    assert.equal(world.asked.length, 2);
    await world.clock.advance(2000);
    await world.ask('www.example.org. A');
    await world.clock.advance(200);
    assert.equal(world.asked.length, 3);
  });

  test('at most a thousand refreshes run at once, and postponed ones are counted', async () => {
    let asked = 0;
    const world = await cacheWorld('cache { prefetch 1 1h 90% }', () => ({
      ...a(10),
      afterMs: ++asked > 1010 ? 1e6 : 0,
    }));
    const names = Array.from({ length: 1010 }, (_, i) => `n${i}.example.org. A`);
    for (const name of names) await world.ask(name);
    await world.clock.advance(2000);
    for (const name of names) await world.ask(name);
    await world.clock.advance(10);
    assert.equal(world.asked.length, 2010);
    assert.match(world.metrics(), /^ndots_cache_refresh_rejects_total\{.*\} 10$/m);
    await world.close();
  });
});

describe('replies that are not stored', () => {
  const aliased = ['@ 3600 CNAME x.example.org.', 'x.example.org. 3600 CNAME @'];
  const data = ['@ 3600 A 192.0.2.1', 'x.example.org. 3600 A 192.0.2.2'];
  const expired = '@ 3600 RRSIG A 13 2 3600 20210101000000 20200101000000 1 example.org. AAAA';
  const rows: readonly (readonly [what: string, answer: Answer, ttl: number])[] = [
    ['an alias that leads nowhere', { answer: ['@ 3600 CNAME x.example.org.'] }, 3600],
    [
      'NXDOMAIN without SOA',
      { rcode: 'NXDOMAIN', authority: ['example.org. 3600 NS ns.example.org.'] },
      1800,
    ],
    ['an expired signature', { answer: ['@ 3600 A 192.0.2.1', expired] }, 3600],
    ['a reply that was cut', { answer: ['@ 3600 A 192.0.2.1'], flags: FLAG.TC }, 3600],
    ['two aliases', { answer: ['@ 3600 CNAME y.example.org.', aliased[0]!, ...data] }, 3600],
    ['aliases in a circle, beside data', { answer: [...aliased, ...data] }, 3600],
    [
      'NXDOMAIN behind an alias',
      { rcode: 'NXDOMAIN', answer: ['@ 3600 CNAME x.example.org.'], authority: [soa] },
      5,
    ],
    ['REFUSED', { rcode: 'REFUSED', authority: [soa] }, 5],
  ];
  for (const [what, answer, ttl] of rows)
    test(`${what}: queried again and sent with TTL ${ttl}, as by CoreDNS`, async () => {
      const world = await cacheWorld('cache', () => answer);
      for (let i = 1; i <= 2; i++) {
        const reply = await world.ask('www.example.org. A', { dnssecOk: true });
        const records = [...reply.answer, ...reply.authority];
        assert.deepEqual([...new Set(records.map((record) => record.ttl))], [ttl]);
        assert.equal(world.asked.length, i);
      }
    });

  test("the directive's TTL limits apply to them too", async () => {
    const world = await cacheWorld('cache 30', () => ({ answer: ['@ 3600 CNAME x.example.'] }));
    assert.equal((await world.ask('www.example.org. A')).answer[0]!.ttl, 30);
  });
});

test('the reserved bit in a reply is not stored', async () => {
  const z = 0x40;
  const world = await cacheWorld('cache', () => ({ ...a(60), flags: z | FLAG.AD }));
  await world.ask('www.example.org. A');
  const hit = await world.ask('www.example.org. A', { dnssecOk: false, flags: 0x0120 });
  assert.equal(world.asked.length, 1);
  assert.equal(hit.flags & z, 0);
  assert.equal(hit.flags & FLAG.AD, FLAG.AD);
});

describe('serve_stale', () => {
  test('verify: a refresh with an expired signature does not replace the stale reply', async () => {
    const signed = (until: string): string[] => [
      '@ 10 A 192.0.2.1',
      `@ 10 RRSIG A 13 2 10 ${until} 20200101000000 1 example.org. AAAA`,
    ];
    let answer = signed('20300101000000');
    const world = await cacheWorld('cache { serve_stale 1h verify }', () => ({ answer }));
    await world.ask('www.example.org. A', { dnssecOk: true });
    await world.clock.advance(20_000);
    answer = signed('20210101000000');
    const reply = await world.ask('www.example.org. A', { dnssecOk: true });
    assert.equal(errorCode(reply), 3);
    assert.deepEqual(
      reply.answer.map(({ ttl }) => ttl),
      [0, 0],
    );
  });

  test('verify: with prefer_positive, a dangling alias does not replace stale data', async () => {
    let answer: Answer = a(10);
    const world = await cacheWorld(
      'cache { serve_stale 1h verify; serve_stale_policy prefer_positive }',
      () => answer,
    );
    await world.ask('www.example.org. A');
    await world.clock.advance(20_000);
    answer = { answer: ['@ 60 CNAME x.example.org.'] };
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
  });

  test('immediate: the stale reply is sent at once with TTL 0 and an extended error, and refreshed in the background', async () => {
    let address = '192.0.2.1';
    const world = await cacheWorld('cache { serve_stale }', () => ({
      ...a(10, address),
      afterMs: 50,
    }));
    await world.ask('www.example.org. A');
    address = '192.0.2.2';
    await world.clock.advance(20_000);
    const began = world.clock.now();
    const stale = await world.ask('www.example.org. A', { edns: true });
    assert.equal(world.clock.now(), began);
    assert.equal(brief(stale), 'NOERROR 192.0.2.1 0');
    assert.equal(errorCode(stale), 3);
    await world.clock.advance(100);
    const fresh = await world.ask('www.example.org. A', { edns: true });
    assert.equal(brief(fresh), 'NOERROR 192.0.2.2 10');
    assert.equal(errorCode(fresh), null);
    assert.match(world.metrics(), /coredns_cache_served_stale_total\{.*\} 1/);
  });

  test('stale replies end after DURATION, and SERVFAIL is never served stale', async () => {
    const world = await cacheWorld('cache { serve_stale 30s }', () => a(10));
    await world.ask('www.example.org. A');
    await world.clock.advance(41_000);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 10');
    const failing = await cacheWorld('cache { serve_stale }', () => ({ rcode: 'SERVFAIL' }));
    await failing.ask('www.example.org. A');
    await failing.clock.advance(6000);
    await failing.ask('www.example.org. A');
    assert.equal(failing.asked.length, 2);
  });

  test('a failed refresh leaves the stale reply in place, and RECHECK is the pause between attempts', async () => {
    let dead = false;
    const world = await cacheWorld('cache { serve_stale 1h immediate 7s 30s }', () =>
      dead ? { rcode: 'SERVFAIL' } : a(10),
    );
    await world.ask('www.example.org. A');
    dead = true;
    await world.clock.advance(20_000);
    for (let i = 0; i < 20; i++) {
      assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 7');
      await world.clock.advance(2000);
    }
    assert.equal(world.asked.length, 3);
  });

  test('verify queries first, and only a good reply replaces the stale one', async () => {
    let answer: Answer = a(10);
    const world = await cacheWorld('cache { serve_stale 1h verify }', () => answer);
    await world.ask('www.example.org. A');
    await world.clock.advance(20_000);
    answer = { rcode: 'SERVFAIL', afterMs: 700 };
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
    await world.clock.advance(20_000);
    answer = { ...nxdomain, afterMs: 700 };
    assert.equal(brief(await world.ask('www.example.org. A')), 'NXDOMAIN 60');
  });

  test('verify TIMEOUT: the stale reply is sent after that, while the query continues', async () => {
    let address = '192.0.2.1';
    const world = await cacheWorld('cache { serve_stale 1h verify 200ms }', () => ({
      ...a(10, address),
      afterMs: 1000,
    }));
    await world.ask('www.example.org. A');
    address = '192.0.2.2';
    await world.clock.advance(20_000);
    const began = world.clock.now();
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
    assert.equal(world.clock.now() - began, 200);
    await world.clock.advance(1000);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.2 10');
  });

  test('verify TIMEOUT: a fresh reply in time is sent from its new entry, with AA', async () => {
    const world = await cacheWorld('cache { serve_stale 1h verify 200ms }', () => ({
      ...a(10),
      afterMs: 100,
    }));
    const first = await world.ask('www.example.org. A');
    assert.equal(first.flags & FLAG.AA, 0);
    await world.clock.advance(20_000);
    const verified = await world.ask('www.example.org. A');
    assert.equal(brief(verified), 'NOERROR 192.0.2.1 10');
    assert.equal(verified.flags & FLAG.AA, FLAG.AA);
  });

  test('prefer_positive prefers stale data to fresh denials, for all types', async () => {
    let answer: Answer = a(10);
    const world = await cacheWorld(
      'cache { serve_stale 1h; serve_stale_policy prefer_positive }',
      () => answer,
    );
    await world.ask('www.example.org. A');
    await world.clock.advance(20_000);
    answer = nxdomain;
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
    await world.clock.advance(10);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 0');
    assert.equal((await world.ask('www.example.org. AAAA')).rcode, RCODE.NOERROR);
  });

  test('without the policy a fresh denial replaces stale data', async () => {
    let answer: Answer = a(10);
    const world = await cacheWorld('cache { serve_stale 1h }', () => answer);
    await world.ask('www.example.org. A');
    await world.clock.advance(20_000);
    answer = nxdomain;
    await world.ask('www.example.org. A');
    await world.clock.advance(10);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NXDOMAIN 60');
  });
});

describe('coalescing', () => {
  test('identical queries are sent once, regardless of how many wait', async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), afterMs: 100 }));
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        world.ask(i % 2 ? 'www.example.org. A' : 'WWW.example.org. A'),
      ),
    );
    assert.equal(world.asked.length, 1);
    assert.deepEqual(new Set(replies.map(brief)), new Set(['NOERROR 192.0.2.1 60']));
    assert.match(world.metrics(), /ndots_cache_coalesced_total\{.*\} 9/);
  });

  test('queries that waited for a reply specific to another client are sent separately', async () => {
    const world = await cacheWorld('cache', (query) => {
      tailor(query);
      return { ...a(60, `192.0.2.${query.peer[query.peerAt + 3]}`), afterMs: 100 };
    });
    const clients = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
    for (let round = 1; round <= 2; round++) {
      const replies = await Promise.all(
        clients.map((client) => world.ask('www.example.org. A', { client })),
      );
      assert.deepEqual(
        replies.map(brief),
        [1, 2, 3].map((last) => `NOERROR 192.0.2.${last} 60`),
      );
      assert.equal(world.asked.length, 3 * round, 'nothing is cached');
    }
  });

  test('streams and datagrams do not share replies, because a truncated reply is useless for a stream', async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), afterMs: 100 }));
    await Promise.all([
      world.ask('www.example.org. A'),
      world.ask('www.example.org. A', { proto: 'tcp' }),
    ]);
    assert.equal(world.asked.length, 2);
  });

  test('beyond the limit, queries get SERVFAIL with a reason; 0 lets each query be sent separately', async () => {
    const world = await cacheWorld('cache { coalesce 1 }', () => ({ ...a(60), afterMs: 100 }));
    const replies = await Promise.all(
      [1, 2, 3].map(() => world.ask('www.example.org. A', { edns: true })),
    );
    assert.deepEqual(
      replies.map(({ rcode }) => rcode),
      [0, 0, RCODE.SERVFAIL],
    );
    assert.equal(errorCode(replies[2]!), 0);
    const alone = await cacheWorld('cache { coalesce 0 }', () => ({ ...a(60), afterMs: 100 }));
    await Promise.all([1, 2, 3].map(() => alone.ask('www.example.org. A')));
    assert.equal(alone.asked.length, 3);
  });

  test('when no more queries may wait, cached entries are still answered, and identical queries do not wait', async () => {
    const world = await cacheWorld('cache { serve_stale 1h verify }', (query) => ({
      ...a(10),
      ...(query.name.startsWith('slow') && { afterMs: 100 }),
    }));
    const none = { mayWait: false };
    await world.ask('kept.example.org. A');
    assert.equal(brief(await world.ask('kept.example.org. A', none)), 'NOERROR 192.0.2.1 10');
    const [first, second] = await Promise.all([
      world.ask('slow.example.org. A'),
      world.ask('slow.example.org. A', none),
    ]);
    assert.deepEqual([first!.rcode, second!.rcode], [RCODE.NOERROR, RCODE.REFUSED]);
    await world.clock.advance(20_000);
    assert.equal(brief(await world.ask('slow.example.org. A', none)), 'NOERROR 192.0.2.1 0');
  });

  test("loop's probe is never delayed, because loop has to see it return; other HINFO queries are", async () => {
    let probe = '';
    const loop = makeLoop((message) => {
      const query = new Query();
      query.read(message, 0, message.length);
      probe = query.name;
      return new Promise(() => {});
    });
    const world = await cacheWorld('cache', () => ({ ...a(60), afterMs: 50 }), '.', loop);
    await Promise.all([1, 2, 3].map(() => world.ask(`${probe} HINFO`)));
    assert.equal(world.asked.length, 3);
    await Promise.all([1, 2, 3].map(() => world.ask('1.2.example.org. HINFO')));
    assert.equal(world.asked.length, 4);
  });

  test('all waiting queries get a failure, and the next query is sent', async () => {
    let dead = true;
    const world = await cacheWorld('cache', () =>
      dead ? { rcode: 'REFUSED', afterMs: 100 } : a(60),
    );
    const replies = await Promise.all([1, 2, 3].map(() => world.ask('www.example.org. A')));
    assert.deepEqual(
      replies.map(({ rcode }) => rcode),
      [5, 5, 5],
    );
    dead = false;
    assert.equal((await world.ask('www.example.org. A')).rcode, RCODE.NOERROR);
  });
});

describe('the directive', () => {
  const refusal = async (lines: string): Promise<string> => {
    try {
      await cacheWorld(lines, () => a(60));
    } catch (error) {
      return (error as Error).message;
    }
    return 'it started';
  };

  test('serve_stale modes and policies are case-insensitive', async () => {
    for (const words of ['1h VERIFY 1s', '1h Immediate 4294967295s'])
      assert.equal(
        await refusal(`cache { serve_stale ${words}; serve_stale_policy PREFER_Positive }`),
        'it started',
      );
  });

  test('errors are reported', async () => {
    assert.match(await refusal('cache 0'), /cache TTL can not be zero or negative: 0/);
    assert.match(await refusal('cache -1'), /cache TTL can not be zero or negative: -1/);
    assert.match(
      await refusal('cache { success 100 0 }'),
      /cache TTL can not be zero or negative: 0/,
    );
    assert.match(
      await refusal('cache { denial 100 5 -1 }'),
      /cache min TTL can not be negative: -1/,
    );
    assert.match(await refusal('cache { prefetch -1 }'), /prefetch amount should be positive: -1/);
    assert.match(
      await refusal('cache { prefetch 1 1m 5% }'),
      /percentage should fall in range \[10, 90\]: 5/,
    );
    assert.match(
      await refusal('cache { prefetch 1 1m 10 }'),
      /last character of percentage should be `%`/,
    );
    assert.match(
      await refusal('cache { servfail 6m }'),
      /caching SERVFAIL responses over 5 minutes is not permitted: 6m/,
    );
    assert.match(
      await refusal('cache { servfail -1s }'),
      /invalid negative ttl for servfail '-1s'/,
    );
    assert.match(
      await refusal('cache { serve_stale -1s }'),
      /invalid negative duration for serve_stale '-1s'/,
    );
    assert.match(
      await refusal('cache { serve_stale 1h later }'),
      /invalid value for serve_stale refresh mode: later/,
    );
    for (const [words, told] of [
      ['1h verify 1s 1s 6m', /serve_stale failure recheck cannot exceed 5 minutes/],
      ['20', /time: missing unit in duration "20"/],
      ['1h verify x', /invalid serve_stale verify timeout: time: invalid duration "x"/],
      ['1h verify -1s', /invalid negative timeout for serve_stale verify '-1s'/],
      ['1h immediate 1500ms', /serve_stale response TTL must be a whole number of seconds/],
      ['1h immediate 4294967296s', /serve_stale response TTL exceeds the DNS TTL range/],
      ['1h immediate 1s 1s 1s', /Wrong argument count/],
    ] as const)
      assert.match(await refusal(`cache { serve_stale ${words} }`), told);
    assert.match(
      await refusal('cache { serve_stale_policy prefer_positive }'),
      /serve_stale_policy requires serve_stale/,
    );
    assert.match(
      await refusal(
        'cache { serve_stale; serve_stale_policy prefer_positive; serve_stale_policy prefer_positive }',
      ),
      /serve_stale_policy can only be specified once/,
    );
    assert.match(
      await refusal('cache { serve_stale; serve_stale_policy always }'),
      /invalid serve_stale_policy: always/,
    );
    assert.match(
      await refusal('cache { success 100 60 4294967296 }'),
      /cache min TTL can not exceed 2147483647/,
    );
    assert.match(await refusal('cache { disable all }'), /unknown value 'all'/);
    assert.match(await refusal('cache { max_bytes 1kB }'), /not a size|SIZE must be/);
    assert.match(await refusal('cache { max_bytes 5GiB }'), /SIZE must be in range \[1MiB, 4GiB\]/);
    for (const fits of ['1MiB', '64MB', '4GiB']) {
      assert.equal(await refusal(`cache { max_bytes ${fits} }`), 'it started');
    }
    assert.match(await refusal('cache { sucess 100 }'), /unknown property 'sucess'/);
    assert.match(
      await refusal('cache; cache'),
      /this plugin can only be used once per Server Block/,
    );
  });

  test('entries, hits, misses and requests are counted under the names dashboards query', async () => {
    const world = await cacheWorld('cache', (query) =>
      query.name.startsWith('gone') ? nxdomain : a(60),
    );
    await world.ask('www.example.org. A');
    await world.ask('www.example.org. A');
    await world.ask('gone.example.org. A');
    await world.ask('gone.example.org. A');
    const text = world.metrics();
    for (const series of [
      'coredns_cache_entries{server="dns://:53",type="success",view="",zones="."} 1',
      'coredns_cache_entries{server="dns://:53",type="denial",view="",zones="."} 1',
      'coredns_cache_hits_total{server="dns://:53",type="success",view="",zones="."} 1',
      'coredns_cache_hits_total{server="dns://:53",type="denial",view="",zones="."} 1',
      'coredns_cache_misses_total{server="dns://:53",view="",zones="."} 2',
      'coredns_cache_requests_total{server="dns://:53",view="",zones="."} 4',
      'coredns_cache_evictions_total{server="dns://:53",type="success",view="",zones="."} 0',
      'ndots_cache_bytes{server="dns://:53",view="",zones="."} 65536',
    ]) {
      assert.ok(text.includes(series), `${series}\n${text}`);
    }
    assert.ok(await world.server.reload());
    await world.ask('www.example.org. A');
    assert.match(
      world.metrics(),
      /coredns_cache_entries\{server="dns:\/\/:53",type="success",view="",zones="."\} 1/,
    );
    assert.match(
      world.metrics(),
      /coredns_cache_entries\{server="dns:\/\/:53",type="denial",view="",zones="."\} 0/,
    );
  });

  test('a reply that arrives after its cache was replaced does not count as an entry', async () => {
    const world = await cacheWorld('cache', () => ({ ...a(60), afterMs: 50 }));
    const [, taken] = await Promise.all([world.ask('late.example.org. A'), world.server.reload()]);
    assert.ok(taken);
    assert.match(
      world.metrics(),
      /coredns_cache_entries\{server="dns:\/\/:53",type="success",view="",zones="."\} 0/,
    );
    assert.match(world.metrics(), /ndots_cache_bytes\{[^}]*\} 0/);
  });
});

describe('capacities', () => {
  test('below one, they mean the smallest cache, as in CoreDNS, and a warning explains how to disable caching', async () => {
    const world = await cacheWorld('cache {\n success 0\n denial -5\n}', () => a(60));
    assert.match(
      world.log.join('\n'),
      /cache: success 0 is raised to 1024 entries, the smallest possible cache/,
    );
    assert.match(world.log.join('\n'), /To store none, write: disable denial/);
    await world.ask('www.example.org. A');
    await world.ask('www.example.org. A');
    assert.equal(world.asked.length, 1);
  });
});
