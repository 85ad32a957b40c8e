import type { Problem } from '../base/problem.ts';
import { clipped } from '../base/shortened.ts';
import { DirectiveParser } from './directive-parser.ts';
import { textOf } from './environment.ts';
import type { Environment } from '../base/environment.ts';
import { TokenStream, SNIPPET_IMPORTS_MAX } from './expand.ts';
import type { Files } from './expand.ts';
import { fingerprint } from './fingerprint.ts';
import { parseKey } from './keys.ts';
import { tokenOf, type RawToken } from './lex.ts';
import { DirectiveNames } from './directive-names.ts';
import { syntaxProblem } from './problems.ts';
import { adviceForOther } from './other-texts.ts';
import { ProblemReport } from './problem-report.ts';
import type { Syntax } from './syntax.ts';
import type { Corefile, Directive, Key, ServerBlock, Token } from './corefile-tree.ts';

/** A Corefile and the parser's other inputs. */
export interface ParseInput extends Files {
  /** The file's name, used for error positions. Imports are relative to it. */
  readonly file: string;
  readonly text: string;
  /** The default port (`-dns.port`). */
  readonly dnsPort: number;
  readonly env: Environment;
  /** Known directives in chain order. */
  readonly directives: readonly string[];
  /** External CoreDNS plugins, and their alternatives. */
  readonly external?: Readonly<Record<string, string>>;
  /** For better advice: older names of directives, and the directive that a misplaced property belongs to. */
  readonly syntaxes?: readonly Syntax[];
}

/** The length at which a word is cut in a message, in characters. */
const WORD_SHOWN = 100;

/** The parsed Corefile and its problems. */
export interface ParseOutput {
  /** The part that was parsed, which is complete only if there are no problems. */
  readonly corefile: Corefile;
  /** The texts of all files that were read, by their names in `corefile.files`. */
  readonly texts: ReadonlyMap<string, string>;
  /** In the order in which they were found. The first one is what CoreDNS would have reported. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/**
 * Parses a Corefile with all its imports. It never throws: every error becomes a problem, and parsing continues after
 * it.
 */
export function parseCorefile(input: ParseInput): ParseOutput {
  const report = new ProblemReport();
  const parser = new Parser(input, report);
  const blocks = parser.run();
  const advice = report.found.length > 0 ? adviceForOther(input.text) : null;
  if (advice !== null) {
    // Every line would cause the same kind of error, so reporting one is enough.
    report.found.splice(0, Infinity, report.found[0]!.with(advice));
    report.remarks.length = 0;
  }
  return {
    corefile: {
      file: input.file,
      blocks,
      files: [...parser.texts.keys()],
      fingerprint: fingerprint(blocks, report.found),
    },
    texts: parser.texts,
    problems: report.found,
    warnings: report.remarks,
  };
}

class Parser {
  readonly #input: ParseInput;
  readonly #report: ProblemReport;
  readonly #stream: TokenStream;
  readonly #lines: DirectiveParser;
  /** True once a block with an address has been found. */
  #anyBlock = false;
  /** Address problems come last, because CoreDNS checks addresses after it has read the whole file. */
  readonly #addressProblems: Problem[] = [];
  readonly #substitute: (token: RawToken) => string;

  constructor(input: ParseInput, report: ProblemReport) {
    this.#input = input;
    this.#report = report;
    this.#substitute = (token) => textOf(token, input.env, report);
    this.#stream = new TokenStream(input.file, input.text, input, report);
    const names = new DirectiveNames(
      input.directives,
      input.external ?? {},
      input.syntaxes ?? [],
      report,
    );
    this.#lines = new DirectiveParser(this.#stream, names, report, this.#substitute);
  }

  get texts(): ReadonlyMap<string, string> {
    return this.#stream.texts;
  }

  run(): readonly ServerBlock[] {
    const blocks: ServerBlock[] = [];
    for (let token = this.#stream.peek(); token !== null; token = this.#stream.peek()) {
      const block = this.#block(token);
      if (block === null) continue;
      blocks.push(block);
      this.#anyBlock = true;
    }
    for (const problem of this.#addressProblems) this.#report.problem(problem);
    return blocks;
  }

  /**
   * Parses addresses, followed by directives in braces (or without them, if the file has only one block). Returns null
   * for a snippet, or if there is nothing to serve.
   */
  #block(start: RawToken): ServerBlock | null {
    const addresses = this.#addresses();
    const first = addresses[0];
    if (addresses.length === 1 && first !== undefined && isSnippetName(first.text)) {
      this.#snippet(first);
      return null;
    }
    const next = this.#stream.peek();
    const directives = next === null ? [] : this.#contents();
    if (first === undefined) {
      if (directives.length > 0) {
        this.#report.warning(start.place, 'this block has no address, so it is ignored', {
          code: 'block-without-address',
          remedy: "Write the zones it serves before the '{', for example '.:53'.",
        });
      }
      return null;
    }
    const isRemarked = next?.text !== '{' && this.#bracelessRemark(addresses, directives);
    const keys = addresses.flatMap((address) => this.#keys(address, isRemarked));
    return { keys, directives, place: first.place };
  }

  #keys(address: Token, isRemarked: boolean): readonly Key[] {
    const { keys, problem, warnings } = parseKey(address, this.#input.dnsPort);
    if (problem !== null && this.#addressProblems.length < 100) this.#addressProblems.push(problem);
    if (!isRemarked) this.#report.warnings(warnings);
    return keys;
  }

  /**
   * Warns about a block without braces that takes plugins for zones, or that has none.
   * @returns true if it did
   */
  #bracelessRemark(addresses: readonly Token[], directives: readonly Directive[]): boolean {
    const plugin = addresses.find(({ text }) => this.#input.directives.includes(text));
    if (plugin === undefined && directives.length > 0) return false;
    const { text: whole, place } = plugin ?? addresses[0]!;
    const text = clipped(whole, WORD_SHOWN);
    const found =
      plugin === undefined
        ? 'the server block has no plugins, so it refuses every query'
        : `'${text}' is read as a zone, although it is a plugin`;
    this.#report.warning(place, found, {
      code: 'block-without-braces',
      hint: 'A file without braces is one server block, and its first line contains the zones.',
      remedy:
        plugin === undefined
          ? `Write { after '${text}', then one plugin per line, and } at the end.`
          : "Write a zone and { before the plugins, as in '.:53 {', one plugin per line, and } at the end.",
    });
    return true;
  }

  /**
   * Reports a surplus } after the last block, which CoreDNS reads as another zone. Nothing else in the file is lost
   * because of it.
   */
  #braceAtEnd(addresses: readonly Token[], brace: RawToken): boolean {
    if (addresses.length > 0 || !this.#anyBlock || this.#stream.peek() !== null) return false;
    this.#report.warning(brace.place, "this '}' does not close anything and is ignored", {
      code: 'corefile-brace',
      hint: 'An earlier brace may also be superfluous, so that a block ends earlier than it seems.',
      remedy: 'Take it away.',
    });
    return true;
  }

  #addresses(): readonly Token[] {
    const stream = this.#stream;
    const found: Token[] = [];
    let expectingAnother = false;
    for (let token = stream.peek(); token !== null; token = stream.peek()) {
      const text = this.#substitute(token);
      if (text === 'import' && stream.atLineStart()) {
        stream.import(this.#substitute);
        continue;
      }
      if (text === '{') {
        if (expectingAnother) {
          const problem = "Expected another address but had '{' - check for extra comma";
          this.#report.mistake(token.place, problem, { code: 'corefile-comma' });
        }
        return found;
      }
      stream.take();
      if (token.text === '}') {
        if (this.#braceAtEnd(found, token)) continue;
        this.#report.mistake(token.place, "Unexpected '}' because no matching opening brace", {
          code: 'corefile-brace',
        });
        continue;
      }
      if (text !== '') {
        expectingAnother = text.endsWith(',');
        found.push(tokenOf(token, expectingAnother ? text.slice(0, -1) : text));
      }
      const next = stream.peek();
      if (next === null) break;
      if (!expectingAnother && stream.atLineStart()) return found;
    }
    if (expectingAnother && !stream.cut) {
      this.#report.mistake(stream.last.place, 'Unexpected EOF', {
        code: 'corefile-comma',
        hint: 'The comma announces another address.',
      });
    }
    return found;
  }

  #snippet(name: Token): void {
    const stream = this.#stream;
    const open = stream.peek();
    if (open === null || open.text !== '{') {
      const found = open ?? stream.last;
      this.#report.problem(
        syntaxProblem(found.place, found.text, '{', {
          code: 'corefile-brace',
          hint: `${name.text} names a snippet, which needs braces.`,
        }),
      );
      return;
    }
    stream.take();
    const tokens: RawToken[] = [];
    let depth = 1;
    for (let token = stream.peek(); token !== null; token = stream.peek()) {
      stream.take();
      if (token.text === '}' && --depth === 0) break;
      if (token.text === '{') depth++;
      tokens.push(token);
    }
    if (depth > 0) return this.#lines.unclosed(open, 'snippet');
    this.#defineSnippet(name, tokens);
  }

  #defineSnippet(name: Token, tokens: readonly RawToken[]): void {
    const word = name.text.slice(1, -1);
    const own = tokens.findIndex(
      (token, at) =>
        token.text === 'import' && (at === 0 || token.first) && tokens[at + 1]?.text === word,
    );
    if (own >= 0) {
      const text = `maximum snippet import depth (${SNIPPET_IMPORTS_MAX}) exceeded`;
      this.#report.mistake(tokens[own]!.place, text, {
        code: 'import-circle',
        hint: `The snippet '${word}' imports itself.`,
      });
      return;
    }
    if (!this.#stream.defineSnippet(word, tokens)) {
      const text = `redeclaration of previously declared snippet ${word}`;
      this.#report.mistake(name.place, text, { code: 'snippet-repeated' });
    }
  }

  #contents(): readonly Directive[] {
    const open = this.#stream.peek()!;
    const braces = open.text === '{';
    if (braces) this.#stream.take();
    const directives: Directive[] = [];
    for (let token = this.#stream.peek(); token !== null; token = this.#stream.peek()) {
      if (token.text === '}') {
        this.#stream.take();
        return directives;
      }
      if (token.text === 'import') {
        this.#stream.import(this.#substitute);
        continue;
      }
      directives.push(...this.#lines.directive(braces));
    }
    if (braces) this.#lines.unclosed(open, 'block');
    return directives;
  }
}

function isSnippetName(text: string): boolean {
  return text.startsWith('(') && text.endsWith(')');
}
