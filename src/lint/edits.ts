/** Changes that rules propose, as changes of the text of a file; and the text after them. */
import type { Directive, Token } from '../corefile/tree.ts';
import type { Edit } from './finding.ts';
import type { Fix } from './rule.ts';
import type { SourceText } from './source-text.ts';

/** The edits that a fix is; none if the words do not stand in the file as they were read. */
export function readEdits(
  fix: Fix,
  source: SourceText,
  texts: ReadonlyMap<string, readonly string[]>,
): readonly Edit[] {
  const token = fix.kind === 'property' ? lastWord(fix.directive) : fix.token;
  const { file, line, column, exact } = source.outside(token.place);
  const text = texts.get(file)?.[line - 1]?.replace(/\r$/, '');
  const written = token.quoted ? `"${token.text}"` : token.text;
  if (!exact || text === undefined || !text.startsWith(written, column - 1)) return [];
  const end = column + written.length;
  const on = { file, line, endLine: line } as const;
  const indent = /^[ \t]*/.exec(text)![0];
  const below = (inner: string): Edit => {
    const next = { file, line: line + 1, endLine: line + 1, column: 1, endColumn: 1 };
    return { ...next, text: `${inner}\n` };
  };
  switch (fix.kind) {
    case 'word':
      return [{ ...on, column, endColumn: end, text: fix.text }];
    case 'append':
      return [{ ...on, column: end, endColumn: end, text: ` ${fix.text}` }];
    case 'above':
      return [{ ...on, column: 1, endColumn: 1, text: `${indent}${fix.text}\n` }];
    case 'property': {
      const behind = text.slice(end - 1).trim();
      const inner = `${indent}    ${fix.text}`;
      if (fix.directive.block !== null) return behind === '{' ? [below(inner)] : [];
      const braces = ` {\n${inner}\n${indent}}`;
      return behind === '' ? [{ ...on, column: end, endColumn: end, text: braces }] : [];
    }
    case 'remove':
      // Nothing but this line's own words may go with it.
      if (text.slice(0, column - 1).trim() !== '' || /[{}]/.test(text)) return [];
      return [{ file, line, endLine: line + 1, column: 1, endColumn: 1, text: '' }];
  }
}

function lastWord({ at, args }: Directive): Token {
  return args.at(-1) ?? at;
}

/** The text with all edits made; of those that touch the same place the first one counts. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  const lines = text.split('\n');
  const starts: number[] = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length + 1;
  }
  const at = (line: number, column: number): number =>
    Math.min(text.length, (starts[line - 1] ?? text.length + 1) + column - 1);
  const ranges = edits
    .map((edit) => ({
      from: at(edit.line, edit.column),
      to: at(edit.endLine, edit.endColumn),
      text: edit.text,
    }))
    .toSorted((a, b) => a.from - b.from || a.to - b.to);
  const pieces: string[] = [];
  const done = new Set<string>();
  let next = 0;
  for (const { from, to, text: put } of ranges) {
    const identity = `${from} ${to} ${put}`;
    if (from < next || done.has(identity)) continue;
    done.add(identity);
    pieces.push(text.slice(next, from), put);
    next = to;
  }
  return pieces.join('') + text.slice(next);
}
