import type { Problem } from '../base/problem.ts';
import { textOf } from './environment.ts';
import type { Environment } from '../base/environment.ts';
import { TokenStream, SNIPPET_IMPORTS_MAX } from './expand.ts';
import type { Files } from './expand.ts';
import { fingerprint } from './fingerprint.ts';
import { parseKey } from './keys.ts';
import type { RawToken } from './lex.ts';
import { DirectiveNames } from './names.ts';
import { parseProblem, syntaxProblem } from './problems.ts';
import type { Advice } from './problems.ts';
import { adviceForOther } from './other-texts.ts';
import { Report } from './report.ts';
import type { Syntax } from './syntax.ts';
import type { Corefile, Directive, Key, Property, ServerBlock, Token } from './tree.ts';

/** A Corefile, and what has to be known to read it. */
export interface ParseInput extends Files {
  /** Named in every place; imports are looked up beside it. */
  readonly file: string;
  readonly text: string;
  /** The port of keys without one (`-dns.port`). */
  readonly dnsPort: number;
  readonly env: Environment;
  /** Known names, in chain order. */
  readonly directives: readonly string[];
  /** Plugins that others made for CoreDNS, and what to do instead. */
  readonly external?: Readonly<Record<string, string>>;
  /** For better advice: older names of directives, and which directive a stray property belongs to. */
  readonly syntaxes?: readonly Syntax[];
}

/** What a Corefile says, and what is wrong with it. */
export interface ParseOutput {
  /** What could be read. It is whole only if there are no problems. */
  readonly corefile: Corefile;
  /** In the order found: the first one is what CoreDNS would have said. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Reads a Corefile with all it imports. Never throws; every mistake becomes a problem, and reading goes on behind it. */
export function parseCorefile(input: ParseInput): ParseOutput {
  const report = new Report();
  const parser = new Parser(input, report);
  const blocks = parser.run();
  const advice = report.found.length > 0 ? adviceForOther(input.text) : null;
  if (advice !== null) {
    // Every line of it is a mistake of the same sort: one is enough.
    report.found.splice(0, Infinity, report.found[0]!.with(advice));
    report.remarks.length = 0;
  }
  return {
    corefile: {
      file: input.file,
      blocks,
      files: parser.filesRead,
      fingerprint: fingerprint(blocks, report.found),
    },
    problems: report.found,
    warnings: report.remarks,
  };
}

/** Deeper braces than anybody writes. */
const DEPTH_MAX = 64;

class Parser {
  readonly #input: ParseInput;
  readonly #report: Report;
  readonly #stream: TokenStream;
  readonly #names: DirectiveNames;
  /** Braces that close further left than they should: where a } is probably missing. */
  #suspect: Token | null = null;
  #ended = false;
  /** Whether a block with an address stands further up. */
  #anyBlock = false;
  /** CoreDNS looks at the addresses when the whole file has been read. */
  readonly #addressProblems: Problem[] = [];
  readonly #substitute: (token: RawToken) => string;

  constructor(input: ParseInput, report: Report) {
    this.#input = input;
    this.#report = report;
    this.#substitute = (token) => textOf(token, input.env, report);
    this.#stream = new TokenStream(input.file, input.text, input, report);
    this.#names = new DirectiveNames(
      input.directives,
      input.external ?? {},
      input.syntaxes ?? [],
      report,
    );
  }

  get filesRead(): readonly string[] {
    return this.#stream.filesRead;
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

  /** Addresses, then directives in braces (or, for a file of one block, without). null: a snippet, or nothing to serve. */
  #block(start: RawToken): ServerBlock | null {
    const addresses = this.#addresses();
    const first = addresses[0];
    if (addresses.length === 1 && first !== undefined && isSnippetName(first.text)) {
      this.#snippet(first);
      return null;
    }
    const directives = this.#stream.peek() === null ? [] : this.#contents();
    if (first === undefined) {
      if (directives.length > 0) {
        this.#report.warning(start.place, 'this block has no address: it is left out', {
          code: 'block-without-address',
          remedy: "Write the zones it serves before the '{', for example '.:53'.",
        });
      }
      return null;
    }
    const keys = addresses.flatMap((address) => this.#keys(address));
    return { keys, directives, place: first.place };
  }

  #keys(address: Token): readonly Key[] {
    const { keys, problem, warnings } = parseKey(address, this.#input.dnsPort);
    if (problem !== null && this.#addressProblems.length < 100) this.#addressProblems.push(problem);
    this.#report.warnings(warnings);
    return keys;
  }

  /** A } too many behind the last block: CoreDNS reads it as one more zone, so nothing of the file is lost by it. */
  #braceAtEnd(addresses: readonly Token[], brace: RawToken): boolean {
    if (addresses.length > 0 || !this.#anyBlock || this.#stream.peek() !== null) return false;
    this.#report.warning(brace.place, "this '}' closes nothing: it is left out", {
      code: 'corefile-brace',
      hint: 'Perhaps a brace further up is one too many as well, and a block ends earlier than it looks.',
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
          this.#problem(token, problem, { code: 'corefile-comma' });
        }
        return found;
      }
      stream.take();
      if (token.text === '}') {
        if (this.#braceAtEnd(found, token)) continue;
        this.#problem(token, "Unexpected '}' because no matching opening brace", {
          code: 'corefile-brace',
        });
        continue;
      }
      if (text !== '') {
        expectingAnother = text.endsWith(',');
        found.push(plain(token, expectingAnother ? text.slice(0, -1) : text));
      }
      const next = stream.peek();
      if (next === null) break;
      if (!expectingAnother && stream.atLineStart()) return found;
    }
    if (expectingAnother && !stream.cut) {
      this.#problem(stream.last, 'Unexpected EOF', {
        code: 'corefile-comma',
        hint: 'The comma says that another address follows.',
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
    if (depth > 0) return this.#unclosed(open, true);
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
      this.#problem(tokens[own]!, text, {
        code: 'import-circle',
        hint: `The snippet '${word}' imports itself.`,
      });
      return;
    }
    if (!this.#stream.defineSnippet(word, tokens)) {
      const text = `redeclaration of previously declared snippet ${word}`;
      this.#report.problem(parseProblem(name.place, text, { code: 'snippet-repeated' }));
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
      const directive = this.#directive(braces);
      if (directive !== null) directives.push(directive);
    }
    if (braces) this.#unclosed(open, true);
    return directives;
  }

  #directive(braces: boolean): Directive | null {
    const stream = this.#stream;
    const token = stream.take();
    const at = plain(token, this.#substitute(token));
    const name = this.#names.today(at, braces);
    const args = this.#args();
    const block = this.#braces(at, 0);
    const stray = stream.peekOnLine();
    if (stray?.text === '}') {
      this.#problem(stray, "Unexpected '}' because no matching opening brace", {
        code: 'corefile-brace',
        remedy: 'Put the } on a line of its own.',
      });
    } else if (stray !== null) this.#afterBrace(stray);
    return name === null ? null : { name, at, args, block };
  }

  /** The words up to the end of the line or the next brace. */
  #args(): readonly Token[] {
    const args: Token[] = [];
    for (;;) {
      const token = this.#stream.peekOnLine();
      if (token === null || token.text === '{' || token.text === '}') return args;
      this.#stream.take();
      const word = plain(token, this.#substitute(token));
      if (!word.quoted && /^[\w.:[\]-]+,$/.test(word.text)) this.#comma(word);
      args.push(word);
    }
  }

  /** People who separate words by commas get words that end with one. */
  #comma({ text, place }: Token): void {
    this.#report.warning(place, `the comma is a part of the word '${text}'`, {
      code: 'word-comma',
      hint: 'The words of a line are separated by blanks alone.',
    });
  }

  /** What stands in braces behind the words of a line; null if no brace opens. */
  #braces(owner: Token, depth: number): readonly Property[] | null {
    const stream = this.#stream;
    const open = stream.peek();
    if (open === null || open.text !== '{') return null;
    if (stream.atLineStart()) {
      const text = `Wrong argument count or unexpected line ending after '${stream.last.text}'`;
      this.#problem(stream.last, text, {
        code: 'corefile-brace',
        hint: `The { of '${owner.text}' stands on a line of its own.`,
        remedy: 'Put the { at the end of the line before it.',
      });
    }
    stream.take();
    return this.#inside(open, owner, depth);
  }

  #inside(open: RawToken, owner: Token, depth: number): readonly Property[] {
    if (depth === DEPTH_MAX) {
      this.#problem(open, `braces nested more than ${DEPTH_MAX} deep`, { code: 'corefile-depth' });
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
    this.#unclosed(open, false);
    return lines;
  }

  #line(token: RawToken, depth: number): Property {
    const name = plain(token, this.#substitute(token));
    if (token.text === '{') {
      this.#problem(token, "unknown property '{'", {
        code: 'corefile-brace',
        remedy: 'Put the { at the end of the line before it.',
      });
      return { name, args: [], block: this.#inside(token, name, depth + 1) };
    }
    return { name, args: this.#args(), block: this.#braces(name, depth + 1) };
  }

  #closing(brace: RawToken, open: RawToken, owner: Token, last: Property | undefined): void {
    // The words before it on the line would take it for one more argument.
    if (last !== undefined && last.block === null && !this.#stream.atLineStart()) {
      this.#problem(brace, "Wrong argument count or unexpected line ending after '}'", {
        code: 'corefile-brace',
        remedy: 'Put the } on a line of its own.',
      });
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

  #afterBrace(token: RawToken): void {
    this.#problem(token, "Wrong argument count or unexpected line ending after '}'", {
      code: 'corefile-brace',
      remedy: `Put '${token.text}' on a new line.`,
    });
    this.#stream.skipLine();
  }

  /** The file ended inside braces; what lies around them is not reported again. */
  #unclosed(open: RawToken, ofBlock: boolean): void {
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
          : `Most likely the } of '${suspect.text}' at ${file}:${line} is missing.`,
    };
    if (ofBlock) this.#report.problem(syntaxProblem(last.place, last.text, '}', advice));
    else this.#problem(last, 'Unexpected EOF', advice);
  }

  #problem(token: Token, text: string, advice: Advice): void {
    if (this.#report.full) return;
    this.#report.problem(parseProblem(token.place, text, advice));
  }
}

function isSnippetName(text: string): boolean {
  return text.startsWith('(') && text.endsWith(')');
}

/** A token of the tree: plain data, without the lexer's notes. */
function plain({ place, quoted }: Token, text: string): Token {
  return { text, place, quoted };
}
