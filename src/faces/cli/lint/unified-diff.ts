/** Two texts line by line, as `diff -u` shows them. */
import { coloured } from '../terminal.ts';

/** A file before and after. */
export interface TextChange {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** Lines of context around a change. */
const CONTEXT = 3;
/**
 * Beyond this the middle is shown as replaced whole: the table of common lines would be too large.
 */
const CELLS_MAX = 4_000_000;

const UNENDED = '\n\\ No newline at end of file';

interface DiffLine {
  readonly mark: ' ' | '-' | '+';
  readonly text: string;
}

/** The change, with file names at the head; empty if there is none. */
export function unifiedDiff({ file, before, after }: TextChange, colour: boolean): string {
  const lines = diffLines(before.split('\n'), after.split('\n'));
  const last = lines.at(-1);
  // The empty line behind the last line feed is none.
  if (last?.mark === ' ')
    lines.splice(-1, 1, ...(last.text === '' ? [] : [{ ...last, text: `${last.text}${UNENDED}` }]));
  const out = [`--- ${file}`, `+++ ${file}`];
  let [oldLine, newLine] = [1, 1];
  let hunk: DiffLine[] = [];
  let [oldStart, newStart] = [1, 1];
  const close = (): void => {
    if (hunk.length === 0) return;
    const lengthOf = (mark: DiffLine['mark']): number =>
      hunk.filter((line) => line.mark === ' ' || line.mark === mark).length;
    out.push(`@@ -${oldStart},${lengthOf('-')} +${newStart},${lengthOf('+')} @@`);
    out.push(...hunk.map(({ mark, text }) => paint(mark, text, colour)));
    hunk = [];
  };
  const shown = lines.map((_line, index) =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ mark }) => mark !== ' '),
  );
  lines.forEach((line, index) => {
    if (shown[index] !== true) close();
    else {
      if (hunk.length === 0) [oldStart, newStart] = [oldLine, newLine];
      hunk.push(line);
    }
    if (line.mark !== '+') oldLine++;
    if (line.mark !== '-') newLine++;
  });
  close();
  return `${out.join('\n')}\n`;
}

function paint(mark: string, text: string, colour: boolean): string {
  const line = `${mark}${text}`;
  if (!colour || mark === ' ') return line;
  return coloured(line, mark === '+' ? 32 : 31);
}

function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end++;
  const same = (text: string): DiffLine => ({ mark: ' ', text });
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

/** The lines that both have, in order, by the table of longest common parts. */
function middle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const gone = (text: string): DiffLine => ({ mark: '-', text });
  const come = (text: string): DiffLine => ({ mark: '+', text });
  const [rows, columns] = [before.length, after.length];
  if (rows === 0 || columns === 0 || rows * columns > CELLS_MAX)
    return [...before.map(gone), ...after.map(come)];
  const width = columns + 1;
  const common = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--)
    for (let j = columns - 1; j >= 0; j--)
      common[i * width + j] =
        before[i] === after[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < rows && j < columns) {
    if (before[i] === after[j]) {
      lines.push({ mark: ' ', text: before[i]! });
      i++;
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
      lines.push(gone(before[i++]!));
    else lines.push(come(after[j++]!));
  }
  return [...lines, ...before.slice(i).map(gone), ...after.slice(j).map(come)];
}
