/** Parses the content of the blocks in a Corefile, which is directives and their properties. */
import type { TokenStream } from './expand.ts';
import { tokenOf, type RawToken } from './lex.ts';
import type { DirectiveNames } from './directive-names.ts';
import { syntaxProblem } from './problems.ts';
import type { ProblemReport } from './problem-report.ts';
import type { Directive, Property, Token } from './corefile-tree.ts';

/** Maximum nesting of braces. */
const DEPTH_MAX = 64;

/** Parses one directive after another. It shares a token stream with the parser for the enclosing blocks. */
export class DirectiveParser {
  readonly #stream: TokenStream;
  readonly #names: DirectiveNames;
  readonly #report: ProblemReport;
  readonly #substitute: (token: RawToken) => string;
  /** A closing brace that is indented less than the line with its opening brace, so a `}` is probably missing there. */
  #suspect: Token | null = null;
  /** True if the file ended inside braces and this has been reported. */
  #ended = false;

  /** @param substitute returns a word's text with environment variables replaced */
  constructor(
    stream: TokenStream,
    names: DirectiveNames,
    report: ProblemReport,
    substitute: (token: RawToken) => string,
  ) {
    this.#stream = stream;
    this.#names = names;
    this.#report = report;
    this.#substitute = substitute;
  }

  /**
   * Parses the directive that the next word names, with its block. As in CoreDNS, words after its `}` on the same line
   * count as another directive by that name.
   * @param braces true if the server block has braces
   * @returns an empty list if the name is unknown, which is reported
   */
  directive(braces: boolean): readonly Directive[] {
    const stream = this.#stream;
    const token = stream.take();
    const at = tokenOf(token, this.#substitute(token));
    const name = this.#names.today(at, braces);
    const found: Directive[] = [];
    for (let place = at.place; ;) {
      const args = this.#args();
      const block = this.#braces(at, 0);
      if (name !== null) found.push({ name, at: { ...at, place }, args, block });
      const stray = stream.peekOnLine();
      if (stray === null) return found;
      if (stray.text === '{' || stray.text === '}') {
        this.#strayBrace(stray);
        return found;
      }
      stream.take();
      this.#behindBrace(at, stray);
      place = stray.place;
    }
  }

  /** Returns the words up to the end of the line or the next brace. */
  #args(): readonly Token[] {
    const args: Token[] = [];
    for (;;) {
      const token = this.#stream.peekOnLine();
      if (token === null || token.text === '{' || token.text === '}') {
        this.#commas(args);
        return args;
      }
      this.#stream.take();
      args.push(tokenOf(token, this.#substitute(token)));
    }
  }

  /**
   * Reports words that end with a comma, because words are separated only by blanks. Commas inside an expression are
   * allowed.
   */
  #commas(words: readonly Token[]): void {
    if (words.some(({ text, quoted }) => !quoted && /[(){}=<>]/.test(text))) return;
    for (const { text, quoted, place } of words)
      if (!quoted && /^[\w.:[\]-]+,$/.test(text))
        this.#report.warning(place, `the comma is part of the word '${text}'`, {
          code: 'word-comma',
          hint: 'Words on a line are separated only by blanks.',
        });
  }

  /** Returns the lines in braces that follow the words on a line, or null if there is no brace. */
  #braces(owner: Token, depth: number): readonly Property[] | null {
    const stream = this.#stream;
    const open = stream.peek();
    if (open === null || open.text !== '{') return null;
    if (stream.atLineStart()) {
      const text = `Wrong argument count or unexpected line ending after '${stream.last.text}'`;
      this.#report.mistake(stream.last.place, text, {
        code: 'corefile-brace',
        hint: `The { of '${owner.text}' is on a separate line.`,
        remedy: 'Put the { at the end of the line before it.',
      });
    }
    stream.take();
    return this.#inside(open, owner, depth);
  }

  #inside(open: RawToken, owner: Token, depth: number): readonly Property[] {
    if (depth === DEPTH_MAX) {
      this.#report.mistake(open.place, `braces nested more than ${DEPTH_MAX} deep`, {
        code: 'corefile-depth',
      });
      this.#skipBraces();
      return [];
    }
    const stream = this.#stream;
    const lines: Property[] = [];
    for (let token = stream.peek(); token !== null; token = stream.peek()) {
      if (token.text === '}') {
        this.#closing(token, open, owner, lines.at(-1));
        return lines;
      }
      if (token.text === 'import' && stream.atLineStart()) stream.import(this.#substitute);
      else lines.push(this.#line(stream.take(), depth));
    }
    this.unclosed(open, 'directive');
    return lines;
  }

  #line(token: RawToken, depth: number): Property {
    const name = tokenOf(token, this.#substitute(token));
    if (token.text === '{') {
      this.#report.mistake(token.place, "unknown property '{'", {
        code: 'corefile-brace',
        remedy: 'Put the { at the end of the line before it.',
      });
      return { name, args: [], block: this.#inside(token, name, depth + 1) };
    }
    return { name, args: this.#args(), block: this.#braces(name, depth + 1) };
  }

  #closing(brace: RawToken, open: RawToken, owner: Token, last: Property | undefined): void {
    // CoreDNS rejects this if it reads the line to its end. Otherwise, it sees the same lines, or one more word.
    if (last !== undefined && last.block === null && !this.#stream.atLineStart()) {
      this.#report.warning(
        brace.place,
        `the } after '${last.name.text}' is read as the end of its braces`,
        {
          code: 'brace-behind-words',
          hint: 'CoreDNS rejects it after most properties, and reads it as a word after the others.',
          remedy: 'Put the } on a separate line.',
        },
      );
    }
    const left = brace.place.column < owner.place.column && brace.place.file === owner.place.file;
    if (brace.first && left && open.place.line < brace.place.line) this.#suspect ??= owner;
    this.#stream.take();
  }

  #skipBraces(): void {
    let depth = 1;
    for (let token = this.#stream.peek(); token !== null; token = this.#stream.peek()) {
      this.#stream.take();
      if (token.text === '{') depth++;
      if (token.text === '}' && --depth === 0) return;
    }
  }

  #strayBrace({ text, place }: RawToken): void {
    if (text === '}')
      return this.#report.mistake(place, "Unexpected '}' because no matching opening brace", {
        code: 'corefile-brace',
        remedy: 'Put the } on a separate line.',
      });
    this.#report.mistake(place, "Wrong argument count or unexpected line ending after '}'", {
      code: 'corefile-brace',
      remedy: "Put '{' at the end of the line that it belongs to.",
    });
    this.#stream.skipLine();
  }

  #behindBrace(owner: Token, { text, place }: RawToken): void {
    this.#report.warning(place, `'${text}' after a } is read as another '${owner.text}'`, {
      code: 'corefile-brace',
      remedy: `Put '${text}' on a new line, or remove it.`,
    });
  }

  /** Reports that the file ended inside braces. Any enclosing braces are not reported again. */
  unclosed(open: RawToken, what: 'block' | 'snippet' | 'directive'): void {
    const { last, cut } = this.#stream;
    if (cut || this.#ended) return;
    this.#ended = true;
    const suspect = this.#suspect;
    const { file, line } = (suspect ?? open).place;
    const advice = {
      code: 'corefile-end',
      hint:
        suspect === null
          ? `The { at ${file}:${line} is never closed.`
          : `Most likely the } for '${suspect.text}' at ${file}:${line} is missing.`,
    };
    // CoreDNS also uses the last directive's } to close the block.
    if (what === 'block' && last.text === '}' && !last.quoted)
      this.#report.warning(last.place, 'the last } in the file is missing', advice);
    else if (what !== 'directive')
      this.#report.problem(syntaxProblem(last.place, last.text, '}', advice));
    else this.#report.mistake(last.place, 'Unexpected EOF', advice);
  }
}
