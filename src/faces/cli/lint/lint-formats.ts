/** Prints findings as text (an excerpt with a caret), JSON, SARIF, GitHub annotations or JUnit. */
import { visible } from '../../../server/base/visible.ts';
import { severities, type LintFinding, type LintSeverity } from '../../../tools/lint/finding.ts';
import type { LintReport } from '../../../tools/lint/lint.ts';
import { lintDocument } from './lint-document.ts';
import type { LintOutput } from './lint-options.ts';
import { count } from '../../../server/base/counted.ts';
import { clip, ONE_LINE_COLUMNS, pageFor, wrap, type Page } from '../page.ts';
import { sarif } from './lint-sarif.ts';
import { coloured } from '../terminal.ts';
import { xmlText } from '../check/xml-text.ts';

export interface TextStyle {
  readonly colour: boolean;
  readonly program: string;
  /** Terminal width. */
  readonly columns: number;
}

export function printFindings(format: LintOutput, report: LintReport, style: TextStyle): string {
  return formats[format](report, style);
}

const formats: Readonly<Record<LintOutput, (report: LintReport, style: TextStyle) => string>> = {
  text: printText,
  json: (report) => `${JSON.stringify(lintDocument(report), null, 2)}\n`,
  sarif: (report) => `${JSON.stringify(sarif(report), null, 2)}\n`,
  github,
  junit,
};

function targetText({ target }: LintReport): string {
  if (target === null) return 'for ndots; --target coredns checks for CoreDNS';
  return target.kind === 'ndots' ? 'for ndots' : `for ${target.label}`;
}

const colours: Readonly<Record<LintSeverity, number>> = { error: 31, warning: 33, note: 36 };

/** Indentation of the lines after a finding's first one. */
const INDENT = ' '.repeat(6);

function printText(report: LintReport, { colour, program, columns }: TextStyle): string {
  const page = pageFor({ colour, wide: false, columns });
  const paint = (text: string, sgr: number): string => (colour ? coloured(text, sgr) : text);
  const { findings } = report;
  const lines: string[] = [];
  for (const finding of findings) {
    const { code, severity, text, spot, within, hint, remedy } = finding;
    const where = `${spot.file}:${spot.line}:${spot.column}`;
    const part = within === null ? '' : ` ${within}`;
    const what = `${paint(severity, colours[severity])} ${code}: ${text}`;
    lines.push(...headLines(`${paint(where, 1)}${part}:`, what, page));
    lines.push(...excerptLines(finding, paint, page));
    for (const advice of [hint, remedy])
      if (advice !== null) lines.push(...wrap(advice, INDENT, page));
    lines.push('');
  }
  const fixable = findings.filter(({ edits }) => edits.length > 0).length;
  const places = findings.reduce((sum, { edits }) => sum + edits.length, 0);
  const where = places === fixable ? '' : ` at ${places} places`;
  const [first] = findings.toSorted(byWorst);
  const { notJudged } = report;
  const nothingIn = (each: (typeof notJudged)[number]): string =>
    `Nothing to lint in ${holdsText(each)}`;
  const ends = [
    ...(notJudged.length > DETAILS_MAX ? [] : notJudged.map(nothingIn)),
    summary(report),
    ...(notJudged.length > DETAILS_MAX
      ? [`Nothing to lint in ${notJudged.length} other inputs (-o json lists them)`]
      : []),
    ...(fixable === 0
      ? []
      : [
          `${count(fixable, 'finding', 'findings')} can be fixed${where} by: ${program} lint --fix (with --diff, it only shows the change)`,
        ]),
    ...(first === undefined ? [] : [`Why: ${program} lint --explain ${first.code}`]),
  ];
  lines.push(...ends.flatMap((line) => wrap(line, '', page)));
  return `${lines.join('\n')}\n`;
}

/** If more inputs than this have nothing to lint, only their number is printed. */
const DETAILS_MAX = 2;

/** Describes a file without anything to lint. */
export function holdsText({ file, holds }: LintReport['notJudged'][number]): string {
  return `${file}: it holds ${holds}`;
}

function headLines(where: string, what: string, page: Page): readonly string[] {
  if (page.columns >= ONE_LINE_COLUMNS) return [`${where} ${what}`];
  // Paths are not wrapped.
  if (where.length > page.columns - INDENT.length) return [where, ...wrap(what, INDENT, page)];
  const [first = '', ...more] = wrap(`${where} ${what}`, INDENT, page);
  return [first.trimStart(), ...more];
}

/** Maximum number of characters shown from a line. */
const EXCERPT_MAX = 110;
/** The number of characters to show before the position in a long line. */
const BEFORE_MAX = 20;

function excerptLines(
  { spot: { line, column, endColumn }, excerpt, caret, severity }: LintFinding,
  paint: (text: string, sgr: number) => string,
  { columns }: Page,
): string[] {
  if (excerpt === null) return [];
  const shown = (text: string): string => visible(text.replaceAll('\t', ' '));
  const [whole, before] = [shown(excerpt), shown(excerpt.slice(0, caret - 1)).length];
  const marked = shown(excerpt.slice(caret - 1, caret - 1 + endColumn - column)).length;
  const number = String(line).padStart(4);
  const room = Math.min(EXCERPT_MAX, columns - number.length - 3);
  const start =
    whole.length > room
      ? Math.max(0, Math.min(before + 1 - BEFORE_MAX, whole.length - BEFORE_MAX))
      : 0;
  const part = clip(whole.slice(start), room);
  const text = start > 0 ? `…${part.slice(1)}` : part;
  const at = Math.max(0, before - start);
  const length = Math.max(1, Math.min(marked, text.length - at));
  return [
    `${number} │ ${text}`,
    `${' '.repeat(number.length)} │ ${' '.repeat(at)}${paint('^'.repeat(length), colours[severity])}`,
  ];
}

function summary(report: LintReport): string {
  const { findings, files, suppressed } = report;
  const totals = severities.map((severity) => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return count(number, severity, `${severity}s`);
  });
  const ignored = suppressed > 0 ? `, ${suppressed} ignored` : '';
  return `${count(files.length, 'file', 'files')}: ${totals.join(', ')}${ignored} (${targetText(report)})`;
}

function byWorst(one: LintFinding, other: LintFinding): number {
  return severities.indexOf(one.severity) - severities.indexOf(other.severity);
}

/** Prints GitHub workflow commands, starting with the worst because a step shows only ten of each severity. */
function github({ findings }: LintReport): string {
  const word: Readonly<Record<LintSeverity, string>> = {
    error: 'error',
    warning: 'warning',
    note: 'notice',
  };
  const data = (text: string): string =>
    text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  const property = (text: string): string =>
    data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
  return findings
    .toSorted(byWorst)
    .map(({ severity, spot, code, text, hint, remedy }) => {
      const place = `file=${property(spot.file)},line=${spot.line},col=${spot.column},endColumn=${spot.endColumn}`;
      const message = [text, hint, remedy].filter((part) => part !== null).join('\n');
      return `::${word[severity]} ${place},title=${code}::${data(message)}\n`;
    })
    .join('');
}

function junit({ findings, files }: LintReport): string {
  const suites = [...new Set([...files, ...findings.map(({ spot }) => spot.file)])].map((file) => {
    const own = findings.filter(({ spot }) => spot.file === file);
    const cases = own.map(({ code, severity, text, spot, hint, remedy }) => {
      const name = `${code} at ${spot.line}:${spot.column}`;
      const body = [text, hint, remedy].filter((part) => part !== null).join('\n');
      const inner =
        severity === 'note'
          ? `<system-out>${xmlText(body)}</system-out>`
          : `<failure type="${severity}" message="${xmlText(text)}">${xmlText(body)}</failure>`;
      return `    <testcase classname="${xmlText(file)}" name="${xmlText(name)}">${inner}</testcase>`;
    });
    const failures = own.filter(({ severity }) => severity !== 'note').length;
    const clean = `    <testcase classname="${xmlText(file)}" name="lint"/>`;
    return [
      `  <testsuite name="${xmlText(file)}" tests="${Math.max(1, own.length)}" failures="${failures}">`,
      ...(cases.length === 0 ? [clean] : cases),
      '  </testsuite>',
    ].join('\n');
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ndots lint">\n${suites.join('\n')}\n</testsuites>\n`;
}
