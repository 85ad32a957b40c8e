/** Converts the fixes suggested by rules into changes to a file's text, and applies them. */
import type { Directive, Property, Token } from '../../server/corefile/corefile-tree.ts';
import type { Edit } from './finding.ts';
import type { Fix } from './lint-rule.ts';
import type { SourceText } from './source-text.ts';

/** The edits for a fix. Empty if the file does not contain the words as they were parsed. */
export function readEdits(
  fix: Fix,
  source: SourceText,
  texts: ReadonlyMap<string, readonly string[]>,
): readonly Edit[] {
  const token = fix.kind === 'property' ? lastWord(fix.directive) : fix.token;
  const { file, line, column, exact } = source.outside(token.place);
  const lines = texts.get(file) ?? [];
  const text = lines[line - 1]?.replace(/\r$/, '');
  const written = token.quoted ? `"${token.text}"` : token.text;
  if (!exact || text === undefined || !text.startsWith(written, column - 1)) return [];
  const end = column + written.length;
  const on = { file, line, endLine: line } as const;
  const indent = indentOf(lines, line);
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
      if (fix.directive.block !== null) {
        if (!/^\{(?:\s+#.*)?$/.test(behind)) return [];
        // The line is added at the end of the block, because lines after a property in `hosts` are no longer parsed as
        // records.
        const { at, depth } = lastOf(fix.directive.block, token);
        const last = source.outside(at.place);
        if (last.file !== file || !last.exact) return [];
        const closing = closedAt(lines, last.line, depth);
        if (closing === null) return [];
        const own = last.line === line ? inner : `${indentOf(lines, last.line)}${fix.text}`;
        return [
          {
            file,
            line: closing,
            endLine: closing,
            column: 1,
            endColumn: 1,
            text: `${depth > 1 ? inner : own}\n`,
          },
        ];
      }
      const braces = ` {\n${inner}\n${indent}}`;
      return behind === '' ? [{ ...on, column: end, endColumn: end, text: braces }] : [];
    }
    case 'remove':
      // The line is removed only if it contains nothing else.
      if (text.slice(0, column - 1).trim() !== '' || /[{}]/.test(text)) return [];
      return [{ file, line, endLine: line + 1, column: 1, endColumn: 1, text: '' }];
  }
}

function lastWord({ at, args }: Pick<Directive, 'at' | 'args'>): Token {
  return args.at(-1) ?? at;
}

function indentOf(lines: readonly string[], line: number): string {
  return /^[ \t]*/.exec(lines[line - 1] ?? '')![0];
}

/** The last word within the directive's braces, and how many braces are still open after it. */
function lastOf(
  block: readonly Property[],
  before: Token,
): { readonly at: Token; readonly depth: number } {
  const last = block.at(-1);
  if (last === undefined) return { at: before, depth: 1 };
  const at = lastWord({ at: last.name, args: last.args });
  if (last.block === null) return { at, depth: 1 };
  const inner = lastOf(last.block, at);
  return { at: inner.at, depth: inner.depth + 1 };
}

/** The line that closes the outermost of `depth` braces, or null if there are other words before it. */
function closedAt(lines: readonly string[], from: number, depth: number): number | null {
  let open = depth;
  for (let line = from + 1; line <= lines.length; line++) {
    const text = lines[line - 1]!.trim();
    if (text === '' || text.startsWith('#')) continue;
    if (!/^\}(?:\s+#.*)?$/.test(text)) return null;
    if (--open === 0) return line;
  }
  return null;
}

/** The text after all edits. If edits overlap, only the first one is applied. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  const lines = text.split('\n');
  const ends = lines[0]?.endsWith('\r') === true ? '\r\n' : '\n';
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
      text: edit.text.replaceAll('\n', ends),
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
