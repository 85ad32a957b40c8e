/** The linter, which reads its input, runs the rules, and removes suppressed findings. */
import { child, text } from '../../server/base/json-object.ts';
import { nearest, type Place, type Problem } from '../../server/base/problem.ts';
import type { Directive } from '../../server/corefile/corefile-tree.ts';
import { readEdits } from './edits.ts';
import { severities, type Edit, type LintFinding, type Spot } from './finding.ts';
import type { GatheredFiles, GivenFile } from './gather.ts';
import { sortInputs, type Inputs } from './inputs.ts';
import { readingRules } from './reading.lint.ts';
import { isStructural, readCorefiles, type KnownPlugins } from './read-subject.ts';
import type { Aim, Fix, LintRule, Told } from './lint-rule.ts';
import type { SourceText } from './source-text.ts';
import type { LintObject, LintedCorefile, Subject } from './subject.ts';
import { Suppressions } from './suppressions.ts';
import { isOfCore, targetOfChart, targetOfImage, type LintTarget } from './target.ts';
import { containersOf } from './workload.ts';

export interface LintParts {
  readonly given: GatheredFiles;
  readonly plugins: KnownPlugins;
  readonly rules: readonly LintRule[];
  /**
   * All existing rules, which default to `rules`. Suppression comments may mention any of them, and a file that is only
   * covered by a rule outside `rules` is not reported as unused.
   */
  readonly known?: readonly LintRule[];
  /** The target. If null, it is derived from any images in the input. */
  readonly target: LintTarget | null;
  /** The Corefile that runs now, or null if unknown. */
  readonly running?: GivenFile | null;
  /** Runs the rules that query the network. If absent, nothing is sent. */
  readonly live?: (subject: Subject) => Promise<readonly (readonly [LintRule, Told])[]>;
  /** Called with the current work. */
  readonly progress?: (text: () => string) => void;
}

export interface LintReport {
  /** In the order of files and lines. */
  readonly findings: readonly LintFinding[];
  /** The files with content that some rule judges. */
  readonly files: readonly string[];
  /** Named files without such content, each with a description of the actual content. */
  readonly notJudged: readonly { readonly file: string; readonly holds: string }[];
  readonly target: LintTarget | null;
  /** The number of findings that comments suppressed. */
  readonly suppressed: number;
  readonly subject: Subject;
}

/** Runs the linter. Mistakes in the input become findings, so this rejects only because of bugs. */
export async function lint(parts: LintParts): Promise<LintReport> {
  const { given, plugins, rules, progress } = parts;
  const inputs = sortInputs(given.files, progress);
  const { corefiles, sources, broken } = await readCorefiles(inputs, plugins);
  const target = parts.target ?? targetIn(inputs.objects, corefiles);
  const subject: Subject = {
    corefiles,
    objects: inputs.objects,
    resolvConfs: inputs.resolvConfs,
    target,
    running: await readRunning(parts),
  };
  const texts = new Map(given.files.map(({ file, text }) => [file, text.split('\n')]));
  const collector = new FindingCollector(sources, texts);
  for (const problem of broken.flatMap(({ problems }) => problems))
    collector.problem(BRACES, problem);
  const refused = new RefusedLines(corefiles);
  const fitting = rules.filter(({ ofCore }) => ofCore !== true || isOfCore(target));
  for (const [index, rule] of fitting.entries()) {
    progress?.(() => `rule ${rule.code}, ${index + 1} of ${fitting.length}`);
    rule.find(subject, (told) => {
      if (!refused.has(rule, told)) collector.add(rule, told);
    });
  }
  if (parts.live !== undefined) progress?.(() => 'asking the network');
  for (const [rule, told] of (await parts.live?.(subject)) ?? []) collector.add(rule, told);
  for (const problem of inputs.problems) collector.problem(UNREADABLE, problem);
  const foreign = new Set<string>();
  for (const corefile of corefiles.filter((each) => isForeign(each, plugins))) {
    const { file } = corefile.tree;
    foreign.add(corefile.file);
    collector.problem(UNREADABLE, {
      message: 'this is probably not a Corefile: hardly any line begins with a directive',
      place: { file, line: 1, column: 1 },
    });
  }
  for (const { file, why } of given.passed)
    collector.problem(UNREADABLE, { message: why, place: { file, line: 1, column: 0 } });
  const { known = rules } = parts;
  const tried = new Set(fitting.map(({ code }) => code));
  const suppressions = new Suppressions(texts, new Set(known.map(({ code }) => code)), tried);
  const kept = collector.findings.filter((finding) => !suppressions.covers(finding));
  const misuses = suppressions.misuses((code) => nearestCode(code, rules));
  const judged = new Set(known.flatMap(({ kinds = [] }) => kinds));
  const files = new Set(
    [
      ...inputs.objects.filter(({ kind }) => judged.has(kind)),
      ...corefiles,
      ...broken,
      // A resolv.conf is examined only next to a Corefile, or by rules that query the network.
      ...(corefiles.length > 0 || parts.live !== undefined ? inputs.resolvConfs : []),
    ].map(({ file }) => file),
  );
  const told = new Set(collector.findings.map(({ spot }) => spot.file));
  const guessed = new Set([...corefiles.filter(isGuessed), ...broken].map(({ file }) => file));
  const mendable = (finding: LintFinding): LintFinding =>
    finding.edits.some(({ file }) => guessed.has(file)) ? { ...finding, edits: [] } : finding;
  return {
    findings: shortened([...kept.map(mendable), ...misuses].toSorted(byPlace), foreign),
    files: [...files],
    notJudged: given.files
      .filter(({ file, named }) => named && !files.has(file) && !told.has(file))
      .map(({ file }) => ({ file, holds: heldText(inputs, file) })),
    target,
    suppressed: collector.findings.length - kept.length,
    subject,
  };
}

/** True if the structure is a guess because braces do not match, in which case no fixes are offered. */
function isGuessed({ problems }: Pick<LintedCorefile, 'problems'>): boolean {
  return problems.some(isStructural);
}

/** If a text has this many mistakes, it may not be a Corefile. */
const FOREIGN_PROBLEMS = 5;
/** Limit on findings for a text that is not a Corefile. */
const FOREIGN_MAX = 10;

/** True if hardly any words in a text are directives. */
function isForeign({ problems, blocks, fragment }: LintedCorefile, known: KnownPlugins): boolean {
  if (fragment || problems.length < FOREIGN_PROBLEMS) return false;
  const names = blocks.flatMap(({ block }) => block.directives.map(({ name }) => name));
  const good = names.filter(
    (name) => known.directives.includes(name) || Object.hasOwn(known.external, name),
  );
  return good.length * FOREIGN_PROBLEMS <= names.length;
}

/** For texts that are not Corefiles, returns their first findings, along with a finding that says so. */
function shortened(
  findings: readonly LintFinding[],
  foreign: ReadonlySet<string>,
): readonly LintFinding[] {
  const counts = new Map<string, number>();
  return findings.filter(({ spot: { file }, code }) => {
    if (!foreign.has(file) || code === UNREADABLE) return true;
    const count = (counts.get(file) ?? 1) + 1;
    counts.set(file, count);
    return count <= FOREIGN_MAX;
  });
}

/** The number of of a file's objects are listed by name. The rest are counted. */
const HELD_MAX = 3;

/** Describes the content of a file that no rule covers. */
function heldText({ objects, resolvConfs }: Inputs, file: string): string {
  if (resolvConfs.some((each) => each.file === file))
    return 'a resolv.conf, which is checked only together with a Corefile or with --live';
  const held = objects.filter((each) => each.file === file);
  if (held.length === 0) return 'neither a Corefile nor a Kubernetes object';
  const names = held.slice(0, HELD_MAX).map(({ kind, name, value }) => {
    const keys = kind === 'ConfigMap' ? Object.keys(child(value, 'data')) : [];
    const without =
      keys.length === 0
        ? ''
        : ` with ${keys.slice(0, HELD_MAX).join(', ')}, none of which has "Corefile" in its name`;
    return `${`${kind} ${name}`.trimEnd()}${without}`;
  });
  const more = held.length - names.length;
  return `${names.join('; ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** The probable correction of a code, for example CF03 for CF3. */
export function nearestCode(code: string, rules: readonly Pick<LintRule, 'code'>[]): string | null {
  const codes = rules.map((rule) => rule.code);
  const padded = code.toUpperCase().replace(/^CF0*(\d)$/, 'CF0$1');
  return codes.includes(padded) ? padded : nearest(code, codes);
}

async function readRunning({ running, plugins }: LintParts): Promise<Subject['running']> {
  if (running === undefined || running === null) return null;
  const { corefiles } = await readCorefiles(sortInputs([running]), plugins);
  return corefiles[0] ?? null;
}

/**
 * The release according to the images, or else the chart. A node-cache image does not apply to Corefiles for other
 * servers.
 */
function targetIn(
  objects: readonly LintObject[],
  corefiles: readonly Pick<LintedCorefile, 'role'>[],
): LintTarget | null {
  const targets = objects.flatMap((object) => {
    const values = child(object.kind === 'HelmValues' ? object.value : {}, 'image');
    const charted = `${text(values, 'repository')}:${text(values, 'tag')}`;
    const images = [charted, ...containersOf(object).map((each) => each.image)];
    return images.map(targetOfImage).filter((target) => target !== null);
  });
  if (targets.length === 0)
    return (
      objects
        .map(chartOf)
        .map(targetOfChart)
        .find((each) => each !== null) ?? null
    );
  const ofServer = targets.find(({ kind }) => kind !== 'node-cache') ?? null;
  if (corefiles.some(({ role }) => role === 'server')) return ofServer;
  return targets.find(({ kind }) => kind === 'node-cache') ?? ofServer;
}

/** The chart that another program's object installs or configures. Empty if there is none. */
function chartOf({ kind, name, value }: LintObject): string {
  const spec = child(value, 'spec');
  switch (kind) {
    case 'HelmChart':
      return text(spec, 'chart');
    // An object for k3s and RKE2, named after the HelmChart that it configures.
    case 'HelmChartConfig':
      return name;
    case 'HelmRelease':
      return text(child(child(spec, 'chart'), 'spec'), 'chart');
    case 'Application':
      return text(child(spec, 'source'), 'chart');
    default:
      return '';
  }
}

/** True if the finding says that the text does not parse, which explains other findings. */
function isStructure({ code, severity }: LintFinding): boolean {
  return code === BRACES && severity === 'error';
}

function byPlace(a: LintFinding, b: LintFinding): number {
  const rank = (finding: LintFinding): number => severities.indexOf(finding.severity);
  return (
    (a.spot.file < b.spot.file ? -1 : a.spot.file > b.spot.file ? 1 : 0) ||
    Number(isStructure(b)) - Number(isStructure(a)) ||
    a.spot.line - b.spot.line ||
    a.spot.column - b.spot.column ||
    rank(a) - rank(b) ||
    (a.code < b.code ? -1 : 1)
  );
}

/** Additional findings by one rule in the same file are left out, because a generator repeats its mistakes. */
const SAME_MAX = 50;

class FindingCollector {
  readonly findings: LintFinding[] = [];
  readonly #sources: ReadonlyMap<string, SourceText>;
  readonly #texts: ReadonlyMap<string, readonly string[]>;
  readonly #seen = new Set<string>();
  readonly #counts = new Map<string, number>();

  constructor(
    sources: ReadonlyMap<string, SourceText>,
    texts: ReadonlyMap<string, readonly string[]>,
  ) {
    this.#sources = sources;
    this.#texts = texts;
  }

  add({ code, severity }: Pick<LintRule, 'code' | 'severity'>, told: Told): void {
    const { place, length } = aimedAt(told.at);
    const source = this.#sources.get(place.file);
    const outer = source === undefined ? { ...place, exact: true } : source.outside(place);
    const { file, line, exact } = outer;
    const column = Math.max(1, outer.column);
    const shown = this.#shown({ file, line, column, exact }, source, place);
    const width = length ?? wordAt(shown.excerpt, shown.caret);
    const spot: Spot = { file, line, column, endColumn: column + Math.max(1, width) };
    const identity = `${code} ${file}:${line}:${column} ${told.text}`;
    const count = (this.#counts.get(`${code} ${file}`) ?? 0) + 1;
    if (this.#seen.has(identity) || count > SAME_MAX) return;
    this.#seen.add(identity);
    this.#counts.set(`${code} ${file}`, count);
    this.findings.push({
      code,
      severity: told.severity ?? severity,
      text: this.#placed(told.text),
      spot,
      within: source?.within ?? null,
      ...shown,
      hint: told.hint ? this.#placed(told.hint) : null,
      remedy: told.remedy ? this.#placed(told.remedy) : null,
      edits: [told.fix ?? []].flat().flatMap((fix) => this.#edits(fix)),
    });
  }

  /** The text, with places counted as in findings: in the file that a person edits. */
  #placed(text: string): string {
    let placed = text;
    for (const [label, source] of this.#sources) placed = source.placedText(placed, label);
    return placed;
  }

  /** The edits for a fix, which may also affect texts that the Corefile imports. */
  #edits(fix: Fix): readonly Edit[] {
    const at = fix.kind === 'property' ? fix.directive.at : fix.token;
    const source = this.#sources.get(at.place.file);
    return source === undefined ? [] : readEdits(fix, source, this.#texts);
  }

  /** Reports a problem as an error of the rule with this code. */
  problem(code: string, problem: ProblemLike): void {
    const at: Place = problem.place ?? { file: '', line: 1, column: 0 };
    const { hint = null, remedy = null } = problem;
    this.add({ code, severity: 'error' }, { at, text: problem.message, hint, remedy });
  }

  /** The line to show, which is the line in the file unless it is a quoted text of many lines. */
  #shown(
    outer: Place & { readonly exact: boolean },
    source: SourceText | undefined,
    place: Place,
  ): Pick<LintFinding, 'excerpt' | 'caret'> {
    const text = this.#texts.get(outer.file)?.[outer.line - 1] ?? null;
    const inQuotes = !outer.exact && (text === null || text.includes('\\n'));
    const written = inQuotes ? (source?.written(place.line) ?? null) : null;
    if (written !== null) return { excerpt: written, caret: place.column };
    return { excerpt: text?.replace(/\r$/, '') ?? null, caret: outer.column };
  }
}

type ProblemLike = Pick<Problem, 'message' | 'place'> & Partial<Pick<Problem, 'hint' | 'remedy'>>;

/** The rules of braces that do not match, and of unreadable parts of the input. */
const BRACES = 'CF34';
const UNREADABLE = 'CF49';

/** The rules that report what the parser refuses. */
const readingCodes: ReadonlySet<string> = new Set([
  ...readingRules.map(({ code }) => code),
  'CF01',
]);

/**
 * Lines with directives that the server rejects. Other rules would misjudge them, and apply once they have been
 * corrected.
 */
class RefusedLines {
  readonly #lines = new Set<string>();

  constructor(corefiles: readonly LintedCorefile[]) {
    for (const { blocks, problems } of corefiles) {
      const wrong = new Set(problems.flatMap(({ place }) => (place ? keyOf(place) : [])));
      if (wrong.size === 0) continue;
      for (const directive of blocks.flatMap(({ block }) => block.directives)) {
        const own = linesOf(directive).map(keyOf);
        if (own.some((key) => wrong.has(key))) for (const key of own) this.#lines.add(key);
      }
    }
  }

  has({ code }: Pick<LintRule, 'code'>, { at }: Told): boolean {
    if (this.#lines.size === 0 || 'object' in at || readingCodes.has(code)) return false;
    return this.#lines.has(keyOf(aimedAt(at).place));
  }
}

function keyOf({ file, line }: Pick<Place, 'file' | 'line'>): string {
  return `${file}:${line}`;
}

/** The places of the words at the start of a directive's lines. */
function linesOf({ at, block }: Pick<Directive, 'at' | 'block'>): readonly Place[] {
  const inner = (block ?? []).flatMap((line) => linesOf({ at: line.name, block: line.block }));
  return [at.place, ...inner];
}

function wordAt(line: string | null, column: number): number {
  return /^[^\s{},]*/.exec((line ?? '').slice(column - 1, column + 80))![0].length;
}

/** The place of a finding, and how many columns to underline. Null underlines up to the end of the word. */
function aimedAt(at: Aim | Place): { readonly place: Place; readonly length: number | null } {
  if ('object' in at) return { place: at.object.place(at.path), length: null };
  if ('line' in at) return { place: at, length: null };
  if ('keys' in at) return { place: at.place, length: at.keys[0]?.text.length ?? 1 };
  if ('text' in at) return { place: at.place, length: at.text.length + (at.quoted ? 2 : 0) };
  const token = 'at' in at ? at.at : typeof at.name === 'string' ? null : at.name;
  return token === null
    ? { place: { file: '', line: 1, column: 1 }, length: 1 }
    : { place: token.place, length: token.text.length };
}
