import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareRuns } from '../../../test/kit/compare-runs.ts';
import { runModel, type Labelled, type Run, type Scenario } from '../../../test/kit/measured.ts';
import { readScenarios } from '../../../test/kit/real-resolver.ts';
import { findClient } from './clients.ts';

/** The errors of both families differ, so the program sees the one that Go reads first. */
const scenario = readScenarios().find(({ id }) => id === 'r56') as Scenario;
const by: Labelled = {
  client: findClient('go@1.26')!,
  families: [4, 6],
  addrConfig: false,
  env: {},
};

const errorOf = async (startsInOrder: boolean): Promise<string> => {
  const { results } = await runModel(scenario, by, undefined, undefined, startsInOrder);
  return results[0]!.found.failure!.text;
};

test('which of two errors a Go program sees depends on the goroutine that runs first', async () => {
  assert.match(await errorOf(false), /temporary=false/);
  assert.match(await errorOf(true), /temporary=true/);
});

for (const startsInOrder of [false, true])
  test(`a real run equals the model, whichever goroutine ran first (in order: ${startsInOrder})`, async () => {
    const model = await runModel(scenario, by, undefined, undefined, startsInOrder);
    const run: Run = {
      client: 'go',
      result: [{ ms: 1, err: await errorOf(startsInOrder), addrs: [] }],
      seq: '',
      queries: model.exchanges.map(
        ({ atMs, protocol, server, port, wireId, name, type, answer }) => [
          ...([atMs, protocol, server, port, wireId, name, type, 'edns 1232', '', answer] as const),
        ],
      ),
    };
    const more = { anyOrder: true, startMs: 150, slackMs: 150 };
    const runs = (random: Parameters<typeof runModel>[2], inOrder?: boolean) =>
      runModel(scenario, by, random, undefined, inOrder);
    assert.deepEqual(await compareRuns(run, by, runs, more), []);
  });
