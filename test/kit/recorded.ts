/**
 * Our recordings of real resolvers (test/resolvers/recorded.json). They are small scenarios, each with the queries and
 * results of real programs. Program names include their versions. c-ares and evdns run in small C programs that call
 * ares_getaddrinfo and evdns_getaddrinfo.
 */
import { readFileSync } from 'node:fs';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { parseAnswers } from '../../src/tools/resolver/answers-file.ts';
import type { Client, AddressFamily, LookupOutcome } from '../../src/tools/resolver/client.ts';
import { findClient } from '../../src/tools/resolver/clients.ts';
import { ScriptedNetwork } from '../../src/tools/resolver/scripted.ts';
import { Trace } from '../../src/tools/resolver/trace.ts';
import { compareRuns, type ModelRuns } from './compare-runs.ts';
import {
  runFor,
  type Labelled,
  type MeasuredQuery,
  type MeasuredResult,
  type ModelRun,
} from './measured.ts';

export interface RecordedRun {
  /** The client's name, as for `--client`. */
  readonly client: string;
  readonly program: string;
  /** Other releases whose runs were identical. */
  readonly same?: readonly string[];
  readonly result: readonly MeasuredResult[];
  /** The signal that killed the program before it printed anything. */
  readonly signal?: string;
  readonly queries: readonly MeasuredQuery[];
}

/** A setup and the clients' runs with it. */
export interface Recorded {
  readonly id: string;
  readonly name: string;
  readonly resolv: string;
  readonly nsswitch: string;
  readonly hosts: string;
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly families: readonly AddressFamily[];
  readonly repeat: number;
  /** The servers with a log. Queries to other servers are not recorded. */
  readonly listen: readonly string[];
  readonly answers: object;
  readonly runs: readonly RecordedRun[];
}

export function readRecorded(): Recorded[] {
  const file = new URL('../resolvers/recorded.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
}

/** The maximum duration of a run, in milliseconds. */
const limitMs = 115_000;

/** Runs the model in virtual time and describes the differences from the recording. */
export async function differencesFrom(recorded: Recorded, run: RecordedRun): Promise<string[]> {
  const client = findClient(run.client);
  if (client === null) return [`no model for ${run.client}`];
  const { families, listen } = recorded;
  const by: Labelled = { client, families, addrConfig: false, env: {} };
  const runs: ModelRuns = (random, startsInOrder) =>
    runModel(recorded, client, random, startsInOrder);
  if (run.signal !== undefined) {
    const { results } = await runs(seededRandom(1));
    const code = results[0]?.found.failure?.code;
    return code === run.signal ? [] : [`the program died of ${run.signal}, the model: ${code}`];
  }
  // The server may log two sockets in either order, and the machine was busy.
  const more = {
    anyOrder: client.anyOrder || listen.length > 1,
    togetherMs: 18,
    slackMs: 150,
  };
  return compareRuns({ ...run, seq: '' }, by, runs, more);
}

async function runModel(
  recorded: Recorded,
  client: Client,
  random: Random,
  startsInOrder = false,
): Promise<ModelRun> {
  const clock = new VirtualClock();
  const trace = new Trace(clock);
  const script = parseAnswers(recorded.answers, recorded.id);
  const session = client.open({
    network: new ScriptedNetwork(clock, script, trace),
    ...{ trace, random, startsInOrder },
    settings: {
      resolvConf: recorded.resolv,
      nsswitch: recorded.nsswitch,
      hosts: recorded.hosts,
      hostAliases: recorded.hostAliases,
      env: recorded.env,
      host: {
        hostname: 'mypod',
        addresses: ['10.244.0.10', 'fe80::1'],
        loopback: [4, 6],
      },
    },
  });
  const { name, families, repeat, listen } = recorded;
  const results: { found: LookupOutcome; ms: number }[] = [];
  const lookups = async (): Promise<void> => {
    for (let count = 0; count < repeat; count++) {
      const start = clock.now();
      const found = await session.lookup({ name, families, addrConfig: false });
      results.push({ found, ms: clock.now() - start });
    }
  };
  await runFor(clock, lookups(), limitMs);
  const exchanges = trace.exchanges.filter((exchange) => listen.includes(exchange.server));
  return { planned: repeat, results, exchanges, steps: [] };
}
