/**
 * Finds all wrong braces of a Corefile at once, from its indentation. Several mistakes can cancel each other out, so
 * that the braces match and only their places are wrong.
 */
import {
  missingAtEnd,
  missingBrace,
  missingOpening,
  readBraceLines,
  surplusBrace,
  type BraceFault,
  type BraceLine,
} from './brace-lines.ts';

/**
 * The braces that differ from the indentation, in the order of the lines. With all of them corrected, the braces match.
 * Empty if there are none, or if quotes span lines.
 */
export function indentationFaults(file: string, text: string): readonly BraceFault[] {
  const lines = readBraceLines(file, text) ?? [];
  const faults: BraceFault[] = [];
  const open: BraceLine[] = [];
  for (const [index, line] of lines.entries()) {
    const isBrace = line.word === '}';
    const next = lines[index + 1];
    const isInside = (top: BraceLine): boolean =>
      isBrace ? line.indent >= top.indent : line.indent > top.indent;
    for (let top = open.at(-1); top !== undefined && !isInside(top); top = open.at(-1)) {
      faults.push(missingBrace(top, line, hintAt(line, top)));
      open.pop();
    }
    const top = open.at(-1);
    if (isBrace) {
      const isEarly = top !== undefined && line.indent > top.indent && isDeeper(next, top);
      const hint =
        top === undefined ? null : `The next line is indented further than '${top.word}'.`;
      if (top === undefined || isEarly) faults.push(surplusBrace(line, top ?? null, hint));
      else open.pop();
      continue;
    }
    const lacksBrace = !line.opens && next?.word !== '}' && isDeeper(next, line);
    if (lacksBrace) faults.push(missingOpening(line, 'The next line is indented further.'));
    if (line.opens || lacksBrace) open.push(line);
    if (line.closes) open.pop();
  }
  const last = lines.at(-1);
  if (last !== undefined) faults.push(...open.toReversed().map((top) => missingAtEnd(top, last)));
  return faults;
}

function isDeeper(line: BraceLine | undefined, than: BraceLine): boolean {
  return line !== undefined && line.indent > than.indent;
}

function hintAt(line: BraceLine, top: BraceLine): string {
  if (line.word === '}') return `This } is indented less than '${top.word}'`;
  const how = line.indent === top.indent ? 'like' : 'less than';
  return `'${line.word}' is indented ${how} '${top.word}'`;
}
