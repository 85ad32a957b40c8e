/** Two texts line by line, as `diff -u` shows them. */

/** A file before and after. */
export interface TextChange {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** Lines of context around a change. */
const CONTEXT = 3;
/** Beyond this the middle is shown as replaced whole: the table of common lines would be too large. */
const CELLS_MAX = 4_000_000;

interface DiffLine {
  readonly mark: ' ' | '-' | '+';
  readonly text: string;
}

/** The change, with file names at the head; empty if there is none. */
export function unifiedDiff({ file, before, after }: TextChange, colour: boolean): string {
  const lines = diffLines(before.split('\n'), after.split('\n'));
  const out = [`--- ${file}`, `+++ ${file}`];
  let [oldLine, newLine] = [1, 1];
  let hunk: string[] = [];
  let head = '';
  const shown = lines.map((_line, index) =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ mark }) => mark !== ' '),
  );
  lines.forEach(({ mark, text }, index) => {
    if (shown[index] === true) {
      if (hunk.length === 0) head = `@@ -${oldLine} +${newLine} @@`;
      hunk.push(paint(mark, text, colour));
    } else if (hunk.length > 0) {
      out.push(head, ...hunk);
      hunk = [];
    }
    if (mark !== '+') oldLine++;
    if (mark !== '-') newLine++;
  });
  if (hunk.length > 0) out.push(head, ...hunk);
  return `${out.join('\n')}\n`;
}

function paint(mark: string, text: string, colour: boolean): string {
  const line = `${mark}${text}`;
  if (!colour || mark === ' ') return line;
  return `\u001b[${mark === '+' ? 32 : 31}m${line}\u001b[0m`;
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
