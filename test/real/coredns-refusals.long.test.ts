import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { every } from '../../src/server/base/clock.ts';
import { problemsIn } from '../../src/server/base/problem.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { copyModule, noModule } from '../coredns/module.ts';
import { corefileServer } from '../coredns/server.ts';
import { buildStarter, Starter } from '../coredns/starter.ts';
import { writeExampleFiles } from '../kit/beside/example-files.ts';
import { changedCorefile, type Scene } from '../kit/beside/mistakes.ts';
import { differ } from '../kit/beside/refusals.ts';
import { variants } from '../kit/beside/variants.ts';
import { freePorts } from '../kit/free-ports.ts';
import { scriptedNetwork } from '../kit/upstream.ts';

/**
 * Examples of every CoreDNS property with random changes to words and lines, started by both CoreDNS and ndots. The
 * test fails if only one refuses and docs/coredns.md does not list the difference. `COREFILES_SECONDS` sets the
 * duration and `COREFILES_SEED` the seed. A difference is reported with its seed.
 */
const seconds = Number(process.env['COREFILES_SECONDS'] ?? '60');
const first = Number(process.env['COREFILES_SEED'] ?? '1');

describe('changed Corefiles compared with CoreDNS', { skip: noModule() ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-refusals-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  let program = '';
  before(async () => {
    writeExampleFiles(directory);
    const copy = join(directory, 'module');
    await copyModule(copy);
    program = await buildStarter(copy);
  });

  test(
    'are accepted by both or refused by both, except for documented differences',
    { timeout: (seconds + 120) * 1000 },
    async (t) => {
      const scene = await drawScene(directory);
      await using starter = new Starter(program, directory);
      const tally = new Tally();
      for (let seed = first, end = Date.now() + seconds * 1000; Date.now() < end; seed++) {
        const { text } = changedCorefile(seededRandom(seed * 7919), scene);
        await tally.judge(`seed ${seed}`, text, starter, directory);
      }
      t.diagnostic(`${tally.counts}, seed ${first}`);
      assert.deepEqual(tally.found, []);
    },
  );

  test(
    'with a word more or less, a line twice or in upper case, empty braces or none: each line of each property',
    { timeout: 600_000 },
    async (t) => {
      const scene = await drawScene(directory);
      await using starter = new Starter(program, directory);
      const tally = new Tally();
      for (const { label, text } of variants(scene))
        await tally.judge(label, text, starter, directory);
      t.diagnostic(tally.counts);
      assert.deepEqual(tally.found, []);
    },
  );
});

async function drawScene(directory: string): Promise<Scene> {
  const [port, http] = await freePorts(2);
  return { port: port!, http: http!, directory };
}

/** Both servers' results for the Corefiles so far. */
class Tally {
  /** Undocumented differences. */
  readonly found: string[] = [];
  #taken = 0;
  #refused = 0;
  #told = 0;

  get counts(): string {
    return `both take ${this.#taken}, both refuse ${this.#refused}, told of ${this.#told}`;
  }

  async judge(label: string, text: string, starter: Starter, directory: string): Promise<void> {
    // Both would wait for the API server for as long as this specifies.
    if (/startup_timeout (?!1ms\s)/i.test(text)) return;
    const theirs = await starter.refusal(text);
    let ours = await problemsOf(text, directory);
    if (ours.some((line) => /already in use/.test(line))) {
      // Leftovers from an earlier Corefile, in either CoreDNS or ndots.
      await starter.end();
      await new Promise((resolve) => setTimeout(resolve, 200));
      ours = await problemsOf(text, directory);
    }
    if (differ({ text, theirs, ours }))
      this.found.push(
        `${label}: ${theirs ?? 'taken'}, ours ${ours.join('; ') || 'taken'}\n${text}`,
      );
    else if (theirs === null && ours.length === 0) this.#taken++;
    else if (theirs !== null && ours.length > 0) this.#refused++;
    else this.#told++;
  }
}

/** The problems that ndots finds in it. */
async function problemsOf(text: string, directory: string): Promise<readonly string[]> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, () => ({}));
  await using server = corefileServer(text, {}, clock, network, [], directory);
  // Other threads sign zones at the same time.
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
