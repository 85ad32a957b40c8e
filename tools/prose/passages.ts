/** Extracts the text that people read: Markdown paragraphs, and comments, strings and test titles in sources. */
import { stripTypeScriptTypes } from 'node:module';
import { tokenizer, tokTypes, type Token } from 'acorn';

export type PassageKind = 'markdown' | 'heading' | 'docstring' | 'comment' | 'string' | 'title';

/** A unit of text, such as a paragraph, list item, table cell, comment or string. */
export interface Passage {
  readonly kind: PassageKind;
  readonly text: string;
  /** Returns the source line that a character in the text comes from. */
  readonly lineAt: (offset: number) => number;
}

interface Piece {
  readonly text: string;
  readonly line: number;
}

function passage(kind: PassageKind, pieces: readonly Piece[]): Passage {
  const starts: number[] = [];
  let text = '';
  for (const piece of pieces) {
    if (text !== '') text += ' ';
    starts.push(text.length);
    text += piece.text;
  }
  const lineAt = (offset: number): number =>
    pieces[
      Math.max(
        0,
        starts.findLastIndex((start) => start <= offset),
      )
    ]!.line;
  return { kind, text, lineAt };
}

/** Removes code, link targets and markup. Each piece of code becomes one word. */
export function proseOf(text: string): string {
  return text
    .replaceAll(/``+.*?``+|`[^`]*`/g, 'X')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/<!--.*?-->/g, '')
    .replaceAll(/\*\*|__|(?<![\w*])[*_](?=\w)|(?<=[\w.])[*_](?![\w*])/g, '')
    .replaceAll(/\\(?=[*_|<>])/g, '')
    .replaceAll(/[“”]/g, '"')
    .replaceAll('’', "'");
}

/** The passages on a Markdown page. Skips fenced blocks and everything after a "Written by tools/…" mark. */
export function markdownPassages(page: string): readonly Passage[] {
  const found: Passage[] = [];
  let open: Piece[] = [];
  let fence = '';
  const close = (): void => {
    if (open.length > 0) found.push(paragraph(open));
    open = [];
  };
  for (const [index, raw] of page.split('\n').entries()) {
    const line = index + 1;
    const mark = /^ *(```+|~~~+)/.exec(raw)?.[1];
    if (mark !== undefined && (fence === '' || mark.startsWith(fence))) {
      close();
      fence = fence === '' ? mark : '';
      continue;
    }
    if (fence !== '') continue;
    if (raw.startsWith('<!-- Written by tools/')) break;
    if (/^\s*$/.test(raw) || /^<!--.*-->$/.test(raw)) {
      close();
    } else if (/^#+ /.test(raw)) {
      close();
      found.push(passage('heading', [{ text: proseOf(raw.replace(/^#+ /, '')), line }]));
    } else if (raw.startsWith('|')) {
      close();
      if (/^\|[\s:|-]+$/.test(raw)) continue;
      for (const cell of cellsOf(raw))
        if (cell !== '') found.push(passage('markdown', [{ text: proseOf(cell), line }]));
    } else if (/^\s*(?:[-*+]|\d+\.) /.test(raw)) {
      close();
      open.push({ text: raw.replace(/^\s*(?:[-*+]|\d+\.) /, ''), line });
    } else open.push({ text: raw.trim().replace(/^> ?/, ''), line });
  }
  close();
  return found;
}

/** Joins lines before markup is removed, because links and code may span lines. Each word keeps its line number. */
function paragraph(pieces: readonly Piece[]): Passage {
  const marked = pieces.map(({ text }, at) => `${at === 0 ? '' : '\uE000'}${text}`).join(' ');
  // Keep the line marks inside code and link targets.
  const clean = proseOf(
    marked.replaceAll(/`[^`]*`|\]\([^)]*\)/g, (part) => {
      const marks = part.match(/\uE000/g) ?? [];
      return part.replaceAll('\uE000', '') + marks.join('');
    }),
  );
  const breaks: number[] = [];
  let text = '';
  for (const letter of clean) {
    if (letter === '\uE000') breaks.push(text.length);
    else text += letter;
  }
  return {
    kind: 'markdown',
    text,
    lineAt: (offset) =>
      pieces[Math.min(pieces.length - 1, breaks.filter((at) => at <= offset).length)]!.line,
  };
}

/** The cells in a table row. */
export function cellsOf(row: string): readonly string[] {
  return row
    .replace(/^\||\|\s*$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

/** True for a string that is at least part of a sentence rather than a key, path or pattern. */
function isProse(text: string): boolean {
  if (!/[a-z]{2,} [a-z]{2,}/.test(text)) return false;
  return (text.match(/[A-Za-z']+/g) ?? []).length >= 4 && !/^[\s\d{]|^\S+ \{/.test(text);
}

/** The passages in a TypeScript source. In tests, these are only the comments and titles. */
export function sourcePassages(source: string, isTest: boolean): readonly Passage[] {
  const found: Passage[] = [];
  const lines = lineStarts(source);
  const lineOf = (offset: number): number => lines.findLastIndex((start) => start <= offset) + 1;
  const tokens = tokensOf(source);
  for (const { first, text, start } of textsOf(tokens)) {
    const isTitle = isTest && isTitleAt(tokens, first);
    if (isTest ? !isTitle : !isProse(text)) continue;
    const isTemplate = tokens[first]!.type === tokTypes.backQuote;
    const pieces = text.split('\n').map((part, at) => ({
      text: proseOf(part.trim()),
      line: lineOf(start) + (isTemplate ? at : 0),
    }));
    found.push(passage(isTitle ? 'title' : 'string', pieces));
  }
  const ranges = tokens
    .filter(({ type }) => isTextType(type) || type === tokTypes.regexp)
    .map(({ start, end }) => [start, end] as const);
  for (const comment of commentsOf(source, ranges, lineOf)) found.push(comment);
  return found;
}

interface SourceText {
  /** The index of its first token. */
  readonly first: number;
  readonly start: number;
  text: string;
}

const isTextType = (type: Token['type']): boolean =>
  type === tokTypes.string || type === tokTypes.template;

/** Strings and templates as they are read by people: `${…}` becomes X, and `'a ' + 'b'` becomes a single text. */
function textsOf(tokens: readonly Token[]): readonly SourceText[] {
  const found: SourceText[] = [];
  const open: SourceText[] = [];
  let last: SourceText | null = null;
  let lastEnd = 0;
  const begin = (first: number): SourceText => {
    if (last !== null && lastEnd === first - 2 && valueOf(tokens[first - 1]) === '+') return last;
    const text = { first, start: tokens[first]!.start, text: '' };
    found.push(text);
    return text;
  };
  for (const [index, token] of tokens.entries()) {
    if (!isTextType(token.type)) continue;
    const value = valueOf(token) ?? '';
    if (token.type === tokTypes.string) {
      last = begin(index);
      last.text += value;
      lastEnd = index;
      continue;
    }
    const isFirst = tokens[index - 1]!.type === tokTypes.backQuote;
    if (isFirst) open.push(begin(index - 1));
    open.at(-1)!.text += isFirst ? value : `X${value}`;
    if (tokens[index + 1]!.type !== tokTypes.backQuote) continue;
    last = open.pop()!;
    lastEnd = index + 1;
  }
  return found;
}

/** The value of a name, an operator, a string or a part of a template. */
function valueOf(token: Token | undefined): string | null {
  const { value } = (token ?? {}) as { readonly value?: unknown };
  return typeof value === 'string' ? value : null;
}

/** True for the first argument to `test`, `describe` or `it`, whichever quotes it has. */
const isTitleAt = (tokens: readonly Token[], first: number): boolean =>
  tokens[first - 1]?.type === tokTypes.parenL &&
  /^(?:test|describe|it|suite)$/.test(valueOf(tokens[first - 2]) ?? '');

function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  const stripped = stripTypeScriptTypes(source);
  for (const token of tokenizer(stripped, { ecmaVersion: 'latest', sourceType: 'module' }))
    tokens.push(token);
  return tokens;
}

function lineStarts(source: string): readonly number[] {
  const starts = [0];
  for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1))
    starts.push(at + 1);
  return starts;
}

/** Comments, including those inside types. Consecutive `//` lines are one comment. */
function commentsOf(
  source: string,
  texts: readonly (readonly [number, number])[],
  lineOf: (offset: number) => number,
): readonly Passage[] {
  const found: Passage[] = [];
  let next = 0;
  let run: Piece[] = [];
  const endRun = (): void => {
    if (run.length > 0) found.push(passage('comment', run));
    run = [];
  };
  for (let at = 0; at < source.length; at++) {
    while (next < texts.length && texts[next]![1] <= at) next++;
    const text = texts[next];
    if (text !== undefined && at >= text[0]) {
      at = Math.max(at, text[1] - 1);
      continue;
    }
    if (source[at] !== '/') continue;
    if (source[at + 1] === '/') {
      const end = source.indexOf('\n', at) < 0 ? source.length : source.indexOf('\n', at);
      const line = lineOf(at);
      // A comment after code is separate.
      const isBehindCode = source.slice(source.lastIndexOf('\n', at) + 1, at).trim() !== '';
      if (run.length > 0 && (isBehindCode || run.at(-1)!.line !== line - 1)) endRun();
      run.push({ text: proseOf(source.slice(at + 2, end).trim()), line });
      at = end;
    } else if (source[at + 1] === '*') {
      const end = source.indexOf('*/', at + 2);
      if (end < 0) break;
      const isDoc = source[at + 2] === '*';
      const pieces = source
        .slice(at, end)
        .split('\n')
        .map((part, index) => ({
          text: proseOf(part.replace(/^\s*\/?\*+\s?/, '').trim()),
          line: lineOf(at) + index,
        }))
        .filter(({ text: words }) => words !== '');
      if (pieces.length > 0) found.push(passage(isDoc ? 'docstring' : 'comment', pieces));
      at = end + 1;
    }
  }
  endRun();
  return found;
}
