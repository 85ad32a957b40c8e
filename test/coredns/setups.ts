import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { every } from '../../src/server/base/clock.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { problemsIn } from '../../src/server/base/problem.ts';
import { scriptedNetwork } from '../kit/upstream.ts';
import type { SetupEvent } from './events.ts';
import { corefileServer } from './server.ts';

/** The treatment of a directive in ndots. */
export interface Setup {
  readonly refused: boolean;
  /** One line per problem. */
  readonly problems: readonly string[];
}

/**
 * A temporary directory that Go's tests created and have since removed. Directives refer to files that must be
 * recreated there.
 */
const testDirectory = new RegExp(`${tmpdir()}/Test\\w+/\\d{3}(?=/)`, 'g');

/** Only known inside a pod, so the plugin did accept its directive. */
const inCluster = /unable to load in-cluster configuration/;

export async function setUp(event: SetupEvent): Promise<Setup> {
  const directories = event.input.match(testDirectory) ?? [];
  for (const directory of directories) mkdirSync(directory, { recursive: true });
  const keys = event.keys ?? ['.'];
  const corefile = `${keys.join(', ')} {\n${event.input}\n}\n`;
  const clock = new VirtualClock();
  const server = corefileServer(
    corefile,
    event.files ?? {},
    clock,
    scriptedNetwork(clock, () => ({})),
  );
  // Other threads sign zones at the same time.
  const ticks = every(clock, 1, () => undefined);
  try {
    await clock.run(server.embedded.start());
    await clock.run(server.embedded.stop());
    return { refused: false, problems: [] };
  } catch (error) {
    const problems = (problemsIn(error) ?? [error as Error]).map((problem) => problem.message);
    const refused = problems.some((problem) => !inCluster.test(problem));
    return { refused, problems };
  } finally {
    ticks.cancel();
    for (const directory of directories)
      rmSync(dirname(directory), { recursive: true, force: true });
  }
}
