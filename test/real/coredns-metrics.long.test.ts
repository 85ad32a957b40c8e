import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/base/random.ts';
import { namesIn, randomBlock, type RandomBlock } from '../kit/beside/corefiles.ts';
import { exchange } from '../kit/beside/exchange.ts';
import { readSeries, seriesThatDiffer } from '../kit/beside/metrics.ts';
import { randomQuery } from '../kit/beside/queries.ts';
import { hosts, startServer } from '../kit/beside/servers.ts';
import { startUpstream } from '../kit/beside/upstream.ts';
import { corednsPath } from '../kit/etcd.ts';

/**
 * Random Corefiles, served by CoreDNS and by ndots and asked the same random queries, and then for their metrics: series,
 * labels and counts that differ and are not told of in docs/coredns.md fail. `COREFILES_SECONDS` is how long,
 * `COREFILES_SEED` which.
 */
const program = corednsPath();
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const seed = Number(process.env['COREFILES_SEED'] ?? '1');

const BLOCKS = 8;
const QUERIES = 40;
const PORT = 9153;

/** Blocks in which other replies are given on purpose, or none: what follows from that is no difference of metrics. */
const others = /\b(?:minimal|erratic|autopath|dns64|header|drop|IN CNAME)\b/;

describe(
  'metrics beside CoreDNS',
  { skip: program === null && 'CoreDNS is not there (COREDNS=FILE)' },
  () => {
    const stops: (() => void)[] = [];
    before(async () => {
      for (const address of ['127.0.0.53', '127.0.0.54'])
        stops.push(await startUpstream(address, 5300));
    });
    after(() => stops.forEach((stop) => stop()));

    test(
      'the same series with the same counts, but for what is told of',
      { timeout: (seconds + 120) * 1000 },
      async (t) => {
        const found: string[] = [];
        let compared = 0;
        for (let batch = seed, end = Date.now() + seconds * 1000; Date.now() < end; batch++) {
          const folder = mkdtempSync(join(tmpdir(), 'ndots-metrics-'));
          const blocks = drawBlocks(batch, folder);
          const text = blocks
            .map((block) =>
              block.text.replace(/^ {2}bind .*$/m, `$&\n  prometheus 127.0.0.1:${PORT}`),
            )
            .join('\n');
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
          const same = await Promise.all(
            blocks.map((block, index) => ask(block, batch * 7919 + index * 31 + 1)),
          );
          const [a, b] = await Promise.all([
            readSeries(hosts.coredns, PORT),
            readSeries(hosts.ndots, PORT),
          ]);
          for (const line of seriesThatDiffer(a, b, text)) {
            const port = /dns:\/\/HOST:(\d+)/.exec(line)?.[1];
            const index = blocks.findIndex((block) => String(block.port) === port);
            // Other replies, other counts: that is compared elsewhere.
            if (index >= 0 && !same[index]) continue;
            found.push(`seed ${batch}: ${line}\n${blocks[index]?.text ?? ''}`);
          }
          compared += Math.max(a.size, b.size);
          await Promise.all([theirs.child.stop(), ours.child.stop()]);
          rmSync(folder, { recursive: true, force: true });
        }
        t.diagnostic(`${compared} series, seed ${seed}`);
        assert.deepEqual(found, []);
      },
    );
  },
);

function drawBlocks(batch: number, folder: string): RandomBlock[] {
  const random = seededRandom(batch * 7919);
  const upstreams = ['127.0.0.53:5300', '127.0.0.54:5300'];
  const blocks: RandomBlock[] = [];
  while (blocks.length < BLOCKS) {
    const block = randomBlock(random, 6000 + blocks.length, { folder, upstreams, primary: null });
    if (!others.test(block.text)) blocks.push(block);
  }
  return blocks;
}

/** Asks both servers the same. @returns whether they gave the same codes */
async function ask(block: RandomBlock, seedOfBlock: number): Promise<boolean> {
  const random = seededRandom(seedOfBlock);
  const names = namesIn(block);
  let same = true;
  for (let left = QUERIES; left > 0;) {
    const query = randomQuery(random, names);
    // DS of a name at which zones meet is the parent's here.
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
