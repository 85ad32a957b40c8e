import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import {
  namesIn,
  primaryZone,
  randomBlocks,
  textOf,
  type RandomBlock,
} from '../kit/beside/corefiles.ts';
import { differences, transfersAgree } from '../kit/beside/differences.ts';
import { exchange } from '../kit/beside/exchange.ts';
import { randomQuery } from '../kit/beside/queries.ts';
import { eachBatch, hosts, reloadServer } from '../kit/beside/servers.ts';
import { transferOf } from '../kit/beside/transfer.ts';
import { startUpstreams, upstreams } from '../kit/beside/upstream.ts';
import { zones } from '../kit/beside/words.ts';
import { corednsPath } from '../kit/etcd.ts';
import { startNsd } from '../kit/zone-servers.ts';

/**
 * Random Corefiles, served by both CoreDNS and ndots, applied by a reload, and queried with the same random queries.
 * The test fails on differences that docs/coredns.md does not list. `COREFILES_SECONDS` sets the duration and
 * `COREFILES_SEED` the seed. A difference is reported along with its batch's seed.
 */

const program = corednsPath();
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const seed = Number(process.env['COREFILES_SEED'] ?? '1');

/** The number of server blocks per pair of processes, and the number of queries for each block. */
const BLOCKS = 12;
const QUERIES = 60;
/** The port of the server that transfers zones. */
const PRIMARY = 5301;

describe(
  'random Corefiles compared with CoreDNS',
  { skip: program === null && 'CoreDNS is not there (COREDNS=FILE)' },
  () => {
    const home = mkdtempSync(join(tmpdir(), 'ndots-primary-'));
    const stops: (() => unknown)[] = [];
    before(async () => {
      stops.push(await startUpstreams());
      const files = Object.fromEntries(
        zones.map((zone) => {
          const file = join(home, `db.${zone}`);
          writeFileSync(file, primaryZone(zone));
          return [zone, file];
        }),
      );
      const { child } = await startNsd(home, PRIMARY, files, '  provide-xfr: 127.0.0.0/8 NOKEY\n');
      stops.push(() => child.stop());
    });
    after(async () => {
      // Each server writes to its directory until it has ended.
      await Promise.all(stops.map((stop) => stop()));
      rmSync(home, { recursive: true, force: true });
    });

    test(
      'the same replies, except for documented differences',
      { timeout: (seconds + 120) * 1000 },
      async (t) => {
        const found: string[] = [];
        let asked = 0;
        await eachBatch(
          program!,
          { seed, seconds },
          (random, directory) => {
            const drawn = drawBlocks(random, directory);
            return { drawn, text: textOf(drawn) };
          },
          async (batch, { theirs, ours, output }, first, directory, random) => {
            const compare = async (
              blocks: readonly RandomBlock[],
              shift: number,
            ): Promise<void> => {
              // In the meantime, zones arrive from their primary.
              if (blocks.some(({ plugins }) => plugins.has('secondary'))) await sleep(1000);
              const said = await Promise.all(
                blocks.map((block, index) =>
                  compareBlock(block, batch * 7919 + index * 31 + shift),
                ),
              );
              asked += BLOCKS * QUERIES;
              found.push(...said.flat().map((line) => `seed ${batch}: ${line}`));
            };
            await compare(first, 1);
            const next = drawBlocks(random, directory);
            const [theyDo, weDo] = await Promise.all([
              reloadServer(theirs, 'coredns', textOf(next), directory),
              reloadServer(ours, 'ndots', textOf(next), directory),
            ]);
            assert.equal(weDo, theyDo, `seed ${batch}: ${output()}`);
            if (weDo) await compare(next, 2);
            assert.doesNotMatch(ours.output(), /hangs/, `seed ${batch}`);
          },
        );
        t.diagnostic(`${asked} queries, seed ${seed}`);
        assert.deepEqual(found, []);
      },
    );
  },
);

const drawBlocks = (random: Random, directory: string): readonly RandomBlock[] =>
  randomBlocks(random, BLOCKS, { directory, upstreams, primary: `127.0.0.1:${PRIMARY}` });

/** Sends both servers the same query. Each may stay silent or answer within the time that `exchange` allows. */
async function compareBlock(block: RandomBlock, seedOfBlock: number): Promise<string[]> {
  const random = seededRandom(seedOfBlock);
  const names = namesIn(block);
  const found: string[] = [];
  for (let left = QUERIES; left > 0; left--) {
    const query = randomQuery(random, names);
    let [theirs, ours] = await Promise.all([
      exchange(query, block.port, hosts.coredns),
      exchange(query, block.port, hosts.ndots),
    ]);
    // A server may have been without a CPU for that long.
    if (ours !== null) theirs ??= await exchange(query, block.port, hosts.coredns);
    if (theirs !== null) ours ??= await exchange(query, block.port, hosts.ndots);
    for (const one of differences(query, block, theirs, ours))
      found.push(`${query.text}: ${one}\n${block.text}`);
  }
  if (!block.plugins.has('transfer')) return found;
  for (const zone of zones) {
    const [theirs, ours] = await Promise.all([
      transferOf(zone, block.port, hosts.coredns),
      transferOf(zone, block.port, hosts.ndots),
    ]);
    if (!transfersAgree(block, theirs, ours))
      found.push(`AXFR ${zone}: ${theirs}\nours ${ours}\n${block.text}`);
  }
  return found;
}
