import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/base/random.ts';
import { namesIn, randomBlock, type RandomBlock } from '../kit/beside/corefiles.ts';
import { differences } from '../kit/beside/differences.ts';
import { exchange } from '../kit/beside/exchange.ts';
import { randomQuery } from '../kit/beside/queries.ts';
import { hosts, startServer } from '../kit/beside/servers.ts';
import { startUpstream } from '../kit/beside/upstream.ts';
import { corednsPath } from '../kit/etcd.ts';

/**
 * Random Corefiles, served by CoreDNS and by ndots and asked the same random queries: what differs and is not told of in
 * docs/coredns.md fails. `COREFILES_SECONDS` is how long, `COREFILES_SEED` which; a difference names the seed of its batch.
 */

const program = corednsPath();
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const seed = Number(process.env['COREFILES_SEED'] ?? '1');

/** Server blocks that one pair of processes serves, and queries for each. */
const BLOCKS = 12;
const QUERIES = 60;

describe(
  'random Corefiles beside CoreDNS',
  { skip: program === null && 'CoreDNS is not there (COREDNS=FILE)' },
  () => {
    const stops: (() => void)[] = [];
    before(async () => {
      for (const address of ['127.0.0.53', '127.0.0.54'])
        stops.push(await startUpstream(address, 5300));
    });
    after(() => stops.forEach((stop) => stop()));

    test(
      'the same replies, but for what is told of',
      { timeout: (seconds + 120) * 1000 },
      async (t) => {
        const found: string[] = [];
        let asked = 0;
        for (let batch = seed, end = Date.now() + seconds * 1000; Date.now() < end; batch++) {
          const folder = mkdtempSync(join(tmpdir(), 'ndots-corefiles-'));
          const random = seededRandom(batch * 7919);
          const upstreams = ['127.0.0.53:5300', '127.0.0.54:5300'];
          const blocks = Array.from({ length: BLOCKS }, (_, index) =>
            randomBlock(random, 6000 + index, { folder, upstreams }),
          );
          const text = blocks.map((block) => block.text).join('\n');
          const [theirs, ours] = await Promise.all([
            startServer('coredns', [program!], text, folder),
            startServer('ndots', null, text, folder),
          ]);
          // Both refuse it: of a rule that was drawn, its words do not fit.
          if (!theirs.serves && !ours.serves) continue;
          assert.ok(
            theirs.serves && ours.serves,
            `${theirs.child.output()}\n${ours.child.output()}`,
          );
          const said = await Promise.all(
            blocks.map((block, index) => compareBlock(block, batch * 7919 + index * 31 + 1)),
          );
          asked += BLOCKS * QUERIES;
          found.push(...said.flat().map((line) => `seed ${batch}: ${line}`));
          assert.doesNotMatch(ours.child.output(), /hangs/, `seed ${batch}`);
          await Promise.all([theirs.child.stop(), ours.child.stop()]);
          rmSync(folder, { recursive: true, force: true });
        }
        t.diagnostic(`${asked} queries, seed ${seed}`);
        assert.deepEqual(found, []);
      },
    );
  },
);

/** Asks both servers the same; each must be silent or answer within the time of `exchange`. */
async function compareBlock(block: RandomBlock, seedOfBlock: number): Promise<string[]> {
  const random = seededRandom(seedOfBlock);
  const names = namesIn(block);
  const found: string[] = [];
  for (let left = QUERIES; left > 0; left--) {
    const query = randomQuery(random, names);
    const [theirs, ours] = await Promise.all([
      exchange(query, block.port, hosts.coredns),
      exchange(query, block.port, hosts.ndots),
    ]);
    for (const one of differences(query, block, theirs, ours))
      found.push(`${query.text}: ${one}\n${block.text}`);
  }
  return found;
}
