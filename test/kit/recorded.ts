/**
 * Own recordings of real resolvers (test/resolvers/recorded.json): small scenarios, each with what a program that was
 * run for it sent and found. The names of the programs say their versions; c-ares and evdns through small C programs
 * that call ares_getaddrinfo and evdns_getaddrinfo.
 */
import { readFileSync } from 'node:fs';
import { seededRandom } from '../../src/base/random.ts';
import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { parseAnswers } from '../../src/resolver/answers-file.ts';
import type { Family, Found } from '../../src/resolver/client.ts';
import { findClient } from '../../src/resolver/clients.ts';
import { ScriptedNetwork } from '../../src/resolver/scripted.ts';
import { Trace } from '../../src/resolver/trace.ts';
import { differences } from './compare-runs.ts';
import type { Labelled, MeasuredQuery, MeasuredResult } from './measured.ts';

export interface RecordedRun {
  /** As `--client` takes it. */
  readonly client: string;
  /** What was run. */
  readonly program: string;
  readonly result: readonly MeasuredResult[];
  readonly queries: readonly MeasuredQuery[];
}

export interface Recorded {
  readonly id: string;
  readonly name: string;
  readonly resolv: string;
  readonly nsswitch: string;
  readonly hosts: string;
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly families: readonly Family[];
  readonly repeat: number;
  /** The servers that kept a log: what goes elsewhere is not in the queries. */
  readonly listen: readonly string[];
  readonly answers: object;
  readonly runs: readonly RecordedRun[];
}

export function readRecorded(): Recorded[] {
  const file = new URL('../resolvers/recorded.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
}

/** Runs the model in virtual time; what differs from the recording, in words. */
export async function differencesFrom(recorded: Recorded, run: RecordedRun): Promise<string[]> {
  const client = findClient(run.client);
  if (client === null) return [`no model for ${run.client}`];
  const clock = new VirtualClock();
  const trace = new Trace(clock);
  const script = parseAnswers(recorded.answers, recorded.id);
  const session = client.open({
    network: new ScriptedNetwork(clock, script, trace),
    trace,
    random: seededRandom(7),
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
  const { name, families, repeat } = recorded;
  const results: { found: Found; ms: number }[] = [];
  const lookups = async (): Promise<void> => {
    for (let count = 0; count < repeat; count++) {
      const start = clock.now();
      const found = await session.lookup({ name, families, addrConfig: false });
      results.push({ found, ms: clock.now() - start });
    }
  };
  await clock.run(lookups(), 115_000);
  const by: Labelled = { client, families, addrConfig: false, env: {} };
  const seen = trace.exchanges.filter((exchange) => recorded.listen.includes(exchange.server));
  const model = { planned: repeat, results, exchanges: seen, steps: [] };
  // Two sockets of the server log in any order, and the machine was busy.
  const more = {
    anyOrder: client.anyOrder || recorded.listen.length > 1,
    togetherMs: 18,
    slackMs: 150,
  };
  return differences({ ...run, seq: '' }, model, by, more);
}
