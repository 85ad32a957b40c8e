/** `ndots check serve`: checks again and again, their metrics, and whether the error budget burns. */
import { every, systemClock } from '../base/clock.ts';
import { printHostPort } from '../base/ip.ts';
import { makeLog } from '../base/log.ts';
import { Problem, problemsIn } from '../base/problem.ts';
import { secureRandom } from '../base/random.ts';
import { Watch } from '../probe/watch.ts';
import { WatchServer } from '../probe/watch-server.ts';
import { chosen, type CheckOptions } from './check-options.ts';
import { contextOf, planOf } from './check-plan.ts';
import { EXIT, type Io } from './command.ts';

/** Replicas come and go: where they are is asked so often. */
const SERVERS_EVERY_MS = 30_000;

/** Runs until a signal ends it. @throws Problem */
export async function serveChecks(options: CheckOptions, io: Io): Promise<number> {
  const plan = await planOf(options, io);
  const checks = chosen(plan.checks, options.only);
  const log = makeLog((line) => io.out(`${line}\n`));
  let context = await contextOf(plan, options, io);
  const watch = new Watch({
    checks,
    context: () => context,
    clock: systemClock,
    random: secureRandom,
    log,
    targetsMax: options.targetsMax,
  });
  const { host, port } = options.listen;
  const server = new WatchServer(watch);
  let bound: number;
  try {
    bound = await server.listen(host, port);
  } catch (error) {
    throw new Problem({
      code: 'cannot-listen',
      text: `cannot listen on ${printHostPort(host, port)}: ${(error as Error).message}`,
      remedy: 'Give another address (--listen), or end what has it.',
      cause: error,
    });
  }
  log.info(
    `${checks.length} checks of ${context.vip.length} service addresses and ${context.replicas.length} replicas; metrics on ${printHostPort(host, bound)}`,
  );
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ended.abort());
  const refresh = async (): Promise<void> => {
    try {
      context = await contextOf(plan, options, io);
    } catch (error) {
      if (problemsIn(error) === null) throw error;
      log.warning(`where the replicas are could not be asked: ${(error as Error).message}`);
    }
  };
  const asked = every(systemClock, SERVERS_EVERY_MS, () => void refresh());
  await watch.run(ended.signal);
  asked.cancel();
  await server.close();
  return EXIT.ok;
}
