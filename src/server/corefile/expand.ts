import { dirname, isAbsolute, join } from 'node:path';

import { errorCode } from '../base/error-code.ts';
import type { Place } from '../base/problem.ts';
import { lex } from './lex.ts';
import type { Lexed, RawToken } from './lex.ts';
import { parseProblem } from './problems.ts';
import type { Advice } from './problems.ts';
import type { ProblemReport } from './problem-report.ts';
import { whyFailed } from '../base/why-failed.ts';

/** Access to imported files. */
export interface Files {
  /** Returns a file's text. Throws an error with a `code` (`ENOENT`, `EISDIR`, …). */
  readFile(path: string): string;
  /** Returns the files that match a pattern with at most one `*` and one `?`, in sorted order. */
  glob(pattern: string): readonly string[];
}

/** Maximum number of snippet imports in a Corefile. This is CoreDNS's limit, which stops circular imports. */
export const SNIPPET_IMPORTS_MAX = 10_000;
/** Maximum number of file imports in one Corefile. */
const FILE_IMPORTS_MAX = 100_000;
/**
 * Maximum number of words in a Corefile with all its imports, which can multiply if they are nested. Parsing twice as
 * many blocks the control thread for seconds.
 */
export const TOKENS_MAX = 65_536;

interface TokenFrame {
  readonly tokens: readonly RawToken[];
  next: number;
  readonly imported: boolean;
}

/**
 * The words in a Corefile in the order in which they take effect. An `import` is replaced by the words in its snippet
 * or files. The sources form a stack, so nothing is copied. A line never continues past the end of an import.
 */
export class TokenStream {
  readonly #stack: TokenFrame[];
  readonly #files: Files;
  readonly #report: ProblemReport;
  readonly #snippets = new Map<string, readonly RawToken[]>();
  readonly #lexed = new Map<string, Lexed>();
  /** The texts of all files that have been read so far, starting with the Corefile. */
  readonly texts: Map<string, string>;
  /** The last word. */
  last: RawToken;
  #snippetImports = 0;
  #fileImports = 0;
  #taken = 0;
  #full = false;

  constructor(file: string, text: string, files: Files, report: ProblemReport) {
    const { tokens, warnings } = lex(text, file);
    report.warnings(warnings);
    this.#stack = [{ tokens, next: 0, imported: false }];
    this.#files = files;
    this.#report = report;
    this.texts = new Map([[file, text]]);
    const place = { file, line: 1, column: 1 };
    this.last = { text: '', place, quoted: false, first: true };
  }

  /** Returns the next word, or null at the end of all input. */
  peek(): RawToken | null {
    if (this.#full) return null;
    for (let frame = this.#stack.at(-1); frame !== undefined; frame = this.#stack.at(-1)) {
      if (frame.next < frame.tokens.length) return frame.tokens[frame.next]!;
      this.#stack.pop();
    }
    return null;
  }

  /** Returns the next word if it is on the same line as the previous one. */
  peekOnLine(): RawToken | null {
    const token = this.peek();
    return token === null || this.#begins(token) ? null : token;
  }

  /** Returns true if the next word starts a line. */
  atLineStart(): boolean {
    const token = this.peek();
    return token !== null && this.#begins(token);
  }

  #begins(token: RawToken): boolean {
    const frame = this.#stack.at(-1)!;
    return token.first || (frame.imported && frame.next === 0);
  }

  /** Consumes the next word, which must exist. */
  take(): RawToken {
    const token = this.peek()!;
    this.#stack.at(-1)!.next++;
    this.last = token;
    if (++this.#taken === TOKENS_MAX) {
      this.#full = true;
      this.#refuse(token.place, `the Corefile and its imports have more than ${TOKENS_MAX} words`, {
        code: 'import-too-large',
      });
    }
    return token;
  }

  /** True if a problem cut the stream short, so that it ends before the file does. */
  get cut(): boolean {
    return this.#full;
  }

  skipLine(): void {
    while (this.peekOnLine() !== null) this.take();
  }

  /** Defines a snippet for later imports. Returns false if the name is already in use. */
  defineSnippet(name: string, tokens: readonly RawToken[]): boolean {
    if (this.#snippets.has(name)) return false;
    this.#snippets.set(name, tokens);
    return true;
  }

  /** Processes an `import` line, where `import` is the next word, and continues with the imported words. */
  import(substituted: (token: RawToken) => string): void {
    const at = this.take();
    if (this.peekOnLine() === null) {
      this.#refuse(at.place, "Wrong argument count or unexpected line ending after 'import'", {
        code: 'argument-count',
        remedy: 'import needs the name of a snippet or a file.',
      });
      return;
    }
    const pattern = this.take();
    // Imports have their own limits.
    this.#taken -= 2;
    const name = substituted(pattern);
    const surplus = this.peekOnLine();
    if (name === '') this.#refuse(pattern.place, 'Import requires a non-empty filepath');
    else if (surplus !== null) {
      this.#refuse(surplus.place, 'Import takes only one argument (glob pattern or file)');
    } else this.#importNamed(name, pattern.place);
    if (surplus !== null) this.skipLine();
  }

  #importNamed(name: string, place: Place): void {
    const snippet = this.#snippets.get(name);
    if (snippet !== undefined) {
      if (++this.#snippetImports > SNIPPET_IMPORTS_MAX) {
        this.#tooDeep(
          place,
          `maximum snippet import depth (${SNIPPET_IMPORTS_MAX}) exceeded`,
          name,
        );
      } else this.#push(snippet);
      return;
    }
    if (++this.#fileImports > FILE_IMPORTS_MAX) {
      this.#tooDeep(place, `maximum file import depth (${FILE_IMPORTS_MAX}) exceeded`, name);
      return;
    }
    const matches = this.#matches(name, place);
    // Push them in reverse order, so that the first file is on top of the stack.
    for (const { path, literal } of matches.toReversed()) {
      const tokens = this.#read(path, literal ? name : null, place);
      if (tokens !== null) this.#push(tokens);
    }
  }

  #push(tokens: readonly RawToken[]): void {
    // Remove exhausted sources first, so that they do not pile up in a circular import.
    this.peek();
    if (tokens.length > 0) this.#stack.push({ tokens, next: 0, imported: true });
  }

  #matches(name: string, place: Place): readonly { path: string; literal: boolean }[] {
    const pattern = isAbsolute(name) ? name : join(dirname(place.file), name);
    const many = (mark: string): boolean => pattern.split(mark).length > 2;
    if (many('*') || many('?') || (pattern.includes('[') && pattern.includes(']'))) {
      const text = `Glob pattern may only contain one wildcard (*), but has others: ${pattern}`;
      this.#refuse(place, text, { code: 'import-pattern' });
      return [];
    }
    if (pattern.includes('[')) {
      const text = `Failed to use import pattern ${name}: syntax error in pattern`;
      this.#refuse(place, text, { code: 'import-pattern' });
      return [];
    }
    if (!/[*?\]]/.test(pattern)) return [{ path: pattern, literal: true }];
    const found = this.#files.glob(pattern);
    if (found.length === 0) {
      this.#report.warning(place, `No files matching import glob pattern: ${name}`, {
        code: 'import-nothing',
      });
    }
    return found.map((path) => ({ path, literal: false }));
  }

  #read(path: string, name: string | null, place: Place): readonly RawToken[] | null {
    const known = this.#lexed.get(path);
    if (known !== undefined) return known.tokens;
    let text: string;
    try {
      text = this.#files.readFile(path);
    } catch (error) {
      this.#unreadable(path, name, place, error);
      return null;
    }
    const lexed = lex(text, path);
    this.#lexed.set(path, lexed);
    this.#report.warnings(lexed.warnings);
    this.texts.set(path, text);
    return lexed.tokens;
  }

  #unreadable(path: string, name: string | null, place: Place, error: unknown): void {
    const code = errorCode(error);
    if (code === 'ENOENT' && name !== null) {
      this.#refuse(place, `File to import not found: ${name}`, {
        code: 'import-not-found',
        hint: `There is no file ${path}, and no snippet with that name above this line.`,
        remedy: 'A snippet must be defined above the line that imports it.',
      });
      return;
    }
    const reason = code === 'EISDIR' ? 'is a directory' : whyFailed(error);
    this.#refuse(place, `Could not import ${path}: ${reason}`, { code: 'import-unreadable' });
  }

  #tooDeep(place: Place, text: string, name: string): void {
    // The cycle never ends, so the rest of the stack is part of it.
    this.#full = true;
    this.#refuse(place, text, {
      code: 'import-circle',
      hint: `'${name}' is imported repeatedly, most likely because it imports itself.`,
    });
  }

  #refuse(place: Place, text: string, advice: Advice = {}): void {
    this.#report.problem(parseProblem(place, text, advice));
  }
}
