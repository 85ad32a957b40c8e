/**
 * Checks that all text for human readers is plain English: `node tools/prose.ts [--wrap] [AREA|FILE…]`. Lists the
 * faults in all files, or in the given areas and files, and fails if there are any. `--wrap` rewraps wide paragraphs on
 * the given pages.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { areas, type Area } from './prose/areas.ts';
import { wrapPage } from './prose/wrap.ts';
import { changeText, faultsOf, type ProseFault } from './prose/faults.ts';

/**
 * A permitted match and the reason why it is permitted. Without `text`, the rule is disabled for the whole file. The
 * rule `*` means all rules.
 */
interface Exception {
  readonly file: string;
  readonly rule: string;
  readonly text?: string;
  readonly reason: string;
}

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

const print = ({ file, line, rule, text, write }: ProseFault): string =>
  `${file}:${line}: ${rule}: "${text}"${write === '' ? '' : ` → ${write}`}`;

function main(): void {
  const { values, positionals } = parseArgs({
    options: { wrap: { type: 'boolean' } },
    allowPositionals: true,
  });
  const isNamed = ({ name }: Area, file: string): boolean =>
    positionals.some((word) => name === word || file.startsWith(word));
  const all = areas();
  if (values.wrap === true) {
    for (const area of all)
      for (const file of area.files)
        if (file.endsWith('.md') && isNamed(area, file))
          writeFileSync(file, changeText(file, readFileSync(file, 'utf8'), wrapPage));
    return;
  }
  const isWhole = positionals.length === 0;
  let total = 0;
  for (const area of all)
    for (const file of area.files) {
      if (!isWhole && !isNamed(area, file)) continue;
      for (const fault of faultsOf(file, readFileSync(file, 'utf8'), area.opening)) {
        if (isException(fault)) continue;
        total++;
        console.log(print(fault));
      }
    }
  const unneeded = isWhole ? exceptions.filter((exception) => !used.has(exception)) : [];
  for (const exception of unneeded)
    console.log(`${EXCEPTIONS}: nothing needs this exception: ${JSON.stringify(exception)}`);
  console.log(`${total} faults`);
  if (total + unneeded.length > 0) process.exitCode = 1;
}

main();
