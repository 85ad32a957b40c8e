/** An invalid template; `at` is the character offset. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

export type LexemeKind =
  | 'text'
  /** `{{` and `}}`. */
  | 'open'
  | 'close'
  /** `if`, `eq`, `true` … */
  | 'word'
  /** `.Name`, without the dot. */
  | 'field'
  /** `$x`, or `$` alone. */
  | 'variable'
  | 'dot'
  | 'number'
  | 'string'
  | 'char'
  /** `|`, `(`, `)`, `:=`, `=`, `,`. */
  | 'sign'
  | 'end';

export interface Lexeme {
  readonly kind: LexemeKind;
  readonly text: string;
  readonly at: number;
  /** True if it follows white space: `.a.b` is one operand, while `.a .b` is two. */
  readonly spaced: boolean;
}

/** Maximum number of words in a template; it is an error to have more. */
const LEXEMES_MAX = 10_000;

/**
 * Splits a template into texts and the words in its actions, without comments or trimmed white space.
 * @throws TemplateError
 */
export function lex(source: string): readonly Lexeme[] {
  const found: Lexeme[] = [];
  let at = 0;
  let trimNext = false;
  while (at < source.length) {
    const open = source.indexOf('{{', at);
    const end = open < 0 ? source.length : open;
    const trimmed = open >= 0 && /^\{\{-\s/.test(source.slice(open, open + 4));
    let text = source.slice(at, end);
    if (trimNext) text = text.replace(/^[ \t\r\n]+/, '');
    if (trimmed) text = text.replace(/(?<![ \t\r\n])[ \t\r\n]+$/, '');
    if (text !== '') found.push({ kind: 'text', text, at, spaced: false });
    if (open < 0) break;
    const inner = open + (trimmed ? 3 : 2);
    const comment = /^\s*\/\*/.exec(source.slice(inner));
    if (comment !== null) [at, trimNext] = skipComment(source, open, inner + comment[0].length);
    else {
      found.push({ kind: 'open', text: '{{', at: open, spaced: false });
      [at, trimNext] = lexAction(source, open, inner, found);
    }
    if (found.length > LEXEMES_MAX) throw new TemplateError('the template is too long', at);
  }
  found.push({ kind: 'end', text: 'EOF', at: source.length, spaced: false });
  return found;
}

/** @returns where the next text starts, and whether its white space is trimmed */
function skipComment(source: string, open: number, at: number): [number, boolean] {
  const end = source.indexOf('*/', at);
  if (end < 0) throw new TemplateError('unclosed comment', open);
  const close = /^(?:\s+-)?\}\}/.exec(source.slice(end + 2));
  if (close === null) throw new TemplateError('comment ends before closing delimiter', open);
  return [end + 2 + close[0].length, close[0].includes('-')];
}

const patterns: readonly (readonly [LexemeKind, RegExp])[] = [
  ['sign', /:=|[|(),=]/y],
  ['string', /"(?:[^"\\\n]|\\[^\n])*"|`[^`]*`/y],
  ['char', /'(?:[^'\\\n]|\\[^\n])*'/y],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  ['number', /[+-]?(?:\d|\.\d)(?:[\w.]|(?<=[eEpP])[+-])*/y],
  ['field', /\.[\p{L}\p{Nd}_]+/uy],
  ['dot', /\./y],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
];

function lexAction(source: string, open: number, at: number, found: Lexeme[]): [number, boolean] {
  let parens = 0;
  for (;;) {
    const begin = at;
    while (/\s/.test(source[at] ?? '')) at++;
    const spaced = at > begin;
    const close = spaced && source.startsWith('-}}', at) ? 3 : source.startsWith('}}', at) ? 2 : 0;
    if (close > 0) {
      if (parens > 0) throw new TemplateError('unclosed left paren', at);
      found.push({ kind: 'close', text: '}}', at, spaced });
      return [at + close, close === 3];
    }
    if (at >= source.length) throw new TemplateError('unclosed action', open);
    const { kind, text } = lexemeAt(source, at);
    if (text === '(') parens++;
    if (text === ')' && --parens < 0) throw new TemplateError('unexpected right paren', at);
    found.push({ kind, text: kind === 'field' ? text.slice(1) : text, at, spaced });
    at += text.length;
  }
}

function lexemeAt(source: string, at: number): Pick<Lexeme, 'kind' | 'text'> {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match !== null) return { kind, text: match[0] };
  }
  const char = String.fromCodePoint(source.codePointAt(at)!);
  if (char === '"') throw new TemplateError('unterminated quoted string', at);
  if (char === '`') throw new TemplateError('unterminated raw quoted string', at);
  if (char === "'") throw new TemplateError('unterminated character constant', at);
  throw new TemplateError(`unexpected ${JSON.stringify(char)} in command`, at);
}
