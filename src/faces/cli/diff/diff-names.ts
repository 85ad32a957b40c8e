/** `--names`: reads names to compare from a list, a log, a capture or a dnstap stream. */
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import { noTimesRemark } from '../../../tools/capture/read/records/query-log.ts';
import { absoluteName, isDomainName } from '../../../server/corefile/zones.ts';
import type { NamedType } from '../../../tools/diff/witnesses.ts';
import { TYPE, typeNumber } from '../../../server/wire/iana.ts';
import type { Io } from '../command.ts';
import { readGiven } from '../capture/reading-progress.ts';

/** Limit on names. More would exceed the number of queries that diff sends. */
const NAMES_MAX = 50_000;

/**
 * Reads each distinct name in a file, along with its types. If the text is not a log, its lines must look like `NAME
 * [TYPE…]`. Reports skipped lines.
 */
export async function readNames(
  path: string,
  io: Pick<Io, 'err' | 'progress'>,
): Promise<readonly NamedType[]> {
  const found = new Map<string, Set<number>>();
  let queries = 0;
  let odd = 0;
  let firstOdd = '';
  const add = (given: string, types: readonly number[]): void => {
    const name = absoluteName(given.toLowerCase());
    const known = found.get(name) ?? new Set<number>();
    if (!found.has(name) && found.size >= NAMES_MAX) return;
    for (const type of types) known.add(type);
    found.set(name, known);
  };
  const reading = new Reading({
    begun: ({ name, type }) => {
      queries++;
      if (isDomainName(name)) add(name, [type]);
    },
    entry(line) {
      const [name = '', ...words] = line.trim().split(/\s+/);
      const types = words.map((word) => typeNumber(word.toUpperCase()));
      if (name === '' || name.startsWith('#')) return;
      if (!isDomainName(name) || types.includes(null)) {
        if (odd++ === 0) firstOdd = line.trim().slice(0, 60);
      } else
        add(name, words.length === 0 ? [TYPE.A, TYPE.AAAA] : types.filter((type) => type !== null));
    },
  });
  await readGiven(reading, path, io, () => found.size >= NAMES_MAX);
  if (found.size >= NAMES_MAX)
    reading.remarks.add(`${path}: only the first ${NAMES_MAX} names are queried`);
  // In a list, odd lines are errors, unless the file is not a list of names at all.
  if (queries === 0 && odd > 0)
    reading.remarks.add(
      `${path}: ${odd === 1 ? 'a line is' : `${odd} lines are`} neither NAME nor NAME TYPE…, and ignored; the first: ${JSON.stringify(firstOdd)}`,
    );
  if (found.size === 0) reading.remarks.add(`${path} holds no names`);
  for (const remark of reading.remarks.list)
    // Replies do not depend on query times.
    if (remark.text !== noTimesRemark) io.err(`ndots diff: ${printRemark(remark)}\n`);
  return [...found].map(([name, types]) => ({ name, types: [...types] }));
}
