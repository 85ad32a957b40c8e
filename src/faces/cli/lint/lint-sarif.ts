/** Findings in SARIF 2.1.0 format, as accepted by GitHub and other code scanning services. */
import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { isAbsolute } from 'node:path';
import type { LintFinding } from '../../../tools/lint/finding.ts';
import type { LintReport } from '../../../tools/lint/lint.ts';
import type { LintRule } from '../../../tools/lint/lint-rule.ts';
import { lintRules } from './lint-rules.ts';
import { coreVersion } from '../version/version.ts';

/** The log of a single run. */
export function sarif({ findings }: LintReport): unknown {
  const codes = [...new Set(findings.map(({ code }) => code))].toSorted();
  const used = codes.map((code) => lintRules.find((rule) => rule.code === code)).filter(isRule);
  return {
    $schema:
      'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'ndots',
            version: coreVersion,
            rules: used.map(ruleOf),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: findings.map((finding) =>
          resultOf(
            finding,
            used.findIndex(({ code }) => code === finding.code),
          ),
        ),
      },
    ],
  };
}

function isRule(rule: LintRule | undefined): rule is LintRule {
  return rule !== undefined;
}

function ruleOf({ code, severity, summary }: LintRule): unknown {
  return {
    id: code,
    shortDescription: { text: `${summary[0]!.toUpperCase()}${summary.slice(1)}.` },
    help: {
      text: `ndots lint --explain ${code}`,
      markdown: `\`ndots lint --explain ${code}\``,
    },
    defaultConfiguration: { level: severity },
  };
}

function resultOf(finding: LintFinding, ruleIndex: number): unknown {
  const { code, severity, text, spot, hint, remedy, excerpt } = finding;
  const message = [text, hint, remedy].filter((part) => part !== null).join(' ');
  const { file, line, column, endColumn } = spot;
  // Uses the line's text rather than its number, so that findings keep their identity when lines move.
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([code, file, text, excerpt?.trim()]))
    .digest('hex')
    .slice(0, 32);
  return {
    ruleId: code,
    ...(ruleIndex < 0 ? {} : { ruleIndex }),
    level: severity,
    message: { text: message },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file) },
          region: {
            startLine: line,
            startColumn: column,
            endColumn,
            ...(excerpt === null ? {} : { snippet: { text: excerpt } }),
          },
        },
      },
    ],
    partialFingerprints: { 'ndots/v1': fingerprint },
  };
}

function uriOf(file: string): string {
  if (isAbsolute(file)) return pathToFileURL(file).href;
  return file
    .replace(/^\.\//, '')
    .split('/')
    .map((part) => encodeURIComponent(part))
    .join('/');
}
