/**
 * Measures how often real resolvers show each trait: `node test/kit/measure-traits.ts` updates the `measured` section
 * of src/tools/capture/fingerprint/asking-classes.json. It reads the recorded runs (test/resolvers) and the captures of
 * single programs (test/captures/clients) with the code that `doctor` uses. With `--compare`, it prints the measured
 * shares next to those that recognition uses.
 */
import { readdirSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  askingProfiles,
  classes,
  kinds,
  smoothed,
  type AskingProfiles,
  type Kind,
  type MeasuredTraits,
} from '../../src/tools/capture/fingerprint/asking-classes.ts';
import { traitNames, type Trait } from '../../src/tools/capture/fingerprint/lookup-traits.ts';
import { Recognition } from '../../src/tools/capture/fingerprint/recognition.ts';
import { openFile } from '../../src/tools/capture/read/input.ts';
import { Reading } from '../../src/tools/capture/read/reading.ts';
import { readMeasured, type MeasuredQuery } from './measured.ts';
import { recordedPackets } from './recorded-capture.ts';
import { readRecorded } from './recorded.ts';

const profileFile = new URL(
  '../../src/tools/capture/fingerprint/asking-classes.json',
  import.meta.url,
);
const captures = new URL('../captures/clients/', import.meta.url);

const onGlibc: ReadonlySet<string> = new Set([
  ...['glibc', 'glibc-ac', 'glibc-null', 'ahosts', 'getent-ahosts', 'gocgo', 'cgo', 'python'],
  ...['node', 'node-http', 'curl', 'java'],
]);

/** The kind of a recorded client that asks for both families, or null for any other. */
export function recordedKind(client: string): Kind | null {
  // Its image is based on Alpine.
  if (client === 'python@3.6') return 'musl';
  const [name = ''] = client.split('@');
  if (onGlibc.has(name)) return 'glibc';
  if (['musl', 'musl-ac', 'musl-null'].includes(name)) return 'musl';
  if (name === 'cares' || name === 'c-ares') return 'c-ares';
  return name === 'go' || name === 'evdns' ? name : null;
}

/** Options that change a trait. The classes for them are edited by hand. */
const changing = /\b(?:edns0|single-request|use-vc|rotate|trust-ad)/;

/** The recorded runs with usual options that ask for both families. */
function* usualRuns(): Generator<readonly [kind: Kind, queries: readonly MeasuredQuery[]]> {
  const of = (client: string, settings: readonly unknown[]): Kind | null =>
    changing.test(JSON.stringify(settings)) ? null : recordedKind(client);
  for (const { scenario, runs } of readMeasured())
    for (const { client, queries } of runs) {
      const kind = of(client, [scenario.resolv, scenario.env]);
      if (kind !== null) yield [kind, queries];
    }
  for (const { resolv, env, families, runs } of readRecorded())
    for (const { client, queries } of families.length === 2 ? runs : []) {
      const kind = of(client, [resolv, env]);
      if (kind !== null) yield [kind, queries];
    }
}

type Sums = Map<string, Map<Trait, [shown: number, seen: number]>>;

function add(sums: Sums, source: string, { traitCounts }: Recognition): void {
  const sum = sums.get(source) ?? new Map<Trait, [number, number]>();
  sums.set(source, sum);
  for (const [trait, present, absent] of traitCounts) {
    const [shown, seen] = sum.get(trait) ?? [0, 0];
    sum.set(trait, [shown + present, seen + present + absent]);
  }
}

/** The `measured` section: by kind for the resolvers, by capture for tools and forwarders. */
export async function measureTraits(): Promise<AskingProfiles['measured']> {
  const sums: Sums = new Map();
  for (const [kind, queries] of usualRuns()) {
    const recognition = new Recognition();
    const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
    for (const { bytes, timeMs } of recordedPackets(queries, '10.244.0.9', 1.7e12))
      reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
    reading.end();
    add(sums, kind, recognition);
  }
  for (const file of readdirSync(captures).toSorted()) {
    const source = basename(file, '.pcap.gz');
    // Several programs behind one address.
    if (source.includes('-and-') || source === 'glibc-musl-go-c-ares') continue;
    const recognition = new Recognition();
    const reading = new Reading({ lookup: (lookup) => recognition.add(lookup) });
    await reading.read(await openFile(fileURLToPath(new URL(file, captures)), reading.remarks));
    reading.end();
    add(sums, source, recognition);
  }
  const order = [...new Set([...kinds, ...sums.keys()])].filter((source) => sums.has(source));
  return Object.fromEntries(
    order.map((source) => {
      const sum = sums.get(source)!;
      const traits = traitNames.filter((trait) => sum.has(trait));
      return [source, Object.fromEntries(traits.map((trait) => [trait, sum.get(trait)!]))];
    }),
  );
}

/** The length of the file's lines. */
const COLUMNS = 120;

/** Prints JSON with small objects and lists on one line. */
export function printProfiles(value: unknown, indent = ''): string {
  const line = JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ');
  if (typeof value !== 'object' || value === null || indent.length + line.length < COLUMNS)
    return line;
  const deeper = `${indent}  `;
  const rows = Array.isArray(value)
    ? value.map((each) => printProfiles(each, deeper))
    : Object.entries(value).map(
        ([key, each]) => `${JSON.stringify(key)}: ${printProfiles(each, deeper)}`,
      );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${rows.map((row) => deeper + row).join(',\n')}\n${indent}${close}`;
}

/** The whole file, with a new `measured` section. */
export async function profilesText(): Promise<string> {
  return `${printProfiles({ ...askingProfiles, measured: await measureTraits() })}\n`;
}

/** Prints each measured share, its number of lookups, and the share that recognition uses. */
function printComparison(source: string, counts: MeasuredTraits, index: number): void {
  console.log(`\n${source}`);
  for (const [trait, [shown, seen]] of Object.entries(counts)) {
    const used = classes[index]!.shares[trait as Trait];
    const share = smoothed([shown, seen]);
    console.log(
      `  ${trait.padEnd(36)} ${share.toFixed(1).padStart(5)} of ${seen}, used ${used.toFixed(1)}`,
    );
  }
}

if (import.meta.main) {
  if (process.argv.includes('--compare'))
    for (const [source, counts] of Object.entries(askingProfiles.measured)) {
      const index = askingProfiles.classes.findIndex(
        ({ kind, like }) => kind === source || like?.includes(source),
      );
      if (index >= 0) printComparison(source, counts, index);
    }
  else writeFileSync(profileFile, await profilesText());
}
