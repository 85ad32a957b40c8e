/** The lines of a Corefile as far as braces are concerned, and what can be wrong with the braces of a line. */

/** The probable mistake, by lines and columns in the text. */
export interface BraceFault {
  readonly line: number;
  readonly column: number;
  readonly text: string;
  readonly hint: string | null;
  readonly remedy: string;
  /** True if a block ends too early, which loses the rest even if it parses. */
  readonly loses: boolean;
  /** The white space before the line that a `}` to insert closes. */
  readonly lead: string;
  /** The correction of the line. A word with a brace in it is replaced by several lines. */
  readonly correction: 'close-before' | 'close-after' | 'open' | 'remove' | SplitWord;
}

/** A word and the lines that replace it. */
export interface SplitWord {
  readonly word: string;
  readonly lines: readonly string[];
}

/** A line that is not blank, and what matters about it. */
export interface BraceLine {
  /** Its place in the list of lines. */
  readonly index: number;
  readonly number: number;
  /** `Corefile:3`. */
  readonly place: string;
  readonly indent: number;
  /** The white space before the first word. */
  readonly lead: string;
  /** True if a correction inserted it, so that no message may cite it. */
  readonly inserted: boolean;
  /** The nearest line above with the same indentation that is not a closing brace, by its place in the list. */
  readonly owner: number | null;
  /** The first word. */
  readonly word: string;
  readonly opens: boolean;
  /** True if a } follows other words. */
  readonly closes: boolean;
}

/** A `}` that is missing before a line. */
export interface MissingBrace extends BraceFault {
  /** The number of the line that opened the block. */
  readonly opener: number;
}

/**
 * A quoted text, or the rest of the line if the quote does not end. Without the latter, the search would start again at
 * each escaped quote.
 */
const QUOTED = /"(?:[^"\\]|\\.?)*("|$)/g;

/** The relevant words in each line that is not blank, or null if a quote spans lines. */
export function readBraceLines(
  file: string,
  text: string,
  inserted: ReadonlySet<number> = new Set(),
): readonly BraceLine[] | null {
  const lines: BraceLine[] = [];
  const owners = new Map<number, number>();
  for (const [index, raw] of text.split('\n').entries()) {
    const bare = raw
      .replaceAll(QUOTED, (quoted, end: string) => (end === '' ? quoted : '""'))
      .replace(/(^|\s)#.*/, '')
      .trimEnd();
    if ((bare.split('"').length - 1) % 2 === 1) return null;
    const [word] = /\S+/.exec(bare) ?? [];
    if (word === undefined) continue;
    const [lead] = /^\s*/.exec(bare)!;
    const indent = lead.length;
    const words = bare.trim().split(/\s+/);
    const braces = words.filter((each) => each === '{' || each === '}');
    const isPair = braces.length > 1;
    const opens = !isPair && words.at(-1) === '{';
    const closes = !isPair && braces[0] === '}' && word !== '}';
    const place = `${file}:${index + 1}`;
    const owner = owners.get(indent) ?? null;
    if (word !== '}') owners.set(indent, lines.length);
    const number = index + 1;
    const at = { index: lines.length, number, place, indent, lead, owner };
    lines.push({ ...at, inserted: inserted.has(number), word, opens, closes });
  }
  return lines;
}

/** The fault of a block without a } before a line. The hint cites that line. */
export function missingBrace(opener: BraceLine, before: BraceLine, hint: string): MissingBrace {
  return {
    line: before.number,
    column: before.indent + 1,
    text: `the } for '${opener.word}' (${opener.place}) is missing before this line`,
    hint: before.inserted ? null : hint,
    remedy: 'Add a line with } above this one.',
    loses: false,
    lead: opener.lead,
    correction: 'close-before',
    opener: opener.number,
  };
}

/** The fault of a block that is still open at the end of the file. */
export function missingAtEnd(opener: BraceLine, last: BraceLine): BraceFault {
  return {
    line: last.number,
    column: last.indent + 1,
    text: `the } for '${opener.word}' (${opener.place}) is missing at the end of the file`,
    hint: null,
    remedy: 'Add a line with }.',
    loses: false,
    lead: opener.lead,
    correction: 'close-after',
  };
}

/** The fault of a line without its {. */
export function missingOpening(line: BraceLine, hint: string): BraceFault {
  return {
    line: line.number,
    column: line.indent + 1,
    text: `the { for '${line.word}' is missing at the end of this line`,
    hint,
    remedy: 'Add { at the end of this line.',
    loses: true,
    lead: line.lead,
    correction: 'open',
  };
}

/** The fault of a } that closes nothing, or that ends the block opened by `closed` too early. */
export function surplusBrace(
  at: BraceLine,
  closed: BraceLine | null,
  hint: string | null,
): BraceFault {
  return {
    line: at.number,
    column: at.indent + 1,
    text:
      closed === null
        ? 'this } closes nothing'
        : `this } closes '${closed.word}' (${closed.place}) too early`,
    hint,
    remedy: 'Remove this }.',
    loses: closed !== null,
    lead: at.lead,
    correction: 'remove',
  };
}

/** A line of a corrected text, with the number of the line that it comes from. */
export interface CorrectedLine {
  readonly text: string;
  readonly from: number;
  /** True if the text as written does not contain it. */
  readonly inserted: boolean;
}

/** The lines of the text with the faults corrected, so that the rest can be checked. */
export function correctedLines(
  lines: readonly string[],
  faults: readonly Pick<BraceFault, 'line' | 'correction' | 'lead'>[],
): readonly CorrectedLine[] {
  const byLine = Map.groupBy(faults, ({ line }) => line);
  return lines.flatMap((written, index) => {
    const from = index + 1;
    const own = byLine.get(from) ?? [];
    const added = (correction: BraceFault['correction']): readonly CorrectedLine[] =>
      own
        .filter((fault) => fault.correction === correction)
        .map(({ lead }) => ({ text: `${lead}}`, from, inserted: true }));
    let text = written;
    for (const { correction } of own) {
      if (correction === 'open') text = `${text.replace(/(^|\s)#.*/, '').trimEnd()} {`;
      if (correction === 'remove') text = text.replace('}', '');
      if (typeof correction === 'object') text = splitWord(text, correction);
    }
    const changed = text.split('\n').map((each) => ({ text: each, from, inserted: false }));
    return [...added('close-before'), ...changed, ...added('close-after')];
  });
}

/** The line with the word replaced. Every line of the result has the line's indentation. */
function splitWord(line: string, { word, lines }: SplitWord): string {
  const [lead] = /^\s*/.exec(line)!;
  const at = line.indexOf(word);
  const [before, after] = [line.slice(0, at).trim(), line.slice(at + word.length).trim()];
  const [first = '', ...rest] = lines;
  const parts = first === '}' ? [before, ...lines] : [`${before} ${first}`.trim(), ...rest];
  const last = parts.at(-1)!;
  const whole = /[{}]$/.test(last)
    ? [...parts, after]
    : [...parts.slice(0, -1), `${last} ${after}`];
  return whole
    .filter((each) => each !== '')
    .map((each) => lead + each)
    .join('\n');
}
