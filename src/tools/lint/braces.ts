/**
 * Finds the missing or extra brace in a Corefile whose braces do not match. The parser detects this only at the end of
 * the text, but the indentation shows where the author meant it to be.
 */
import {
  missingAtEnd,
  missingBrace,
  missingOpening,
  readBraceLines,
  surplusBrace,
  type BraceFault,
  type BraceLine,
  type MissingBrace,
} from './brace-lines.ts';

/** A line that cannot be where it is: a directive inside another one, or a server block inside a server block. */
export interface Misplaced {
  readonly line: number;
  readonly what: 'directive' | 'server block';
}

interface Open extends BraceLine {
  /** True if the lines inside are indented more than this one. */
  indented: boolean | null;
}

/** A closing brace that is indented more than the line with the opening one. */
interface Suspect {
  readonly brace: BraceLine;
  readonly opener: BraceLine;
}

/**
 * The probable mistake. Null if there are as many closing braces as opening ones, or if quotes hide the difference.
 *
 * @param inserted the numbers of the lines that a correction inserted, which the file does not contain
 */
export function braceFault(
  file: string,
  text: string,
  misplaced: Misplaced | null,
  inserted: ReadonlySet<number> = new Set(),
): BraceFault | null {
  const lines = readBraceLines(file, text, inserted);
  if (lines === null) return null;
  const stack: Open[] = [];
  const candidates: MissingBrace[] = [];
  const suspects: Suspect[] = [];
  for (const line of lines) {
    const top = stack.at(-1);
    if (line.word === '}') {
      if (top === undefined) return surplus(lines, line, suspects);
      stack.pop();
      if (line.indent < top.indent)
        candidates.push(missingBrace(top, line, `This } is indented less than '${top.word}'`));
      if (line.indent > top.indent && !line.inserted) suspects.push({ brace: line, opener: top });
      continue;
    }
    if (top !== undefined) {
      top.indented ??= line.indent > top.indent;
      if (top.indented && line.indent <= top.indent) {
        const how = line.indent === top.indent ? 'like' : 'less than';
        candidates.push(missingBrace(top, line, `'${line.word}' is indented ${how} '${top.word}'`));
      }
    }
    if (line.opens) stack.push({ ...line, indented: null });
    if (line.closes && stack.pop() === undefined) return surplus(lines, line, suspects);
  }
  const open = stack.at(-1);
  if (open === undefined) return null;
  const balancing = balancingPlaces(lines);
  const balanced = candidates.find(({ line }) => balancing.has(line));
  const [first = null] = balanced === undefined ? candidates : [balanced];
  const inside = misplacedFault(lines, misplaced);
  // A line that cannot be in this block proves that the block ends above it, whatever its indentation says.
  if (first !== null && inside !== null)
    return inside.opener === first.opener && inside.line < first.line ? inside : first;
  if (first !== null || inside !== null) return first ?? inside;
  return missingAtEnd(open, lines.at(-1)!);
}

/** The `}` that is missing before a misplaced line, or null if there is no such line inside braces. */
function misplacedFault(
  lines: readonly BraceLine[],
  misplaced: Misplaced | null,
): MissingBrace | null {
  const wrong = lines.find(({ number }) => number === misplaced?.line);
  const owner = wrong === undefined ? null : openAt(lines, wrong);
  if (wrong === undefined || owner === null || misplaced === null) return null;
  const how = misplaced.what === 'directive' ? 'is a directive' : 'looks like a server block';
  return missingBrace(owner, wrong, `'${wrong.word}' ${how}`);
}

/** The mistake behind a `}` that closes nothing. */
function surplus(
  lines: readonly BraceLine[],
  end: BraceLine,
  suspects: readonly Suspect[],
): BraceFault | null {
  // A } that an earlier correction inserted proves that correction wrong, and nothing about the file.
  if (end.inserted) return null;
  const key = unopenedBlock(lines, end);
  if (key !== null) return missingOpening(key, 'The next line is indented further.');
  for (const { brace, opener } of suspects) {
    const line = unopenedBy(lines, brace);
    if (line === null) continue;
    const why = `The next line is indented further, and the } at ${brace.place} closes '${opener.word}'`;
    return missingOpening(line, why);
  }
  // Some files indent the } of every block. One that is followed by lines of its block is the wrong one.
  const suspect = suspects.find((each) => isInside(lines, end, each)) ?? suspects[0];
  if (suspect === undefined) {
    const hint = 'There may be an extra } above that ends a block earlier than it seems.';
    return surplusBrace(end, null, hint);
  }
  const { brace, opener } = suspect;
  const hint = `It is indented further than '${opener.word}', and the } at ${end.place} then closes nothing`;
  return surplusBrace(brace, opener, hint);
}

/** True if the line after a } is in the block that the } closes, or is the } that then closes nothing. */
function isInside(
  lines: readonly BraceLine[],
  end: BraceLine,
  { brace, opener }: Suspect,
): boolean {
  const next = lines[brace.index + 1];
  return next !== undefined && (next === end || next.indent > opener.indent);
}

/** The line that this } would close if it ended with {, or null if there is none. */
function unopenedBy(lines: readonly BraceLine[], brace: BraceLine): BraceLine | null {
  if (brace.owner === null) return null;
  const [line, next] = [lines[brace.owner], lines[brace.owner + 1]];
  if (line === undefined || line.opens || next === undefined) return null;
  return next.indent > line.indent ? line : null;
}

/** The first line outside of braces that is followed by lines from inside a block, or null if there is none. */
function unopenedBlock(lines: readonly BraceLine[], end: BraceLine): BraceLine | null {
  let depth = 0;
  for (const [index, line] of lines.entries()) {
    if (line === end) return null;
    const next = lines[index + 1]!;
    const isKey = depth === 0 && !line.opens && line.indent <= lines[0]!.indent;
    if (isKey && next.word !== '}' && next.indent > line.indent) return line;
    if (line.word === '}' || line.closes) depth--;
    if (line.opens) depth++;
  }
  return null;
}

/** The numbers of the lines before which one more } would make the braces match. */
function balancingPlaces(lines: readonly BraceLine[]): ReadonlySet<number> {
  let depth = 0;
  const depths = lines.map(({ word, opens, closes }) => {
    const closed = word === '}' || closes ? depth - 1 : depth;
    depth = opens ? closed + 1 : closed;
    return closed;
  });
  if (depth !== 1 || depths.some((each) => each < 0)) return new Set();
  // From there on, every line is inside of braces even if all are one level less deep.
  const from = depths.findLastIndex((each) => each < 1) + 1;
  return new Set(lines.slice(from).map(({ number }) => number));
}

/** The line whose brace is still open at this line. */
function openAt(lines: readonly BraceLine[], at: BraceLine): BraceLine | null {
  const stack: BraceLine[] = [];
  for (const line of lines) {
    if (line === at) break;
    if (line.word === '}') stack.pop();
    if (line.opens) stack.push(line);
  }
  return stack.at(-1) ?? null;
}
