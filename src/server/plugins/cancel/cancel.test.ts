import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { RCODE } from '../../wire/iana.ts';

const corefile = (timeout: string, delay: string): string =>
  `.:53 {\n cancel ${timeout}\n erratic {\n delay 1 ${delay}\n }\n}`;

describe('cancel', () => {
  test('a query without a reply in time gets SERVFAIL', async () => {
    const world = await makeWorld(corefile('', '6s'));
    const asked = world.ask('example.org.');
    assert.equal((await asked).rcode, RCODE.SERVFAIL);
    assert.equal(world.clock.now(), 5001);
    assert.match(world.metrics(), /^ndots_cancel_expired_total 1$/m);
    await world.close();
  });

  test('a reply in time is passed on and leaves no timer', async () => {
    const world = await makeWorld(corefile('1s', '999ms'));
    assert.equal((await world.ask('example.org.')).rcode, RCODE.NOERROR);
    await world.clock.advance(0);
    assert.equal(world.clock.pending, 0);
    await world.close();
  });

  test("errors use CoreDNS's wording", async () => {
    await assert.rejects(makeWorld(corefile('5', '1s')), /invalid duration: "5"/);
    await assert.rejects(makeWorld(corefile('-1s', '1s')), /invalid negative duration: "-1s"/);
    await assert.rejects(makeWorld(corefile('1s 2s', '1s')), /Wrong argument count/);
  });
});
