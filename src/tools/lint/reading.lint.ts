/** Findings from parsing Corefiles, using the linter's codes: CF01, CF02, CF22, CF34, CF38, CF43 and CF44. */
import type { Problem } from '../../server/base/problem.ts';
import type { LintRule, Told } from './lint-rule.ts';
import type { LintedCorefile, Subject } from './subject.ts';
import { isOfCore } from './target.ts';

/** Rules for problems that have a rule of their own. All other errors are CF43, and all other warnings CF44. */
const rulesByProblem: Readonly<Record<string, string>> = {
  'directive-unknown': 'CF01',
  'property-unknown': 'CF01',
  'directive-renamed': 'CF01',
  'property-retired': 'CF01',
  'zone-repeated': 'CF02',
  'zone-overlap': 'CF02',
  'forward-tls-name': 'CF22',
  'forward-tls-authority': 'CF22',
  'corefile-syntax': 'CF34',
  'corefile-brace': 'CF34',
  'brace-behind-words': 'CF34',
  'block-without-braces': 'CF34',
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

/** Problems that another rule reports better, or that can only be judged on the machine that serves. */
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
  // The cause is an unset variable, not the empty word that the parser complains about.
  const why = unset === undefined ? hint : `Here, ${plain(unset.message)}.`;
  return { at, text: plain(message), hint: why, remedy };
}

/** The message without the place, which every report prints on a separate line. */
function plain(message: string): string {
  return message.replace(
    /^(plugin\/[\w]+: )?.*? - (?:Error during parsing|Syntax error): /s,
    (_all, plugin: string | undefined) => plugin ?? '',
  );
}

/** A rule whose findings are parser problems. */
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

/** Directives that CoreDNS serves and ndots does not. */
const notServed: ReadonlySet<string> = new Set(['directive-not-served', 'scheme-not-served']);

/**
 * Imports with these names are meant for future additions (in Corefiles from k3s, AKS and others) and may match
 * nothing.
 */
const hooks = /\*\.(override|server)$/;

/** The rules from parsing, except for CF01, which also depends on releases. */
export const readingRules: readonly LintRule[] = [
  readingRule(
    { code: 'CF02', severity: 'error', summary: 'two server blocks claim the same zone and port' },
    all,
  ),
  readingRule(
    {
      code: 'CF22',
      severity: 'warning',
      summary: 'forward to tls:// without the name that the certificate must contain',
    },
    // Where upstreams need it, the owner of a CA includes the address in the certificate.
    ({ code }) => (code === 'forward-tls-authority' ? { severity: 'note' } : {}),
  ),
  readingRule(
    {
      code: 'CF34',
      severity: 'error',
      summary: 'unbalanced braces, circular or empty imports',
    },
    (problem, isWarning, { target }) => {
      // CoreDNS refuses it behind most properties.
      if (problem.code === 'brace-behind-words' && isOfCore(target)) return {};
      if (problem.code === 'import-nothing' && hooks.test(problem.message)) return null;
      // A Corefile in a ConfigMap may import files that only exist in the pod.
      if (problem.message.includes('is not in the input')) return null;
      return isWarning ? { severity: 'warning' } : {};
    },
  ),
  readingRule({ code: 'CF38', severity: 'error', summary: 'zonal together with noendpoints' }, all),
  readingRule(
    { code: 'CF43', severity: 'error', summary: 'a line that the server rejects' },
    ({ code }, _isWarning, { target }) => (notServed.has(code) && isOfCore(target) ? null : {}),
  ),
  readingRule(
    {
      code: 'CF44',
      severity: 'warning',
      summary: 'a line that is valid but probably wrong',
    },
    ({ code }) => (code === 'corefile-empty' ? { severity: 'error' } : {}),
  ),
];

/** The findings of CF01 that come from parsing. */
export function readingFindings(
  corefile: LintedCorefile,
): readonly { readonly told: Told; readonly problem: Problem; readonly isWarning: boolean }[] {
  const of = (problems: readonly Problem[], isWarning: boolean) =>
    problems
      .filter(({ code }) => rulesByProblem[code] === 'CF01')
      .map((problem) => ({ problem, told: told(problem, corefile), isWarning }));
  return [...of(corefile.problems, false), ...of(corefile.warnings, true)];
}
