/**
 * 10 000 lookups by programs that run for milliseconds. The process shown is never wrong, and it is known for enough
 * lookups. The promised shares apply to an otherwise idle machine. `NDOTS_LOOKUPS` sets a different number.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { clientKinds, CONTAINER, noProcessWorld, ProcessWorld } from '../kit/process-world.ts';
import { readTruth } from '../kit/process-truth.ts';

const COUNT = Number(process.env['NDOTS_LOOKUPS'] ?? 10_000);
const missing = noProcessWorld();

describe(`${COUNT} short-lived lookups`, { skip: missing ?? false }, () => {
  let world: ProcessWorld;
  before(async () => {
    world = new ProcessWorld();
    // Most replies take longer than 2 ms, and on a busy machine much longer.
    await world.serve(3);
  });
  after(() => world.stop());

  for (const [tier, words, least] of [
    ['sockets', [], 0.95],
    ['programs in the kernel', ['--bpf'], 0.999],
  ] as const)
    test(`${tier}: no wrong process, and ${least * 100} % have one`, async (t) => {
      const kinds = await clientKinds();
      const child = await world.captureToFile('--process', ...words, '-o', 'json');
      const each = Math.ceil(COUNT / 2 / kinds.length);
      for (const kind of kinds) await world.lookups(kind, each);
      child.signal('SIGINT');
      await child.exitCode;
      const truth = readTruth(readFileSync(world.outputFile, 'utf8'), CONTAINER.client);
      const { lookups, attributed, slow, slowAttributed } = truth;
      t.diagnostic(`${kinds.join(', ')}: ${attributed} of ${lookups}`);
      t.diagnostic(`2 ms or longer: ${slowAttributed} of ${slow}`);
      t.diagnostic(
        child
          .output()
          .split('\n')
          .find((line) => line.startsWith('process known')) ?? '',
      );
      assert.deepEqual([truth.wrong, truth.wrongContainer], [[], []]);
      assert.ok(lookups >= 0.99 * each * kinds.length, `${lookups} seen`);
      const share = words.length === 0 ? slowAttributed / slow : attributed / lookups;
      assert.ok(share >= least, `${(100 * share).toFixed(2)} %`);
    });
});
