import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { namesIn, randomBlocks, textOf, type RandomBlock } from '../kit/beside/corefiles.ts';
import { exchange } from '../kit/beside/exchange.ts';
import { readSeries, seriesThatDiffer } from '../kit/beside/metrics.ts';
import { randomQuery } from '../kit/beside/queries.ts';
import { eachBatch, hosts } from '../kit/beside/servers.ts';
import { startUpstreams, upstreams } from '../kit/beside/upstream.ts';
import { corednsPath } from '../kit/etcd.ts';

/**
 * Random Corefiles, served by both CoreDNS and ndots and queried with the same random queries. Then the metrics are
 * scraped. The test fails on differences in series, labels or counts that docs/coredns.md does not list.
 * `COREFILES_SECONDS` sets the duration and `COREFILES_SEED` the seed.
 */
const program = corednsPath();
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const seed = Number(process.env['COREFILES_SEED'] ?? '1');

const BLOCKS = 8;
const QUERIES = 40;
const PORT = 9153;

/** Blocks whose replies differ on purpose or are missing, so their metrics differ too. */
const others = /\b(?:minimal|erratic|autopath|dns64|header|drop|IN CNAME)\b/;

describe(
  'metrics compared with CoreDNS',
  { skip: program === null && 'CoreDNS is not there (COREDNS=FILE)' },
  () => {
    let stop = (): void => undefined;
    before(async () => {
      stop = await startUpstreams();
    });
    after(() => stop());

    test(
      'the same series with the same counts, except for documented differences',
      { timeout: (seconds + 120) * 1000 },
      async (t) => {
        const found: string[] = [];
        let compared = 0;
        await eachBatch(
          program!,
          { seed, seconds },
          (random, directory) => {
            const about = { directory, upstreams, primary: null };
            const drawn = randomBlocks(random, BLOCKS, about, ({ text }) => !others.test(text));
            const line = `$&\n  prometheus 127.0.0.1:${PORT}`;
            const measured = drawn.map((block) => ({
              ...block,
              text: block.text.replace(/^ {2}bind .*$/m, line),
            }));
            return { drawn, text: textOf(measured) };
          },
          async (batch, _both, blocks) => {
            const same = await Promise.all(
              blocks.map((block, index) => ask(block, batch * 7919 + index * 31 + 1)),
            );
            const [a, b] = await Promise.all([
              readSeries(hosts.coredns, PORT),
              readSeries(hosts.ndots, PORT),
            ]);
            for (const line of seriesThatDiffer(a, b, textOf(blocks))) {
              const port = /dns:\/\/HOST:(\d+)/.exec(line)?.[1];
              const index = blocks.findIndex((block) => String(block.port) === port);
              // Different replies lead to different counts. Other tests compare the replies.
              if (index >= 0 && !same[index]) continue;
              found.push(`seed ${batch}: ${line}\n${blocks[index]?.text ?? ''}`);
            }
            compared += Math.max(a.size, b.size);
          },
        );
        t.diagnostic(`${compared} series, seed ${seed}`);
        assert.deepEqual(found, []);
      },
    );
  },
);

/**
 * Sends both servers the same queries.
 * @returns true if both returned the same codes
 */
async function ask(block: RandomBlock, seedOfBlock: number): Promise<boolean> {
  const random = seededRandom(seedOfBlock);
  const names = namesIn(block);
  let same = true;
  for (let left = QUERIES; left > 0;) {
    const query = randomQuery(random, names);
    // At a zone cut, a name's DS record belongs to the parent zone here.
    if (query.odd || query.class !== 1 || query.opcode !== 0 || query.type === 43) continue;
    left--;
    const [theirs, ours] = await Promise.all([
      exchange(query, block.port, hosts.coredns),
      exchange(query, block.port, hosts.ndots),
    ]);
    if (theirs?.[3] === undefined || (theirs[3] & 15) !== (ours![3]! & 15)) same = false;
  }
  return same;
}
