/**
 * Records a real resolver: `node test/kit/record.ts CLIENT@VERSION PROGRAM COMMAND…`, as root. Runs every scenario in
 * test/resolvers/recorded.json with the command, which takes NAME FAMILY COUNT and prints a line of JSON per lookup
 * (`src/tools/lab/clients/`). Stores the result with an identical earlier recording, or as a new one. Runs that the
 * model does not reproduce are printed and not stored. A few repetitions rule out random effects and a busy machine.
 */
import { writeFileSync } from 'node:fs';
import { findClient, labelOf } from '../../src/tools/resolver/clients.ts';
import { differencesFrom, readRecorded, type Recorded, type RecordedRun } from './recorded.ts';
import { runReal } from './real-resolver.ts';

const attempts = 3;

const [label = '', program = '', ...command] = process.argv.slice(2);
const client = findClient(label);
if (client === null || command.length === 0) {
  console.error('node test/kit/record.ts CLIENT@VERSION "PROGRAM, as it is called" COMMAND…');
  process.exit(3);
}
const release = labelOf(client);

async function record(recorded: Recorded): Promise<RecordedRun | string[]> {
  const { closed = [] } = recorded.answers as { closed?: readonly string[] };
  let found: string[] = [];
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { result, queries, signal } = await runReal({ ...recorded, closed }, release, command);
    const run = { client: release, program, result, queries, ...(signal && { signal }) };
    found = await differencesFrom(recorded, run);
    if (found.length === 0) return run;
  }
  return found;
}

/** An earlier run of the same client with the same result. */
async function twin(recorded: Recorded, run: RecordedRun): Promise<RecordedRun | null> {
  for (const other of recorded.runs) {
    if (other.client.split('@')[0] !== client?.name || other.signal !== run.signal) continue;
    const one = await differencesFrom(recorded, { ...other, client: release });
    const two = await differencesFrom(recorded, { ...run, client: other.client });
    if (one.length === 0 && two.length === 0) return other;
  }
  return null;
}

const all: Recorded[] = [];
for (const recorded of readRecorded()) {
  const known = recorded.runs.some((run) => [run.client, ...(run.same ?? [])].includes(release));
  const run = known ? [] : await record(recorded);
  let { runs } = recorded;
  if (Array.isArray(run)) {
    if (run.length > 0) console.log(`${recorded.id}: ${run.join('; ')}`);
  } else {
    const other = await twin(recorded, run);
    runs =
      other === null
        ? [...runs, run]
        : runs.map((one) =>
            one === other ? { ...one, same: [...(one.same ?? []), release] } : one,
          );
  }
  all.push({ ...recorded, runs });
}

const lines = all.map(({ runs, ...scenario }) => {
  const shown = runs.map((run) => JSON.stringify(run)).join(',\n');
  return `${JSON.stringify(scenario).slice(0, -1)},"runs":[\n${shown}]}`;
});
const file = new URL('../resolvers/recorded.json', import.meta.url);
writeFileSync(file, `[\n${lines.join(',\n')}\n]\n`);
