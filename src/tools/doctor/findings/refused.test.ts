import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import type { Finding } from './finding.ts';

/** Two clients ask five names in turn. @param refusedTo the client and the name that get REFUSED */
async function refusedFor(
  refusedTo: (client: number, name: number, round: number) => boolean,
  rounds = 10,
): Promise<Finding | undefined> {
  const packets: Captured[][] = [];
  for (let round = 0; round < rounds; round++)
    for (let client = 1; client <= 2; client++)
      for (let name = 0; name < 5; name++)
        packets.push(
          asked(
            round * 1000 + client * 100 + name * 10,
            ends(`10.244.1.${client}`, 30_000 + packets.length),
            `host${name}.example${name}.com.`,
            packets.length + 1,
            { rcode: refusedTo(client, name, round) ? RCODE.REFUSED : 0 },
          ),
        );
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND4010');
}

test('names refused to one client and answered to another show a rule', async () => {
  const found = await refusedFor((client, name) => client === 1 && name < 3);
  assert.equal(found?.severity, 'critical');
  assert.match(found.seen.join(' '), /it depends on the client and the name/);
  assert.match(found.why, /policy/);
  assert.doesNotMatch(found.disproved, /another client/);
});

test('names refused to each client at times show a limit, however few', async () => {
  const found = await refusedFor((_, name, round) => (round * 5 + name) % 83 === 7, 60);
  assert.equal(found?.severity, 'warning');
  assert.match(found.why, /limit/);
});
test('refusals all the time, of any name, are those of one of several servers; in a part of the time, of a limit', async () => {
  const refused = (name: number, client: number, round: number): boolean =>
    (round * 7 + name * 3 + client) % 5 < 2;
  const always = await refusedFor((client, name, round) => refused(name, client, round), 60);
  assert.match(always?.why ?? '', /several servers in turn/);
  const atTimes = await refusedFor(
    (client, name, round) => round > 20 && round < 40 && refused(name, client, round),
    60,
  );
  assert.doesNotMatch(atTimes?.why ?? '', /several servers in turn/);
  assert.match(atTimes?.why ?? '', /limit/);
});
