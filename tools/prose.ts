/**
 * Checks that everything a person reads is plain English: `node tools/prose.ts [--record | --wrap] [AREA|FILE…]`.
 *
 * Without names it compares the number of faults of each area with `counts.json` and fails where one rose. With names it
 * lists the faults of those areas or files. `--wrap` fills wide paragraphs of the pages that are named. `--record` stores counts that fell; a count that rose has to be written by hand.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { areas, type Area } from './prose/areas.ts';
import { wrapPage } from './prose/wrap.ts';
import { lowered, risen, type Counts } from './prose/ratchet.ts';
import { changeText, faultsOf, type ProseFault } from './prose/faults.ts';

/** A match that stays, and why. Without `text` the rule is off for the file; the rule `*` is all rules. */
interface Exception {
  readonly file: string;
  readonly rule: string;
  readonly text?: string;
  readonly reason: string;
}

const COUNTS = 'tools/prose/counts.json';
const EXCEPTIONS = 'tools/prose/exceptions.json';

const exceptions = JSON.parse(readFileSync(EXCEPTIONS, 'utf8')) as readonly Exception[];
const used = new Set<Exception>();

function isException(fault: ProseFault): boolean {
  const match = exceptions.find(
    ({ file, rule, text }) =>
      file === fault.file &&
      (rule === '*' || rule === fault.rule) &&
      (text === undefined || fault.text.includes(text)),
  );
  if (match !== undefined) used.add(match);
  return match !== undefined;
}

function faultsOfArea({ files, opening }: Area): ProseFault[] {
  return files
    .flatMap((file) => faultsOf(file, readFileSync(file, 'utf8'), opening))
    .filter((fault) => !isException(fault));
}

const print = ({ file, line, rule, text, write }: ProseFault): string =>
  `${file}:${line}: ${rule}: "${text}"${write === '' ? '' : ` → ${write}`}`;

function main(): void {
  const { values, positionals } = parseArgs({
    options: { record: { type: 'boolean' }, wrap: { type: 'boolean' } },
    allowPositionals: true,
  });
  const all = areas();
  if (values.wrap === true) {
    for (const file of all.flatMap(({ files }) => files))
      if (file.endsWith('.md') && positionals.some((name) => file.startsWith(name)))
        writeFileSync(file, changeText(file, readFileSync(file, 'utf8'), wrapPage));
    return;
  }
  if (positionals.length > 0) {
    for (const area of all)
      for (const fault of faultsOfArea(area))
        if (positionals.some((name) => area.name === name || fault.file.startsWith(name)))
          console.log(print(fault));
    return;
  }
  const recorded = JSON.parse(readFileSync(COUNTS, 'utf8')) as Counts;
  const found = new Map(all.map((area) => [area.name, faultsOfArea(area)]));
  const counts = Object.fromEntries([...found].map(([name, { length }]) => [name, length]));
  for (const name of risen(counts, recorded)) {
    process.exitCode = 1;
    const limit = recorded[name] ?? 0;
    console.error(`${name}: ${counts[name]} faults, and ${limit} are recorded in ${COUNTS}`);
    const faults = found.get(name)!;
    const shown = limit === 0 ? faults : changed(faults);
    for (const fault of shown.slice(0, 20)) console.error(`  ${print(fault)}`);
    console.error(`  all of them: node tools/prose.ts '${name}'`);
  }
  for (const exception of exceptions)
    if (!used.has(exception)) {
      process.exitCode = 1;
      console.error(`${EXCEPTIONS}: nothing needs this exception: ${JSON.stringify(exception)}`);
    }
  if (values.record === true)
    writeFileSync(COUNTS, `${JSON.stringify(lowered(counts, recorded), null, 2)}\n`);
  const total = Object.values(counts).reduce((a, b) => a + b, 0);
  console.log(`${total} faults in ${all.length} areas`);
}

/** Faults in files that differ from the last commit, which are most likely the new ones; all of them if there are none. */
function changed(faults: readonly ProseFault[]): readonly ProseFault[] {
  const { stdout } = spawnSync('git', ['diff', '--name-only', 'HEAD'], { encoding: 'utf8' });
  const files = new Set(stdout.split('\n'));
  const own = faults.filter(({ file }) => files.has(file));
  return own.length > 0 ? own : faults;
}

main();
