/** Parses the Corefiles in the input, and their directives according to each plugin's syntax. */
import { globSync } from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';
import { FILE_MAX, readFileText } from '../../server/base/read-file.ts';
import { Problem, type Place } from '../../server/base/problem.ts';
import { emptyCorefile } from '../../server/corefile/empty.ts';
import { overlapProblems } from '../../server/corefile/overlap.ts';
import { parseCorefile, type ParseOutput } from '../../server/corefile/parse.ts';
import { bindDirective, type Syntax } from '../../server/corefile/syntax.ts';
import type { Corefile, Directive, Key, ServerBlock } from '../../server/corefile/corefile-tree.ts';
import { namesIn } from '../../server/engine/contract/configuration.ts';
import { keyProblem } from '../../server/engine/contract/endpoints.ts';
import type { Plugin } from '../../server/engine/contract/plugin.ts';
import { correctedLines, type BraceFault, type CorrectedLine } from './brace-lines.ts';
import { braceFault, type Misplaced } from './braces.ts';
import { gluedBraces } from './glued-braces.ts';
import { indentationFaults } from './indented-braces.ts';
import type { CorefileInput, FragmentInput, Inputs } from './inputs.ts';
import { SourceText } from './source-text.ts';
import { LintedBlock, type AnyUse, type LintedCorefile } from './subject.ts';

export interface KnownPlugins {
  /** The names of all directives, including CoreDNS's own that ndots does not serve. */
  readonly directives: readonly string[];
  readonly external: Readonly<Record<string, string>>;
  load(names?: ReadonlySet<string>): Promise<readonly Plugin[]>;
}

/** The parsed Corefiles, and the texts that their places refer to, by label. */
export interface ReadCorefiles {
  readonly corefiles: readonly LintedCorefile[];
  readonly sources: ReadonlyMap<string, SourceText>;
  /** The probable mistakes in Corefiles whose braces do not match, so that their structure is a guess. */
  readonly broken: readonly BrokenCorefile[];
}

/** A Corefile whose braces do not match. */
export interface BrokenCorefile {
  readonly file: string;
  readonly problems: readonly Problem[];
}

/** Parses all Corefiles. Fragments that are not imported by any Corefile are parsed separately. */
export async function readCorefiles(inputs: Inputs, plugins: KnownPlugins): Promise<ReadCorefiles> {
  const reader = new SubjectReader(inputs.fragments, plugins);
  const whole = inputs.corefiles.map((input) => reader.parse(input, false));
  const left = inputs.fragments.filter(({ source }) => !reader.imported.has(source));
  const parts = left.map((input) => reader.parse(input, true));
  const parsed = [...whole, ...parts];
  const corefiles: LintedCorefile[] = [];
  const broken: BrokenCorefile[] = [];
  const names = new Set(parsed.flatMap(({ output }) => [...namesIn(output.corefile)]));
  await plugins.load(names);
  for (const each of parsed) {
    const { corefile, problems } = await corrected(each, reader, plugins);
    if (corefile !== null) corefiles.push(corefile);
    if (problems.length > 0) broken.push({ file: each.input.source.file, problems });
  }
  return { corefiles, sources: reader.sources, broken };
}

/** A Corefile has at most this many wrong braces. If there are more, its structure cannot be guessed. */
const BRACE_FAULTS_MAX = 20;

/** A Corefile as it would be if its braces matched, and the braces that are wrong. */
interface Corrected {
  /** Null if correcting the braces does not result in a text that parses, because other findings would be guesses. */
  readonly corefile: LintedCorefile | null;
  readonly problems: readonly Problem[];
  /** The number of mistakes that remain, without those of the braces. */
  readonly left: number;
}

/** Separates braces from words, if that explains more of the mistakes, and then corrects the other braces. */
async function corrected(
  first: Parsed,
  reader: SubjectReader,
  plugins: KnownPlugins,
): Promise<Corrected> {
  const asWritten = await correctedBraces(first, reader, plugins);
  const { source } = first.input;
  const glued =
    isExplained(asWritten) || first.fragment ? [] : gluedBraces(source.label, source.text);
  if (glued.length === 0 || glued.length > BRACE_FAULTS_MAX) return asWritten;
  const lines = correctedLines(source.writtenLines, glued);
  const parsed = reader.parse({ ...first.input, source: withLines(source, lines) }, false);
  const separated = await correctedBraces(parsed, reader, plugins);
  if (separated.left >= asWritten.left) return asWritten;
  const problems = [...glued.map((fault) => faultProblem(fault, source)), ...separated.problems];
  return { ...separated, problems };
}

/** True if at most one brace is wrong, and nothing else. */
function isExplained({ left, problems }: Corrected): boolean {
  return left === 0 && problems.length <= 1;
}

/**
 * Corrects one brace after another. If several are wrong or mistakes remain, they are derived from the indentation
 * instead, provided that this explains more of the mistakes.
 */
async function correctedBraces(
  first: Parsed,
  reader: SubjectReader,
  plugins: KnownPlugins,
): Promise<Corrected> {
  const single = await correctedInTurn(first, reader, plugins);
  if (isExplained(single) || first.fragment) return single;
  const { source } = first.input;
  const faults = indentationFaults(source.label, source.text);
  if (faults.length === 0 || faults.length > BRACE_FAULTS_MAX) return single;
  const lines = correctedLines(source.writtenLines, faults);
  const parsed = reader.parse({ ...first.input, source: withLines(source, lines) }, false);
  const loaded = await plugins.load(namesIn(parsed.output.corefile));
  const corefile = understand(parsed, loaded, reader.sources);
  const left = remaining(corefile, plugins);
  const isBetter = single.problems.length > 1 ? left <= single.left : left < single.left;
  if (!isBetter || left === Infinity) return single;
  return { corefile, problems: faults.map((fault) => faultProblem(fault, source)), left };
}

/**
 * The number of mistakes, which is infinite if the structure is a guess. A server block whose name is a directive
 * or contains a brace counts, because a brace above it or in it is probably wrong.
 */
function remaining({ problems, blocks }: LintedCorefile, { directives }: KnownPlugins): number {
  if (problems.some(isStructural)) return Infinity;
  const keys = blocks.flatMap(({ block }) => block.keys);
  const isOdd = ({ text }: Key): boolean => directives.includes(text) || /[{}]/.test(text);
  return problems.length + keys.filter(isOdd).length;
}

/** A Corefile with the most probable wrong brace corrected, then the next, until the text parses. */
async function correctedInTurn(
  first: Parsed,
  reader: SubjectReader,
  plugins: KnownPlugins,
): Promise<Corrected> {
  const problems: Problem[] = [];
  let inserted: ReadonlySet<number> = new Set();
  for (let parsed = first; ;) {
    const loaded = await plugins.load(namesIn(parsed.output.corefile));
    const corefile = understand(parsed, loaded, reader.sources);
    const { source } = parsed.input;
    const fault = corefile.fragment ? null : faultIn(corefile, source, plugins, inserted);
    if (fault === null) {
      const isWrong = [...corefile.problems, ...corefile.warnings].some(isStructural);
      const imported = isWrong ? reader.correctImports(parsed.output) : [];
      if (imported.length > 0) {
        problems.push(...imported);
        parsed = reader.parse(parsed.input, parsed.fragment);
        continue;
      }
      const left = remaining(corefile, plugins);
      const fits = problems.length === 0 || left < Infinity;
      return { corefile: fits ? corefile : null, problems, left };
    }
    problems.push(faultProblem(fault, source));
    if (problems.length >= BRACE_FAULTS_MAX) return { corefile: null, problems, left: Infinity };
    const lines = correctedLines(source.writtenLines, [fault]);
    inserted = insertedIn(lines, inserted);
    parsed = reader.parse({ ...parsed.input, source: withLines(source, lines) }, false);
  }
}

/** The numbers of the lines that are not in the text as written, after a correction. */
function insertedIn(
  lines: readonly CorrectedLine[],
  before: ReadonlySet<number>,
): ReadonlySet<number> {
  return new Set(
    lines.flatMap(({ inserted, from }, index) => (inserted || before.has(from) ? index + 1 : [])),
  );
}

/** True for problems with braces, which make the structure of a Corefile a guess. */
export function isStructural({ code }: Pick<Problem, 'code'>): boolean {
  return /^corefile-(?:syntax|brace|end|depth)$/.test(code);
}

/** The probable brace mistake in a Corefile that does not parse, or null if there is none. */
function faultIn(
  { problems }: LintedCorefile,
  { label, text }: SourceText,
  { directives }: KnownPlugins,
  inserted: ReadonlySet<number>,
): BraceFault | null {
  const lines = text.split('\n');
  const misplaced = problems.flatMap(({ code, place }): Misplaced | readonly [] => {
    if (place?.file !== label) return [];
    const words = (lines[place.line - 1] ?? '').trim().split(/\s+/);
    const [name = ''] = words;
    if (code === 'property-unknown' && directives.includes(name))
      return { line: place.line, what: 'directive' };
    const isBlock = code === 'directive-unknown' && /[.:/]/.test(name) && words.at(-1) === '{';
    return isBlock ? { line: place.line, what: 'server block' } : [];
  });
  const [top = null] = misplaced.toSorted((a, b) => a.line - b.line);
  const fault = braceFault(label, text, top, inserted);
  // If there are no problems, a } may be missing at the end, which the server adds.
  return fault === null || (problems.length === 0 && !fault.loses) ? null : fault;
}

/** The text with its braces corrected. Its label differs, because places in it are in other lines. */
function withLines(source: SourceText, lines: readonly CorrectedLine[]): SourceText {
  return source.withLines(`${source.label} (corrected)`, lines);
}

function faultProblem(fault: BraceFault, { label }: SourceText): Problem {
  const { line, column, hint, remedy, text } = fault;
  const place: Place = { file: label, line, column };
  return new Problem({
    code: 'corefile-brace',
    text,
    place,
    remedy,
    ...(hint !== null && { hint }),
  });
}

interface Parsed {
  readonly input: CorefileInput;
  readonly fragment: boolean;
  readonly output: ParseOutput;
}

class SubjectReader {
  readonly sources = new Map<string, SourceText>();
  readonly imported = new Set<SourceText>();
  readonly #fragments: readonly FragmentInput[];
  readonly #plugins: KnownPlugins;
  /** Imported texts whose braces were corrected, by the label of the text as written. */
  readonly #corrected = new Map<string, SourceText>();

  constructor(fragments: readonly FragmentInput[], plugins: KnownPlugins) {
    this.#fragments = fragments;
    this.#plugins = plugins;
  }

  parse(input: CorefileInput, fragment: boolean): Parsed {
    const source = fragment ? wrapped(input as FragmentInput) : input.source;
    this.sources.set(source.label, source);
    const isFile = input.object === null;
    const output = parseCorefile({
      file: source.label,
      text: source.text,
      dnsPort: 53,
      env: {},
      directives: this.#plugins.directives,
      external: this.#plugins.external,
      readFile: (path) => this.#readFile(path, isFile),
      glob: (pattern) => this.#glob(pattern, isFile),
    });
    return { input, fragment, output };
  }

  #readFile(path: string, isFile: boolean): string {
    const fragment = this.#fragments.find(
      ({ name, source }) => source.label === path || (!isFile && name === basename(path)),
    );
    if (fragment !== undefined) this.imported.add(fragment.source);
    const source =
      this.#corrected.get(path) ?? fragment?.source ?? (isFile ? fileSource(path) : null);
    if (source === null)
      throw Object.assign(new Error(`${path} is not in the input`), { code: 'NOT-HERE' });
    this.sources.set(path, source);
    return source.text;
  }

  /**
   * Corrects the braces in imported texts, and returns the problems with those that were not corrected before. The
   * parser identifies an imported text by its path, so the corrected text keeps that label.
   */
  correctImports({ texts, corefile: { file } }: ParseOutput): readonly Problem[] {
    const problems: Problem[] = [];
    for (const path of texts.keys()) {
      let source = this.sources.get(path);
      if (source === undefined || path === file || this.#corrected.has(path)) continue;
      let inserted: ReadonlySet<number> = new Set();
      for (let count = 0; count < BRACE_FAULTS_MAX; count++) {
        const written = source.withLines(
          `${path} (version ${count})`,
          source.writtenLines.map((text, index) => ({ text, from: index + 1 })),
        );
        const fault = braceFault(written.label, written.text, null, inserted);
        if (fault === null) break;
        this.sources.set(written.label, written);
        problems.push(faultProblem(fault, written));
        const lines = correctedLines(source.writtenLines, [fault]);
        inserted = insertedIn(lines, inserted);
        source = source.withLines(path, lines);
        this.#corrected.set(path, source);
      }
    }
    return problems;
  }

  #glob(pattern: string, isFile: boolean): readonly string[] {
    const files = isFile ? globSync(pattern).toSorted() : [];
    if (files.length > 0) return files;
    const directory = dirname(pattern);
    return this.#fragments
      .filter(({ name, object }) => object !== null && fits(name, basename(pattern)))
      .map(({ name }) =>
        isAbsolute(directory) || directory !== '.' ? `${directory}/${name}` : name,
      );
  }
}

function fileSource(path: string): SourceText {
  const text = readFileText(path, FILE_MAX.corefile);
  return new SourceText({ label: path, file: path, within: null, text, origins: null });
}

/** An override belongs in a server block, so a separate one is parsed as part of a block for the root zone. */
function wrapped({ name, source }: FragmentInput): SourceText {
  if (!name.endsWith('.override')) return source;
  const lines = source.text.split('\n').length;
  const origins = Array.from({ length: lines + 1 }, (_, index) => {
    const { line, column, exact } = source.outside({ line: Math.max(1, index), column: 1 });
    return { line, shift: column - 1, exact };
  });
  const { label, file, within } = source;
  return new SourceText({ label, file, within, text: `.:53 {\n${source.text}\n}\n`, origins });
}

/** True if a name matches a pattern with at most one `*` and one `?`, which is the limit for imports. */
function fits(name: string, pattern: string): boolean {
  const star = pattern.indexOf('*');
  const same = (part: string, of: string): boolean =>
    part.length === of.length &&
    Array.from(of).every((mark, at) => mark === '?' || mark === part[at]);
  if (star < 0) return same(name, pattern);
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (
    name.length >= head.length + tail.length &&
    same(name.slice(0, head.length), head) &&
    same(name.slice(name.length - tail.length), tail)
  );
}

function understand(
  { input, fragment, output }: Parsed,
  plugins: readonly Plugin[],
  sources: ReadonlyMap<string, SourceText>,
): LintedCorefile {
  const { corefile: tree } = output;
  const problems: Problem[] = [...output.problems];
  const warnings: Problem[] = [...output.warnings];
  if (!fragment && tree.blocks.length === 0 && problems.length + warnings.length === 0)
    warnings.push(emptyCorefile(tree.file));
  const role = isNodeCache(input, tree) ? 'node-cache' : 'server';
  const parts = { file: input.source.file, fragment, role, object: input.object } as const;
  const today = new Map(
    plugins.flatMap(({ name, syntax }) => Object.keys(syntax.formerly).map((old) => [old, name])),
  );
  const blocks = tree.blocks.map((block) => {
    const directives = block.directives.map((each) => ({
      ...each,
      name: today.get(each.name) ?? each.name,
    }));
    const uses = new Map<string, readonly AnyUse[]>();
    for (const { name, syntax } of plugins) {
      const bound = usesIn(block, directives, syntax);
      if (bound === null) continue;
      uses.set(name, bound.uses);
      problems.push(...bound.problems);
      warnings.push(...bound.warnings);
    }
    return new LintedBlock({ ...block, directives }, parts, uses);
  });
  if (!fragment) problems.push(...overlapProblems(tree.blocks.map(claimOf)));
  problems.push(...tree.blocks.flatMap((block) => addressProblems(block, output)));
  const isAssumed = (place: Place): boolean => sources.get(place.file)?.isAssumed(place) ?? false;
  return { ...parts, tree, blocks, problems, warnings, isAssumed };
}

/** Addresses that no server can listen on. The certificate may be in an import that is missing. */
function addressProblems(
  { keys, directives }: ServerBlock,
  { problems, warnings }: Pick<ParseOutput, 'problems' | 'warnings'>,
): readonly Problem[] {
  const lacks = [...problems, ...warnings].some(({ code }) => code.startsWith('import-'));
  const hasTls = lacks || directives.some(({ name }) => name === 'tls');
  return keys.flatMap((key) => keyProblem(key, hasTls) ?? []);
}

/** @param today the block's directives, by current name */
function usesIn(
  block: ServerBlock,
  today: readonly Directive[],
  syntax: Syntax,
): {
  readonly uses: readonly AnyUse[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
} | null {
  const directives = block.directives.filter(
    ({ name }) => name === syntax.name || Object.hasOwn(syntax.formerly, name),
  );
  if (directives.length === 0) return null;
  const zones = [...new Set(block.keys.map(({ zone }) => zone))];
  const { options, problems, warnings } = bindDirective(syntax, directives, { zones });
  const given = options.flat() as unknown as readonly AnyUse['given'][];
  const uses = given.flatMap((each) => {
    const directive = today.find(({ at }) => at.place === each.at);
    return directive === undefined ? [] : [{ directive, given: each }];
  });
  return { uses, problems, warnings };
}

function claimOf({ keys, directives }: ServerBlock): Parameters<typeof overlapProblems>[0][number] {
  const binds = directives
    .filter(({ name }) => name === 'bind')
    .flatMap(({ args }) => args.map(({ text }) => text));
  return { keys, binds, hasView: directives.some(({ name }) => name === 'view') };
}

/**
 * True for NodeLocal DNSCache's Corefile, which is recognised by its variables, the name of its object, or its listen
 * address.
 */
function isNodeCache({ source, object }: CorefileInput, { blocks }: Corefile): boolean {
  if (source.hasVariables && source.text.includes('169.254.20.10')) return true;
  if (object !== null && /node-?local/i.test(object.name)) return true;
  return blocks.some(({ directives }) =>
    directives.some(
      ({ name, args }) => name === 'bind' && args.some(({ text }) => text.startsWith('169.254.')),
    ),
  );
}
