/** What the reading of a Corefile finds, under the codes of the linter: CF01, CF02, CF22, CF34, CF38, CF43, CF44. */
import type { Problem } from '../base/problem.ts';
import type { LintRule, Told } from './rule.ts';
import type { LintedCorefile, Subject } from './subject.ts';

/** Codes of problems that have a rule of their own; other problems are CF43, other remarks CF44. */
const rulesByProblem: Readonly<Record<string, string>> = {
  'directive-unknown': 'CF01',
  'property-unknown': 'CF01',
  'directive-renamed': 'CF01',
  'property-retired': 'CF01',
  'zone-repeated': 'CF02',
  'zone-overlap': 'CF02',
  'forward-tls-name': 'CF22',
  'corefile-syntax': 'CF34',
  'corefile-brace': 'CF34',
  'corefile-end': 'CF34',
  'corefile-comma': 'CF34',
  'corefile-depth': 'CF34',
  'import-not-found': 'CF34',
  'import-unreadable': 'CF34',
  'import-pattern': 'CF34',
  'import-circle': 'CF34',
  'import-too-large': 'CF34',
  'import-nothing': 'CF34',
  'snippet-repeated': 'CF34',
  'kubernetes-zonal': 'CF38',
};

/** What another rule says better, or what only the machine that serves can know. */
const silent: ReadonlySet<string> = new Set(['environment-unset', 'environment-endless']);

function told({ message, place, hint, remedy }: Problem, corefile: LintedCorefile): Told {
  const at = place ?? { file: corefile.tree.file, line: 1, column: 1 };
  const unset = corefile.warnings.find(
    (each) =>
      each.code === 'environment-unset' &&
      each.place?.file === at.file &&
      each.place.line === at.line &&
      each.place.column === at.column,
  );
  // A word that is nothing for want of a value is refused for another reason than it seems.
  const why = unset === undefined ? hint : `Here, ${plain(unset.message)}.`;
  return { at, text: plain(message), hint: why, remedy };
}

/** The place has a line of its own in every report. */
function plain(message: string): string {
  return message.replace(
    /^(plugin\/[\w]+: )?.*? - (?:Error during parsing|Syntax error): /s,
    (_all, plugin: string | undefined) => plugin ?? '',
  );
}

/** A rule made of problems that reading finds. */
function readingRule(
  head: Pick<LintRule, 'code' | 'severity' | 'summary'>,
  take: (problem: Problem, isWarning: boolean, subject: Subject) => Partial<Told> | null,
): LintRule {
  return {
    ...head,
    find(subject, tell) {
      for (const corefile of subject.corefiles) {
        const each = (problem: Problem, isWarning: boolean): void => {
          if (
            silent.has(problem.code) ||
            (corefile.fragment && problem.code === 'import-not-found')
          )
            return;
          const own = rulesByProblem[problem.code] ?? (isWarning ? 'CF44' : 'CF43');
          if (own !== head.code) return;
          const more = take(problem, isWarning, subject);
          if (more !== null) tell({ ...told(problem, corefile), ...more });
        };
        for (const problem of corefile.problems) each(problem, false);
        for (const problem of corefile.warnings) each(problem, true);
      }
    },
  };
}

const all = (): Partial<Told> => ({});

/** Imports of these names are there for what may come: k3s, AKS and others have them in their Corefiles. */
const hooks = /\*\.(override|server)$/;

/** Rules that are made of what reading finds, but for CF01, which also looks at releases. */
export const readingRules: readonly LintRule[] = [
  readingRule(
    { code: 'CF02', severity: 'error', summary: 'two server blocks claim the same zone and port' },
    all,
  ),
  readingRule(
    {
      code: 'CF22',
      severity: 'error',
      summary: 'forward to tls:// without a name that the certificate must have',
    },
    () => ({ severity: 'error' }),
  ),
  readingRule(
    {
      code: 'CF34',
      severity: 'error',
      summary: 'braces that do not match, imports in a circle or of nothing',
    },
    (problem, isWarning) => {
      if (problem.code === 'import-nothing' && hooks.test(problem.message)) return null;
      // A Corefile in a ConfigMap imports files that only the pod has.
      if (problem.message.includes('is not at hand')) return null;
      return isWarning ? { severity: 'warning' } : {};
    },
  ),
  readingRule({ code: 'CF38', severity: 'error', summary: 'zonal together with noendpoints' }, all),
  readingRule({ code: 'CF43', severity: 'error', summary: 'a line that the server refuses' }, all),
  readingRule(
    {
      code: 'CF44',
      severity: 'warning',
      summary: 'a line that is accepted, but hardly means what it seems to',
    },
    ({ code }) => (code === 'corefile-empty' ? { severity: 'error' } : {}),
  ),
];

/** The findings of CF01 that reading makes. */
export function readingFindings(
  corefile: LintedCorefile,
): readonly { readonly told: Told; readonly problem: Problem; readonly isWarning: boolean }[] {
  const of = (problems: readonly Problem[], isWarning: boolean) =>
    problems
      .filter(({ code }) => rulesByProblem[code] === 'CF01')
      .map((problem) => ({ problem, told: told(problem, corefile), isWarning }));
  return [...of(corefile.problems, false), ...of(corefile.warnings, true)];
}
