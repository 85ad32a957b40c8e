import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RCODE } from '../../wire/iana.ts';
import type { Answer } from '../../../../test/kit/upstream.ts';
import { cacheWorld, soa } from './fixture.test.ts';

const ttl = (seconds: number): string => soa.replace(' 60 SOA', ` ${seconds} SOA`);

const answer: fc.Arbitrary<Answer> = fc
  .tuple(fc.constantFrom('data', 'alias', 'nodata', 'nxdomain'), fc.integer({ min: 0, max: 40 }))
  .map(([kind, seconds]): Answer => {
    switch (kind) {
      case 'data':
        return {
          answer: [
            `@ ${seconds} TXT x`,
            `@ ${seconds} A 192.0.2.1`,
            `@ ${seconds} AAAA 2001:db8::1`,
          ],
        };
      case 'alias':
        return { answer: [`@ ${seconds} CNAME b.example.org.`], authority: [ttl(seconds)] };
      case 'nodata':
        return { authority: [ttl(seconds)] };
      default:
        return { rcode: 'NXDOMAIN', authority: [ttl(seconds)] };
    }
  });

const step = fc.record({
  waitMs: fc.integer({ min: 0, max: 9000 }),
  order: fc.shuffledSubarray(['A', 'AAAA', 'TXT'], { minLength: 2 }),
  answers: fc.array(answer, { minLength: 3, maxLength: 3 }),
});

test('all types of a name agree about its existence at any time, even if the upstreams disagree', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 25 }),
      fc.boolean(),
      async (steps, prefetch) => {
        let next = 0;
        let answers: readonly Answer[] = [];
        const world = await cacheWorld(
          prefetch ? 'cache { prefetch 1 1m 50% }' : 'cache',
          () => answers[next++ % answers.length]!,
        );
        for (const { waitMs, order, answers: given } of steps) {
          answers = given;
          await world.clock.advance(waitMs);
          const rcodes = [];
          for (const type of order)
            rcodes.push((await world.ask(`www.example.org. ${type}`)).rcode);
          assert.equal(new Set(rcodes).size, 1, `${order.join()}: ${rcodes.join()}`);
          assert.ok(rcodes.every((rcode) => rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN));
        }
        await world.close();
      },
    ),
    { numRuns: 60 },
  );
});
