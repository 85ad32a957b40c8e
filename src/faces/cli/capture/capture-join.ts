/** `ndots capture join`: finds the part of the path where queries and replies were lost. */
import { basename } from 'node:path';
import { printElapsed } from '../../../server/base/elapsed.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { Filter } from '../../../tools/capture/filter.ts';
import {
  join,
  joinLimit,
  Vantage,
  type Join,
  type JoinedExchange,
  type PathStretch,
} from '../../../tools/capture/join.ts';
import { unfinishedText } from '../../../tools/capture/pair/seen-exchange.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import type { CaptureOptions } from './capture-options.ts';
import type { ExchangeTexts } from './capture-output.ts';
import { EXIT, type Io } from '../command.ts';
import { count } from '../../../server/base/counted.ts';
import { type Paint } from '../page.ts';
import { readGiven } from './reading-progress.ts';

/** Limit on listed lost queries. The rest are only counted. */
const SHOWN = 20;

/**
 * Compares captures and reports where queries were lost.
 * @returns the exit code: 0 if nothing was lost, otherwise 1
 */
export async function captureJoin(
  options: CaptureOptions,
  parts: {
    readonly io: Io;
    readonly paint: Paint;
    readonly texts: ExchangeTexts;
    readonly filter: Filter;
    readonly ports: readonly number[];
    readonly remarks: (reading: Reading, name: string) => void;
  },
): Promise<number> {
  const { io, paint, texts, filter } = parts;
  const vantages: Vantage[] = [];
  for (const path of options.files) {
    const vantage = new Vantage(path, Math.floor(joinLimit.default / options.files.length));
    const reading = new Reading({ ended: (exchange) => vantage.add(exchange) }, parts.ports);
    const input = await readGiven(reading, path, io, () => vantage.isOver);
    // A file that is not a capture would look like a capture point that no query reached.
    if ((input.format === 'text' || input.format === 'empty') && reading.totals.exchanges === 0)
      throw new Problem({
        code: 'capture-unreadable',
        text: `cannot read ${path}: it is ${input.format === 'empty' ? 'empty' : 'not a capture, dnstap file or query log'}`,
      });
    if (vantage.leftOut > 0)
      reading.remarks.add(
        `only the first ${vantage.exchanges.length} exchanges are compared; use shorter captures to compare all of them`,
      );
    parts.remarks(reading, path);
    vantages.push(vantage);
  }
  const joined = join(vantages);
  const paths = vantages.map(({ name }) => name);
  const wanted = joined.exchanges.filter(({ exchange }) => filter(exchange));
  const lost = wanted.filter((each) => each.lost !== null && each.exchange.ending !== 'open');
  if (options.output === 'json') {
    for (const each of lost)
      io.out(
        `${JSON.stringify({ ...texts.document(each.exchange), lost: place(each.lost!, paths) })}\n`,
      );
    return lost.length > 0 ? EXIT.no : EXIT.ok;
  }
  io.out(text(joined, wanted, lost, shortNames(paths), texts, paint));
  if (wanted.length === 0) return EXIT.failed;
  return lost.length > 0 ? EXIT.no : EXIT.ok;
}

function text(
  { exchanges, aheadMs, matched }: Join,
  all: readonly JoinedExchange[],
  lost: readonly JoinedExchange[],
  names: readonly string[],
  { row }: ExchangeTexts,
  paint: Paint,
): string {
  const lines = names.map((name, index) => {
    if (index === 0)
      return `${name}  ${count(matched[0]!, 'query', 'queries')}: ${endingText(exchanges)}`;
    const ahead = aheadMs[index]!;
    const clock =
      ahead === 0
        ? ''
        : `; its clock is ${printElapsed(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}`;
    return `${name}  saw ${matched[index]} of them${clock}`;
  });
  const open = all.filter(({ exchange }) => exchange.ending === 'open').length;
  lines.push('', `${lost.length} of ${all.length - open} got no reply${unfinishedText(open)}.`);
  const groups = [...Map.groupBy(lost, (each) => sentence(each.lost!, names))];
  const most = Math.ceil(SHOWN / Math.max(1, groups.length));
  for (const [where, theirs] of groups.toSorted(([, a], [, b]) => b.length - a.length)) {
    lines.push('', `${paint.bad(String(theirs.length))}  ${where}:`);
    for (const { exchange } of theirs.slice(0, most)) lines.push(`  ${row(exchange)}`);
    if (theirs.length > most)
      lines.push(paint.dim(`  … and ${theirs.length - most} more (-o json lists all)`));
  }
  return `${lines.join('\n')}\n`;
}

/** `138 answered, 2 without reply, 4 more still waiting at the end`. */
function endingText(exchanges: readonly JoinedExchange[]): string {
  const open = exchanges.filter(({ exchange }) => exchange.ending === 'open').length;
  const answered = exchanges.filter(({ lost }) => lost === null).length;
  const lost = exchanges.length - answered - open;
  return `${answered} answered, ${lost} without reply${unfinishedText(open)}`;
}

/** The names without directories, unless two of them would be the same. */
function shortNames(paths: readonly string[]): readonly string[] {
  const short = paths.map((path) => basename(path));
  return new Set(short).size === paths.length ? short : paths;
}

/** Describes a path segment for people. */
function sentence({ what, from, to }: PathStretch, names: readonly string[]): string {
  if (to >= names.length)
    return `the query reached ${names[from]}, but no reply left it, so the server behind it did not answer`;
  return `the ${what} was seen at ${names[from]} but not at ${names[to]}, so it was lost between them`;
}

function place({ what, from, to }: PathStretch, names: readonly string[]): object {
  return { what, seenAt: names[from], notAt: names[to] ?? null };
}
