import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sleep } from '../../base/clock.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery } from '../../transport/query.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { cacheLink } from '../../../../test/kit/filled-cache.ts';
import { replyBytes, type Answer } from '../../../../test/kit/upstream.ts';
import { brief, cacheWorld, soa } from './fixture.test.ts';

const data: Answer = { answer: ['@ 60 A 192.0.2.1'] };
const alias: Answer = { answer: ['@ 20 CNAME lb.example.org.'], authority: [soa] };
const nxdomain: Answer = { rcode: 'NXDOMAIN', authority: [soa] };
const nodata: Answer = { authority: [soa] };

describe('a name exists for all its types or for none', () => {
  test('NXDOMAIN for one type answers every type', async () => {
    const world = await cacheWorld('cache', () => nxdomain);
    await world.ask('gone.example.org. A');
    for (const type of ['AAAA', 'MX', 'TXT', 'HTTPS'])
      assert.equal(brief(await world.ask(`gone.example.org. ${type}`)), 'NXDOMAIN 60');
    assert.equal(world.asked.length, 1);
    await world.ask('x.gone.example.org. A');
    assert.equal(world.asked.length, 2, 'names below it are names of their own');
  });

  for (const type of ['AXFR', 'IXFR']) {
    test(`${type} for a name known to be missing is refused by a plugin without the zone, as if it were uncached`, async () => {
      const world = await cacheWorld('cache', (query) =>
        query.type === TYPE.A ? nxdomain : { rcode: 'REFUSED' },
      );
      await world.ask('gone.example.org. A');
      assert.equal(brief(await world.ask(`gone.example.org. ${type}`)), 'REFUSED');
      assert.equal(brief(await world.ask(`gone.example.org. ${type}`)), 'REFUSED');
      assert.equal(world.asked.length, 3, 'each was handed on');
      assert.equal(brief(await world.ask('gone.example.org. AAAA')), 'NXDOMAIN 60');
    });
  }

  test('while there is data, NXDOMAIN for another type is read as no data and expires with the data', async () => {
    const world = await cacheWorld('cache', (query) => (query.type === TYPE.A ? data : nxdomain));
    await world.ask('www.example.org. A');
    await world.clock.advance(40_500);
    assert.equal(brief(await world.ask('www.example.org. AAAA')), 'NOERROR 20');
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 20');
    await world.clock.advance(19_499);
    assert.equal(brief(await world.ask('www.example.org. AAAA')), 'NOERROR 1');
    assert.equal(world.asked.length, 2);
    await world.clock.advance(1);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 192.0.2.1 60');
  });

  test('data for one type ends NXDOMAIN for all types', async () => {
    let answer: Answer = nxdomain;
    const world = await cacheWorld('cache 30', () => answer);
    await world.ask('new.example.org. A');
    await world.clock.advance(30_000);
    answer = data;
    await world.ask('new.example.org. A');
    answer = nodata;
    assert.equal(brief(await world.ask('new.example.org. AAAA')), 'NOERROR 30');
  });

  test('a name without data disappears: its entries expire together after 5 s, and then NXDOMAIN applies', async () => {
    let answer: Answer = nodata;
    const world = await cacheWorld('cache', () => answer);
    await world.ask('www.example.org. AAAA');
    answer = nxdomain;
    await world.clock.advance(10_000);
    assert.equal(brief(await world.ask('www.example.org. A')), 'NOERROR 5');
    assert.equal(brief(await world.ask('www.example.org. AAAA')), 'NOERROR 5');
    await world.clock.advance(5000);
    assert.equal(brief(await world.ask('www.example.org. AAAA')), 'NXDOMAIN 60');
    assert.equal(brief(await world.ask('www.example.org. A')), 'NXDOMAIN 60');
  });

  test('entries that depend on each other do not keep a deleted name alive', async () => {
    let answer: Answer = nodata;
    const world = await cacheWorld('cache', () => answer);
    await world.ask('www.example.org. AAAA');
    answer = nxdomain;
    let alive = 0;
    for (let i = 0; i < 300; i++) {
      await world.clock.advance(100);
      const { rcode } = await world.ask(`www.example.org. ${['A', 'AAAA', 'MX'][i % 3]}`);
      if (rcode === RCODE.NOERROR) alive = i;
    }
    assert.ok(alive <= 51, `alive after ${alive / 10} s`);
  });

  test('a concurrent pair agrees even if the replies contradict each other', async () => {
    for (const first of [TYPE.A, TYPE.AAAA]) {
      const world = await cacheWorld('cache', (query) => ({
        ...(query.type === TYPE.A ? data : nxdomain),
        afterMs: query.type === first ? 10 : 30,
      }));
      const [a, aaaa] = await Promise.all([
        world.ask('www.example.org. A'),
        world.ask('www.example.org. AAAA'),
      ]);
      assert.deepEqual([brief(a!), aaaa!.rcode], ['NOERROR 192.0.2.1 60', RCODE.NOERROR]);
    }
  });

  test("NXDOMAIN waits for the name's other type, but at most 100 ms", async () => {
    for (const [otherMs, landsAt] of [
      [60, 60],
      [3000, 110],
    ] as const) {
      const clock = new VirtualClock();
      const link = cacheLink(
        'cache',
        (query) => {
          const bytes = replyBytes(query, nxdomain);
          const reply = fromUpstream(bytes, 0, bytes.length, 'test');
          if (reply instanceof Error) throw reply;
          return sleep(clock, query.type === TYPE.A ? 10 : otherMs).then(() => reply);
        },
        clock,
      );
      let landed = -1;
      void Promise.resolve(link(makeQuery(parseName('gone.example.org.'), TYPE.A))).then(() => {
        landed = clock.now();
      });
      void link(makeQuery(parseName('gone.example.org.'), TYPE.AAAA));
      await clock.advance(5000);
      assert.equal(landed, landsAt);
    }
  });

  test('a signed denial is accepted at once', async () => {
    const sig = '@ 60 RRSIG SOA 13 2 60 20300101000000 20250101000000 1 example.org. AAAA';
    let answer: Answer = data;
    const world = await cacheWorld('cache', () => answer);
    await world.ask('www.example.org. A', { dnssecOk: true });
    answer = { rcode: 'NXDOMAIN', authority: [soa, sig] };
    assert.equal(
      (await world.ask('www.example.org. AAAA', { dnssecOk: true })).rcode,
      RCODE.NXDOMAIN,
    );
    assert.equal((await world.ask('www.example.org. A', { dnssecOk: true })).rcode, RCODE.NXDOMAIN);
  });

  test('an uncached NXDOMAIN (without SOA, or after a CNAME) agrees with the cache too', async () => {
    const world = await cacheWorld('cache', (query) => {
      if (query.type === TYPE.A) return data;
      return query.type === TYPE.AAAA
        ? { rcode: 'NXDOMAIN' }
        : { rcode: 'NXDOMAIN', answer: alias.answer!, authority: [soa] };
    });
    await world.ask('www.example.org. A');
    assert.equal((await world.ask('www.example.org. AAAA')).rcode, RCODE.NOERROR);
    assert.equal((await world.ask('www.example.org. TXT')).rcode, RCODE.NOERROR);
  });

  test('the scenario: A lives 8 s, AAAA (an alias without an address) 20 s, and every other lookup is denied', async () => {
    // For one and the same name, the search path is sometimes completed (for both clients in the scenario) and
    // sometimes not.
    let completes = true;
    const world = await cacheWorld('cache 30', (query) => {
      if (!completes) return nxdomain;
      return query.type === TYPE.A ? { answer: ['@ 8 A 192.0.2.1'] } : alias;
    });
    let disagreed = 0;
    let missing = 0;
    for (let second = 0; second < 3600; second += 5) {
      completes = Math.floor(second / 35) % 2 === 0;
      const order = (second / 5) % 3 === 0 ? ['A', 'AAAA'] : ['AAAA', 'A'];
      const replies = await Promise.all(order.map((type) => world.ask(`api.example.org. ${type}`)));
      if (replies[0]!.rcode !== replies[1]!.rcode) disagreed++;
      if (replies[0]!.rcode === RCODE.NXDOMAIN) missing++;
      await world.clock.advance(5000);
    }
    assert.equal(disagreed, 0);
    assert.ok(missing > 0, 'the denial is seen at times');
  });
});
