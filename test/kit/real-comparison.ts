/** Compares real runs with the model's runs, one test per scenario and a few at a time. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compareRuns } from './compare-runs.ts';
import { runModel, type Labelled, type Scenario } from './measured.ts';
import type { RealProgram } from './real-programs.ts';
import { readScenarios, runReal, surroundingsOf } from './real-resolver.ts';

/** Longer scenarios belong in the long tests. */
const quickMs = 700;
const atATime = { quick: 2, long: 4 };
/** A busy machine may put time between packets that were sent together. */
const attempts = 8;

/** Compares either the scenarios that end immediately or those that wait for time-outs. */
export function compareWithReal(program: RealProgram, which: 'quick' | 'long'): void {
  const { label, client, command, reason } = program;
  const title = `${label}, run for real, does what the model says`;
  describe(title, { concurrency: atATime[which] }, async () => {
    if (command === null || client === null)
      return test(`${which} scenarios`, { skip: reason === '' ? 'no model' : reason });
    const by: Labelled = { client, families: [4, 6], addrConfig: false, env: {} };
    for (const scenario of readScenarios()) {
      const model = await runModel(scenario, by);
      const tookMs = model.results.reduce((sum, result) => sum + result.ms, 0);
      if (tookMs > quickMs !== (which === 'long')) continue;
      test(`${scenario.id} ${scenario.title}`, () => compare(scenario, by, label, command));
    }
  });
}

async function compare(
  scenario: Scenario,
  by: Labelled,
  label: string,
  command: readonly string[],
): Promise<void> {
  const more = { anyOrder: true, startMs: 150, togetherMs: 18, slackMs: 150 };
  let found: string[] = [];
  for (let attempt = 0; attempt < attempts; attempt++) {
    const run = await runReal(surroundingsOf(scenario), label, command);
    found = await compareRuns(
      run,
      by,
      async (random, startsInOrder) => {
        const model = await runModel(scenario, by, random, undefined, startsInOrder);
        // The server does not see queries sent to a closed port, and it may log its two sockets in either order.
        const { listen } = scenario;
        const seen = model.exchanges.filter((exchange) => listen.includes(exchange.server));
        return { ...model, exchanges: seen };
      },
      more,
    );
    if (found.length === 0) break;
  }
  assert.deepEqual(found, []);
}
