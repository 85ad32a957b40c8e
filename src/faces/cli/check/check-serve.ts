/** `ndots check serve`: runs checks repeatedly, and exports their metrics and the error budget's burn rate. */
import { every, systemClock } from '../../../server/base/clock.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { makeLog, type Log } from '../../../server/base/log.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { MemoryPolicy } from '../../../server/runtime/memory-policy.ts';
import { CheckSchedule } from '../../../tools/probe/watch.ts';
import { watchDocument, WatchServer } from '../../../tools/probe/watch-server.ts';
import { type CheckOptions } from './check-options.ts';
import { checksOf, contextOf, planOf } from './check-plan.ts';
import { EXIT, type Io } from '../command.ts';
import { listening } from '../serve/listening.ts';
import { count } from '../../../server/base/counted.ts';
import { untilSignal } from '../until-signal.ts';

/** Refresh interval of the replica list. */
const SERVERS_EVERY_MS = 30_000;

/**
 * Runs until a signal arrives.
 * @throws Problem
 */
export async function serveChecks(options: CheckOptions, io: Io): Promise<number> {
  const ended = untilSignal('log');
  const log = makeLog((line) => io.out(`${line}\n`));
  const { watch, run } = await watchFile(options, io, log);
  const { host, port } = options.listen;
  const server = new WatchServer(watch);
  const place = { host, port, option: '--listen' };
  const bound = await listening(place, () => server.listen(host, port));
  log.info(`metrics on ${printHostPort(host, bound)}`);
  new MemoryPolicy({ clock: systemClock, thrifty: true }).begin();
  await run(ended);
  await server.close();
  return EXIT.ok;
}

/** The checks in a file, or the default ones, together with their runner. */
export interface FileWatch {
  readonly watch: CheckSchedule;
  document(): object;
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Reads the file and finds the servers before it resolves.
 * @throws Problem
 */
export async function watchFile(options: CheckOptions, io: Io, log: Log): Promise<FileWatch> {
  const plan = await planOf(options, io);
  const checks = checksOf(plan, options, (text) => log.info(text));
  let context = await contextOf(plan, options, io);
  log.info(
    `${count(checks.length, 'check', 'checks')} of ${count(context.vip.length, 'service address', 'service addresses')} and ${count(context.replicas.length, 'replica', 'replicas')}`,
  );
  const watch = new CheckSchedule({
    checks,
    context: () => context,
    clock: systemClock,
    random: secureRandom,
    log,
    targetsMax: options.targetsMax,
  });
  const refresh = async (): Promise<void> => {
    try {
      context = await contextOf(plan, options, io);
    } catch (error) {
      if (problemsIn(error) === null) throw error;
      log.warning(`cannot look up the replicas: ${(error as Error).message}`);
    }
  };
  return {
    watch,
    document: () => watchDocument(watch),
    async run(signal) {
      const asked = every(systemClock, SERVERS_EVERY_MS, () => void refresh());
      await watch.run(signal);
      asked.cancel();
    },
  };
}
