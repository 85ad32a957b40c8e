import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG, RCODE, typeName } from '../../wire/iana.ts';

const worldWith = (properties: string): Promise<World> =>
  makeWorld(`.:53 {\n erratic {\n${properties}\n}\n}`);

/** Returns the query results: `-` for no reply, `t` for truncated, `.` for answered. */
async function pattern(world: World, count: number): Promise<string> {
  let seen = '';
  for (let i = 0; i < count; i++) {
    const reply = await world.tryAsk('example.org. A');
    seen += reply === null ? '-' : (reply.flags & FLAG.TC) !== 0 ? 't' : '.';
  }
  return seen;
}

describe('erratic', () => {
  test('without options it drops every second query, including the first', async () => {
    const world = await makeWorld('.:53 {\n erratic\n}');
    assert.equal(await pattern(world, 6), '-.-.-.');
    await world.close();
  });

  test('drop 3 drops every third query, drop 0 none', async () => {
    const three = await worldWith('drop 3');
    assert.equal(await pattern(three, 7), '-..-..-');
    await three.close();
    const none = await worldWith('drop 0');
    assert.equal(await pattern(none, 3), '...');
    await none.close();
  });

  test('truncate disables the default drop and uses bits', async () => {
    const world = await worldWith('truncate');
    assert.equal(await pattern(world, 8), 'tt..tt..');
    await world.close();
    const both = await worldWith('truncate 2\ndrop 2');
    assert.equal(await pattern(both, 4), '-t-.');
    await both.close();
  });

  test('delay waits 100ms before every second reply', async () => {
    const world = await worldWith('delay');
    const times: number[] = [];
    for (let i = 0; i < 4; i++) {
      const before = world.clock.now();
      await world.ask('example.org. A');
      times.push(world.clock.now() - before);
    }
    assert.deepEqual(times, [100, 0, 100, 0]);
    await world.close();
  });

  test('A, AAAA and transfers are answered, and everything else gets SERVFAIL', async () => {
    const world = await worldWith('drop 0');
    const types = async (type: string): Promise<readonly string[]> =>
      (await world.ask(`Example.org. ${type}`)).answer.map((record) => typeName(record.type));
    assert.match(
      await world.dig('Example.org. A'),
      /^Example\.org\.\s+0\s+IN\s+A\s+192\.0\.2\.53$/m,
    );
    assert.match(
      await world.dig('Example.org. AAAA'),
      /^Example\.org\.\s+0\s+IN\s+AAAA\s+2001:db8::53$/m,
    );
    assert.deepEqual(await types('AXFR'), ['SOA', 'NS', 'NS', 'AAAA', 'AAAA', 'SOA']);
    assert.equal((await world.ask('example.org. TXT')).rcode, RCODE.SERVFAIL);
    await world.close();
  });

  test('a truncated transfer lacks its end, and large repeats answers thirty times', async () => {
    const world = await worldWith('truncate\nlarge');
    assert.equal((await world.ask('example.org. AXFR')).answer.length, 5);
    assert.equal((await world.ask('example.org. A', { proto: 'tcp' })).answer.length, 30);
    await world.close();
  });

  test("errors have CoreDNS's words", async () => {
    await assert.rejects(worldWith('drop -1'), /illegal amount value given "-1"/);
    await assert.rejects(worldWith('delay 1 1s 1s'), /Wrong argument count/);
    await assert.rejects(worldWith('shrink 1'), /unknown property 'shrink'/);
  });
});
