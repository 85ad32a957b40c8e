/**
 * Runs one traced lookup. It starts the model on the given network, runs the lookup, and stops it at the overall time
 * limit. `trace-document.ts` converts the result into a document.
 */
import { printSpan } from '../../server/base/elapsed.ts';
import type { Clock } from '../../server/base/clock.ts';
import { seededRandom, type Random } from '../../server/base/random.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { Script } from './answers-file.ts';
import type { Client, AddressFamily, LookupOutcome, Settings } from './client.ts';
import type { ClientNetwork } from './network.ts';
import { ScriptedNetwork, type Answering } from './scripted.ts';
import { Trace } from './trace.ts';

export interface LookupPlan {
  readonly client: Client;
  readonly name: string;
  readonly families: readonly AddressFamily[];
  readonly addrConfig: boolean;
  readonly settings: Settings;
  /** The number of consecutive lookups in one process. */
  readonly repeat: number;
  /** The number of milliseconds after which the whole run is stopped and the current lookup counts as failed. */
  readonly limitMs: number;
}

/** Times are in milliseconds since the start of the run. */
export interface LookupResult {
  readonly found: LookupOutcome;
  readonly startMs: number;
  readonly elapsedMs: number;
}

/** A finished run, for `trace-document.ts`. */
export interface LookupRun {
  readonly plan: LookupPlan;
  readonly trace: Trace;
  readonly results: readonly LookupResult[];
  /** True if the time limit stopped it. */
  readonly cut: boolean;
  /** True if real servers answered instead of a script. */
  readonly live: boolean;
}

/** @param clock the network's clock */
export async function runLookup(
  plan: LookupPlan,
  network: (trace: Trace) => ClientNetwork,
  clock: Clock,
  random: Random,
  live: boolean,
): Promise<LookupRun> {
  const trace = new Trace(clock);
  const context = { network: network(trace), trace, random, settings: plan.settings };
  const session = plan.client.open(context);
  const results: LookupResult[] = [];
  let cut = false;
  const limit = new Promise<null>((resolve) => {
    clock.after(plan.limitMs, () => resolve(null));
  });
  for (let count = 0; count < plan.repeat && !cut; count++) {
    trace.lookup = count;
    const startMs = trace.nowMs;
    const { name, families, addrConfig } = plan;
    const found = await Promise.race([session.lookup({ name, families, addrConfig }), limit]);
    cut = found === null;
    // Measures a live run from its first query, because earlier steps belong to this program and not to the client.
    const first = live ? trace.exchanges.find((exchange) => exchange.lookup === count) : undefined;
    const fromMs = first?.atMs ?? startMs;
    results.push({
      found: found ?? gaveUp(plan.limitMs),
      startMs: fromMs,
      elapsedMs: trace.nowMs - fromMs,
    });
  }
  return { plan, trace, results, cut, live };
}

function gaveUp(limitMs: number): LookupOutcome {
  return {
    addresses: [],
    failure: {
      code: 'ENDED',
      number: null,
      text: `still waiting after ${printSpan(limitMs)}, so the trace was stopped (--timeout)`,
    },
  };
}

/** A server that answers instead of a script until it is stopped. */
export interface StartedServer extends Answering {
  stop(): Promise<void>;
}

/** Starts a server instead of the script, on the lookup's clock. */
export type StartServer = (clock: VirtualClock) => Promise<StartedServer>;

/** Plans a lookup in virtual time, using a script or a server that is started for it. */
export async function planLookup(
  plan: LookupPlan,
  script: Script,
  random: Random,
  start?: StartServer,
): Promise<LookupRun> {
  const clock = new VirtualClock();
  const server = start === undefined ? null : await start(clock);
  const run = runLookup(
    plan,
    (trace) => new ScriptedNetwork(clock, script, trace, server),
    clock,
    random,
    false,
  );
  try {
    return await clock.run(run, plan.limitMs + 1000);
  } finally {
    await server?.stop();
  }
}

/** The time limit of `planOnce`, in milliseconds of virtual time. */
const ONCE_MS = 600_000;

/** Plans a single lookup, by default for both families. The same plan always has the same result. */
export function planOnce(
  plan: Pick<LookupPlan, 'client' | 'name' | 'settings'> & Partial<LookupPlan>,
  script: Script,
  start?: StartServer,
): Promise<LookupRun> {
  const usual = { families: [4, 6], addrConfig: false, repeat: 1, limitMs: ONCE_MS } as const;
  return planLookup({ ...usual, ...plan }, script, seededRandom(1), start);
}
