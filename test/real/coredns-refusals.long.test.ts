import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { every } from '../../src/base/clock.ts';
import { problemsIn } from '../../src/base/problem.ts';
import { seededRandom } from '../../src/base/random.ts';
import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { copyModule, noModule } from '../coredns/module.ts';
import { corefileServer } from '../coredns/server.ts';
import { buildStarter, Starter } from '../coredns/starter.ts';
import { writeExampleFiles } from '../kit/beside/example-files.ts';
import { changedCorefile } from '../kit/beside/mistakes.ts';
import { differ } from '../kit/beside/refusals.ts';
import { freePorts } from '../kit/free-ports.ts';
import { scriptedNetwork } from '../kit/upstream.ts';

/**
 * Examples of every property of CoreDNS with words and lines changed by chance, started by CoreDNS and by ndots: where one
 * refuses what the other takes and docs/coredns.md does not tell of it, fails. `COREFILES_SECONDS` is how long,
 * `COREFILES_SEED` which; a difference names its seed.
 */
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const first = Number(process.env['COREFILES_SEED'] ?? '1');

describe('changed Corefiles beside CoreDNS', { skip: noModule() ?? false }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-refusals-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  let program = '';
  before(async () => {
    writeExampleFiles(folder);
    const copy = join(folder, 'module');
    await copyModule(copy);
    program = await buildStarter(copy);
  });

  test(
    'are taken by both or refused by both, but for what is told of',
    { timeout: (seconds + 120) * 1000 },
    async (t) => {
      const [port, http] = await freePorts(2);
      await using starter = new Starter(program, folder);
      const found: string[] = [];
      const counts = { taken: 0, refused: 0, told: 0 };
      for (let seed = first, end = Date.now() + seconds * 1000; Date.now() < end; seed++) {
        const { text } = changedCorefile(seededRandom(seed * 7919), {
          port: port!,
          http: http!,
          folder,
        });
        // Both wait for the API server as long as they are told.
        if (/startup_timeout (?!1ms\s)/.test(text)) continue;
        const theirs = await starter.refusal(text);
        let ours = await problemsOf(text, folder);
        if (ours.some((line) => /already in use/.test(line))) {
          // What a Corefile before left open, of CoreDNS's or ours.
          await starter.end();
          await new Promise((resolve) => setTimeout(resolve, 200));
          ours = await problemsOf(text, folder);
        }
        if (differ({ text, theirs, ours }))
          found.push(
            `seed ${seed}: ${theirs ?? 'taken'}, ours ${ours.join('; ') || 'taken'}\n${text}`,
          );
        else if (theirs === null && ours.length === 0) counts.taken++;
        else if (theirs !== null && ours.length > 0) counts.refused++;
        else counts.told++;
      }
      t.diagnostic(
        `both take ${counts.taken}, both refuse ${counts.refused}, told of ${counts.told}, seed ${first}`,
      );
      assert.deepEqual(found, []);
    },
  );
});

/** What ndots finds wrong with it. */
async function problemsOf(text: string, folder: string): Promise<readonly string[]> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, () => ({}));
  await using server = corefileServer(text, {}, clock, network, [], folder);
  // Zones are signed by other threads meanwhile.
  const ticks = every(clock, 1, () => undefined);
  try {
    await clock.run(server.embedded.start());
    await clock.run(server.embedded.stop());
    return [];
  } catch (error) {
    return (problemsIn(error) ?? [error as Error]).map(({ message }) => message);
  } finally {
    ticks.cancel();
  }
}
