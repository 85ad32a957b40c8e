/** Real runs beside the model's, as tests: one for each scenario, a few at a time. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { differences } from './compare-runs.ts';
import { runModel, type Labelled, type ModelRun, type Scenario } from './measured.ts';
import { readScenarios, runReal } from './real-resolver.ts';
import type { Client } from '../../src/resolver/client.ts';

/** Longer scenarios run only with NDOTS_REAL=all. */
const quickMs = 700;
const atATime = 2;
/** A busy machine can tear apart what was sent together. */
const attempts = 8;

/** `command` starts the real resolver; null and a reason = it cannot be run here. */
export function compareWithReal(
  label: string,
  client: Client | null,
  command: readonly string[] | null,
  reason: string,
): void {
  describe(
    `${label}, run for real, does what the model says`,
    { concurrency: atATime },
    async () => {
      if (command === null || client === null) return test('all scenarios', { skip: reason });
      const by: Labelled = { client, families: [4, 6], addrConfig: false, env: {} };
      let tooLong = 0;
      for (const scenario of readScenarios()) {
        const model = await runModel(scenario, by);
        const tookMs = model.results.reduce((sum, result) => sum + result.ms, 0);
        if (tookMs > quickMs && process.env['NDOTS_REAL'] !== 'all') tooLong++;
        else
          test(`${scenario.id} ${scenario.title}`, () =>
            compare(scenario, model, by, label, command));
      }
      if (tooLong > 0) {
        test(`${tooLong} scenarios with long waits`, { skip: 'run with NDOTS_REAL=all' });
      }
    },
  );
}

async function compare(
  scenario: Scenario,
  model: ModelRun,
  by: Labelled,
  label: string,
  command: readonly string[],
): Promise<void> {
  // The server does not see what goes to a closed port, and logs two of its sockets in any order.
  const seen = model.exchanges.filter((exchange) => scenario.listen.includes(exchange.server));
  const shown = { ...model, exchanges: seen };
  const more = { anyOrder: true, startMs: 150, togetherMs: 18, slackMs: 150 };
  let found: string[] = [];
  for (let attempt = 0; attempt < attempts; attempt++) {
    const run = await runReal(scenario, label, command);
    found = differences(run, shown, by, more);
    if (found.length === 0) break;
  }
  assert.deepEqual(found, []);
}
