/**
 * Finds the missing or extra brace in a Corefile whose braces do not match. The parser detects this only at the end of
 * the text, but the indentation shows where the author meant it to be.
 */

/** The probable mistake, by lines and columns in the text. */
export interface BraceFault {
  readonly line: number;
  readonly column: number;
  readonly text: string;
  readonly hint: string | null;
  readonly remedy: string;
  /** True if a block ends too early, which loses the rest even if it parses. */
  readonly loses: boolean;
  /** The correction of the line. */
  readonly correction: 'close-before' | 'close-after' | 'open' | 'remove';
}

/** A line that cannot be where it is: a directive inside another one, or a server block inside a server block. */
export interface Misplaced {
  readonly line: number;
  readonly what: 'directive' | 'server block';
}

interface Line {
  /** Its place in the list of lines. */
  readonly index: number;
  readonly number: number;
  /** `Corefile:3`. */
  readonly place: string;
  readonly indent: number;
  /** The nearest line above with the same indentation that is not a closing brace, by its place in the list. */
  readonly owner: number | null;
  /** The first word. */
  readonly word: string;
  readonly opens: boolean;
  /** True if a } follows other words. */
  readonly closes: boolean;
}

interface MissingBrace extends BraceFault {
  /** The number of the line that opened the block. */
  readonly opener: number;
}

interface Open extends Line {
  /** True if the lines inside are indented more than this one. */
  indented: boolean | null;
}

/** A closing brace that is indented more than the line with the opening one. */
interface Suspect {
  readonly brace: Line;
  readonly opener: Line;
}

/** The probable mistake. Null if there are as many closing braces as opening ones, or if quotes hide the difference. */
export function braceFault(
  file: string,
  text: string,
  misplaced: Misplaced | null,
): BraceFault | null {
  const lines = readLines(file, text);
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
        candidates.push(missing(top, line, `This } is indented less than '${top.word}'`));
      if (line.indent > top.indent) suspects.push({ brace: line, opener: top });
      continue;
    }
    if (top !== undefined) {
      top.indented ??= line.indent > top.indent;
      if (top.indented && line.indent <= top.indent) {
        const how = line.indent === top.indent ? 'like' : 'less than';
        candidates.push(missing(top, line, `'${line.word}' is indented ${how} '${top.word}'`));
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
  const last = lines.at(-1)!;
  return {
    line: last.number,
    column: last.indent + 1,
    text: `the } for '${open.word}' (${open.place}) is missing at the end of the file`,
    hint: null,
    remedy: 'Add a line with }.',
    loses: false,
    correction: 'close-after',
  };
}

/** The `}` that is missing before a misplaced line, or null if there is no such line inside braces. */
function misplacedFault(lines: readonly Line[], misplaced: Misplaced | null): MissingBrace | null {
  const wrong = lines.find(({ number }) => number === misplaced?.line);
  const owner = wrong === undefined ? null : openAt(lines, wrong);
  if (wrong === undefined || owner === null || misplaced === null) return null;
  const how = misplaced.what === 'directive' ? 'is a directive' : 'looks like a server block';
  return missing(owner, wrong, `'${wrong.word}' ${how}`);
}

/** A line of a corrected text, with the number of the line that it comes from. */
export interface CorrectedLine {
  readonly text: string;
  readonly from: number;
}

/** The lines of the text with the fault corrected, so that the rest can be checked. */
export function correctedLines(
  lines: readonly string[],
  { line, correction }: Pick<BraceFault, 'line' | 'correction'>,
): readonly CorrectedLine[] {
  return lines.flatMap((text, index) => {
    const from = index + 1;
    if (from !== line) return { text, from };
    switch (correction) {
      case 'close-before':
        return [
          { text: '}', from },
          { text, from },
        ];
      case 'close-after':
        return [
          { text, from },
          { text: '}', from },
        ];
      case 'open':
        return { text: `${text.replace(/(^|\s)#.*/, '').trimEnd()} {`, from };
      case 'remove':
        return { text: text.replace('}', ''), from };
    }
  });
}

/**
 * A quoted text, or the rest of the line if the quote does not end. Without the latter, the search would start again at
 * each escaped quote.
 */
const QUOTED = /"(?:[^"\\]|\\.?)*("|$)/g;

/** The relevant words in each line that is not blank, or null if a quote spans lines. */
function readLines(file: string, text: string): readonly Line[] | null {
  const lines: Line[] = [];
  const owners = new Map<number, number>();
  for (const [index, raw] of text.split('\n').entries()) {
    const bare = raw
      .replaceAll(QUOTED, (quoted, end: string) => (end === '' ? quoted : '""'))
      .replace(/(^|\s)#.*/, '')
      .trimEnd();
    if ((bare.split('"').length - 1) % 2 === 1) return null;
    const [word] = /\S+/.exec(bare) ?? [];
    if (word === undefined) continue;
    const indent = bare.search(/\S/);
    const words = bare.trim().split(/\s+/);
    const braces = words.filter((each) => each === '{' || each === '}');
    const isPair = braces.length > 1;
    const opens = !isPair && words.at(-1) === '{';
    const closes = !isPair && braces[0] === '}' && word !== '}';
    const place = `${file}:${index + 1}`;
    const owner = owners.get(indent) ?? null;
    if (word !== '}') owners.set(indent, lines.length);
    const at = { index: lines.length, number: index + 1, place, indent, owner };
    lines.push({ ...at, word, opens, closes });
  }
  return lines;
}

function missing(opener: Line, before: Line, hint: string): MissingBrace {
  return {
    line: before.number,
    column: before.indent + 1,
    text: `the } for '${opener.word}' (${opener.place}) is missing before this line`,
    hint,
    remedy: 'Add a line with } above this one.',
    loses: false,
    correction: 'close-before',
    opener: opener.number,
  };
}

/** The mistake behind a `}` that closes nothing. */
function surplus(lines: readonly Line[], end: Line, suspects: readonly Suspect[]): BraceFault {
  const key = unopenedBlock(lines, end);
  if (key !== null) return unopened(key, 'The next line is indented further.');
  for (const { brace, opener } of suspects) {
    const line = unopenedBy(lines, brace);
    if (line === null) continue;
    const why = `The next line is indented further, and the } at ${brace.place} closes '${opener.word}'`;
    return unopened(line, why);
  }
  // Some files indent the } of every block. One that is followed by lines of its block is the wrong one.
  const suspect = suspects.find((each) => isInside(lines, end, each)) ?? suspects[0];
  const at = suspect?.brace ?? end;
  const place = {
    line: at.number,
    column: at.indent + 1,
    remedy: 'Remove this }.',
    correction: 'remove',
  } as const;
  if (suspect === undefined)
    return {
      ...place,
      text: 'this } closes nothing',
      hint: 'There may be an extra } above that ends a block earlier than it seems.',
      loses: false,
    };
  const { word, place: from } = suspect.opener;
  return {
    ...place,
    text: `this } closes '${word}' (${from}) too early`,
    hint: `It is indented further than '${word}', and the } at ${end.place} then closes nothing`,
    loses: true,
  };
}

/** True if the line after a } is in the block that the } closes, or is the } that then closes nothing. */
function isInside(lines: readonly Line[], end: Line, { brace, opener }: Suspect): boolean {
  const next = lines[brace.index + 1];
  return next !== undefined && (next === end || next.indent > opener.indent);
}

function unopened(line: Line, hint: string): BraceFault {
  return {
    line: line.number,
    column: line.indent + 1,
    text: `the { for '${line.word}' is missing at the end of this line`,
    hint,
    remedy: 'Add { at the end of this line.',
    loses: true,
    correction: 'open',
  };
}

/** The line that this } would close if it ended with {, or null if there is none. */
function unopenedBy(lines: readonly Line[], brace: Line): Line | null {
  if (brace.owner === null) return null;
  const [line, next] = [lines[brace.owner], lines[brace.owner + 1]];
  if (line === undefined || line.opens || next === undefined) return null;
  return next.indent > line.indent ? line : null;
}

/** The first line outside of braces that is followed by lines from inside a block, or null if there is none. */
function unopenedBlock(lines: readonly Line[], end: Line): Line | null {
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
function balancingPlaces(lines: readonly Line[]): ReadonlySet<number> {
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
function openAt(lines: readonly Line[], at: Line): Line | null {
  const stack: Line[] = [];
  for (const line of lines) {
    if (line === at) break;
    if (line.word === '}') stack.pop();
    if (line.opens) stack.push(line);
  }
  return stack.at(-1) ?? null;
}
