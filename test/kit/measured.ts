/**
 * The recorded runs of real resolvers (test/resolvers/measured). Parses them, converts each scenario to a script and
 * settings, runs a model on it in virtual time, and reports any differences.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { parseAnswers, type Script } from '../../src/tools/resolver/answers-file.ts';
import type {
  Client,
  AddressFamily,
  LookupOutcome,
  Settings,
} from '../../src/tools/resolver/client.ts';
import { findClient } from '../../src/tools/resolver/clients.ts';
import { ScriptedNetwork } from '../../src/tools/resolver/scripted.ts';
import type { SentQuery } from '../../src/tools/resolver/network.ts';
import { Trace } from '../../src/tools/resolver/trace.ts';

/** The clients' setup: the name, their files, and the network's behaviour. */
export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly name: string;
  readonly resolv: string;
  readonly nss: string;
  readonly hosts: string;
  readonly net: string;
  readonly listen: readonly string[];
  readonly closed?: readonly string[];
  readonly unrouted?: readonly string[];
  readonly notcp?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly repeat?: number;
  readonly zone: Readonly<Record<string, string | readonly string[]>>;
}

/** The end of a lookup, `ms` after its start, with exit status `rc`. */
export interface MeasuredResult {
  readonly ms: number;
  readonly rc?: number;
  readonly err: string;
  readonly addrs: readonly string[];
}

/** Milliseconds since the first query, then protocol, server, port number, ID, name, type, edns, flags and answer. */
export type MeasuredQuery = readonly [
  number,
  string,
  string,
  number,
  number,
  string,
  string,
  string,
  string,
  string,
];

/** `seq` is a short form of the order of its queries. */
export interface Run {
  readonly client: string;
  readonly result: readonly MeasuredResult[];
  readonly seq: string;
  readonly queries: readonly MeasuredQuery[];
  readonly debug?: readonly string[];
}

export interface Measured {
  readonly scenario: Scenario;
  readonly runs: readonly Run[];
}

const directory = new URL('../resolvers/measured/', import.meta.url);

/** All recorded runs, in scenario order. */
export function readMeasured(): Measured[] {
  return readdirSync(directory)
    .filter((file) => /^\d+[a-z]?\.json$/.test(file))
    .sort((one, other) => Number.parseInt(one) - Number.parseInt(other) || one.localeCompare(other))
    .map((file) => JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as Measured);
}

/** The client that a label in the measurement refers to, and its hints. */
export interface Labelled {
  readonly client: Client;
  readonly families: readonly AddressFamily[];
  readonly addrConfig: boolean;
  readonly env: Readonly<Record<string, string>>;
}

const labels: Readonly<
  Record<
    string,
    {
      client: string;
      families?: AddressFamily[];
      addrConfig?: boolean;
      env?: Record<string, string>;
    }
  >
> = {
  glibc: { client: 'glibc@2.36' },
  'glibc@alt': { client: 'glibc@2.41' },
  glibc4: { client: 'glibc@2.36', families: [4] },
  'glibc-ac': { client: 'glibc@2.36', addrConfig: true },
  'glibc-null': { client: 'glibc@2.36', addrConfig: true },
  ahosts: { client: 'getent-ahosts' },
  hosts: { client: 'getent-hosts' },
  gocgo: { client: 'cgo@1.19' },
  python: { client: 'python@3.11' },
  node: { client: 'node@20.20' },
  'node-http': { client: 'node@20.20', addrConfig: true },
  curl: { client: 'curl' },
  java: { client: 'java@17' },
  musl: { client: 'musl@1.2.3' },
  'musl@alt': { client: 'musl@1.2.5' },
  musl4: { client: 'musl@1.2.3', families: [4] },
  'musl-ac': { client: 'musl@1.2.3', addrConfig: true },
  'musl-null': { client: 'musl@1.2.3' },
  go: { client: 'go@1.19' },
  'go@alt': { client: 'go@1.24' },
  go4: { client: 'go@1.19', families: [4] },
  goauto: { client: 'go@1.19', env: { CGO_ENABLED: '1' } },
  'goauto@alt': { client: 'go@1.24', env: { CGO_ENABLED: '1' } },
  'node-res': { client: 'node-resolve@20.20' },
  cares: { client: 'c-ares@1.18.1' },
  'cares@alt': { client: 'c-ares@1.34.5' },
  evdns: { client: 'evdns' },
  nslookup: { client: 'nslookup' },
  busybox: { client: 'busybox' },
};

/** The model, or null if there is none. */
export function labelled(label: string): Labelled | null {
  const entry = labels[label];
  const client = entry === undefined ? null : findClient(entry.client);
  if (entry === undefined || client === null) return null;
  return {
    client,
    families: entry.families ?? [4, 6],
    addrConfig: entry.addrConfig ?? false,
    env: entry.env ?? {},
  };
}

/** Converts the zone to rules for an answers file. */
export function rulesOf({ zone }: Scenario): object[] {
  return Object.entries(zone).map(([key, answer]) => {
    const [, server, name, type] = /^(?:@(\S+) )?(\S+) (\S+)$/.exec(key) ?? [];
    return server === undefined ? { name, type, answer } : { server, name, type, answer };
  });
}

function scriptOf(scenario: Scenario): Script {
  const routed =
    scenario.net === 'nodef'
      ? serversIn(scenario.resolv).filter((one) => !scenario.listen.includes(one))
      : [];
  return parseAnswers(
    {
      rules: rulesOf(scenario),
      closed: scenario.closed ?? [],
      unrouted: scenario.unrouted ?? [],
      noroute: routed,
      notcp: scenario.notcp ?? [],
    },
    scenario.id,
  );
}

function serversIn(resolv: string): string[] {
  return [...resolv.matchAll(/^nameserver (\S+)/gm)].map((match) => match[1] ?? '');
}

const addressesOf: Readonly<Record<string, readonly string[]>> = {
  ll: ['10.244.0.10', 'fe80::1'],
  nodef: ['10.244.0.10', 'fe80::1'],
  dual: ['10.244.0.10', '2001:db8:1::10'],
  no6: ['10.244.0.10'],
  no6if: ['10.244.0.10'],
  v4: ['10.244.0.10'],
  lo: [],
};

function settingsOf(scenario: Scenario, env: Readonly<Record<string, string>>): Settings {
  return {
    resolvConf: scenario.resolv,
    nsswitch: scenario.nss === '' ? '' : `hosts: ${scenario.nss}\n`,
    hosts: scenario.hosts,
    hostAliases: null,
    env: { ...scenario.env, ...env },
    host: {
      hostname: 'mypod',
      addresses: addressesOf[scenario.net] ?? ['10.244.0.10', 'fe80::1'],
      loopback: scenario.net === 'no6' ? [4] : [4, 6],
    },
  };
}

/** Runs until it is done or until this much virtual time has passed. */
export async function runFor(
  clock: VirtualClock,
  work: Promise<void>,
  limitMs: number,
): Promise<void> {
  try {
    await clock.run(work, limitMs);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('still waiting'))) throw error;
  }
}

const oneShot = new Set(['getent-ahosts', 'getent-hosts', 'curl', 'nslookup', 'busybox']);

/** A client model's run in a scenario. */
export interface ModelRun {
  readonly planned: number;
  readonly results: readonly { readonly found: LookupOutcome; readonly ms: number }[];
  readonly exchanges: readonly SentQuery[];
  readonly steps: readonly string[];
}

/** Runs the model as often as the scenario requires, for at most `limitMs` of virtual time. */
export async function runModel(
  scenario: Scenario,
  by: Labelled,
  random: Random = seededRandom(7),
  limitMs = 115_000,
  startsInOrder = false,
): Promise<ModelRun> {
  // A command-line tool performs one lookup.
  const repeat = oneShot.has(by.client.name) ? 1 : (scenario.repeat ?? 1);
  const clock = new VirtualClock();
  const trace = new Trace(clock);
  const network = new ScriptedNetwork(clock, scriptOf(scenario), trace);
  const settings = settingsOf(scenario, by.env);
  const context = { network, trace, random, settings, startsInOrder };
  const session = by.client.open(context);
  const results: { found: LookupOutcome; ms: number }[] = [];
  const all = async (): Promise<void> => {
    for (let count = 0; count < repeat; count++) {
      const start = clock.now();
      const found = await session.lookup({
        name: scenario.name,
        families: by.families,
        addrConfig: by.addrConfig,
      });
      results.push({ found, ms: clock.now() - start });
    }
  };
  await runFor(clock, all(), limitMs);
  return {
    planned: repeat,
    results,
    exchanges: trace.exchanges,
    steps: trace.steps.map((step) => step.text),
  };
}
