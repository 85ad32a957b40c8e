/** Formats check results as text, JSON and JUnit, and for Prometheus and Nagios. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import { printExposition } from '../../../server/metrics/exposition.ts';
import { groupSamples } from '../../../server/metrics/sample.ts';
import { worst, type CheckState, type Observation } from '../../../tools/probe/check.ts';
import type { CheckResult } from '../../../tools/probe/round.ts';
import { roundSamples } from '../../../tools/probe/samples.ts';
import type { CheckOutput } from './check-options.ts';
import { count } from '../../../server/base/counted.ts';
import { beside, ONE_LINE_COLUMNS, pageFor, wrap, type Page } from '../page.ts';
import { xmlText } from './xml-text.ts';

export function printChecks(
  format: CheckOutput,
  results: readonly CheckResult[],
  style: { readonly colour: boolean; readonly columns: number },
): string {
  const formats: Readonly<Record<CheckOutput, () => string>> = {
    text: () => asText(results, pageFor({ ...style, wide: false })),
    json: () => `${JSON.stringify(checkDocument(results), null, 2)}\n`,
    junit: () => asJUnit(results),
    prom: () => printExposition(groupSamples(roundSamples(results)).values(), 'text'),
    nagios: () => asNagios(results),
  };
  return formats[format]();
}

const glyphs: Readonly<Record<CheckState, string>> = {
  ok: '✓',
  warning: '!',
  failed: '✕',
  unknown: '?',
};

/** The column where the result starts, after the name and time. */
const TARGET_COLUMN = 14;

function asText(results: readonly CheckResult[], page: Page): string {
  const { paint } = page;
  const colours: Readonly<Record<CheckState, (text: string) => string>> = {
    ok: paint.good,
    warning: paint.warn,
    failed: paint.bad,
    unknown: paint.warn,
  };
  const lines: string[] = [];
  for (const { check, state, observations } of results) {
    const width = Math.max(22, ...observations.map(({ target }) => target.length));
    lines.push(
      ...wrap(
        `${paint.strong(check.kind.name)} ${check.title}`,
        `${colours[state](`${glyphs[state]} ${state.padEnd(7)}`)} `,
        page,
      ),
    );
    for (const each of observations) {
      const left = `            ${colours[each.state](glyphs[each.state])} ${each.target.padEnd(width)} ${milliseconds(each).padStart(9)}  `;
      if (page.columns >= ONE_LINE_COLUMNS) lines.push(left + each.text);
      else lines.push(...beside(left, each.text, TARGET_COLUMN + width + 12, page));
    }
  }
  lines.push(...wrap(summary(results), '', page));
  return `${lines.join('\n')}\n`;
}

function milliseconds({ tookMs }: Observation): string {
  return tookMs === null ? '–' : printElapsed(tookMs);
}

function summary(results: readonly CheckResult[]): string {
  const all = results.flatMap(({ observations }) => observations);
  const of = (state: CheckState): number => all.filter((each) => each.state === state).length;
  const parts = [
    `${count(results.length, 'check', 'checks')}, ${count(all.length, 'target', 'targets')}`,
    `${of('ok')} ok`,
    ...(['warning', 'unknown', 'failed'] as const)
      .filter((state) => of(state) > 0)
      .map((state) => `${of(state)} ${state}`),
  ];
  const lost = all.reduce((sum, each) => sum + each.lost, 0);
  const sent = all.reduce((sum, each) => sum + each.sent, 0);
  return `${parts.join(', ')}; ${lost} of ${sent} queries lost`;
}

function checkDocument(results: readonly CheckResult[]): unknown {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'CheckReport',
    state: worst(results.map(({ state }) => state)),
    checks: results.map(({ check, state, observations, ranMs }) => ({
      check: check.kind.name,
      title: check.title,
      state,
      ranMs,
      observations,
    })),
  };
}

function asJUnit(results: readonly CheckResult[]): string {
  const suites = results.map(({ check, observations, ranMs }) => {
    const bad = (state: CheckState): number =>
      observations.filter((each) => each.state === state).length;
    const cases = observations.map(({ target, state, text, tookMs }) => {
      const inner = {
        ok: '',
        warning: `<system-out>${xmlText(text)}</system-out>`,
        failed: `<failure message="${xmlText(text)}">${xmlText(text)}</failure>`,
        unknown: `<error message="${xmlText(text)}">${xmlText(text)}</error>`,
      }[state];
      const time = ((tookMs ?? 0) / 1000).toFixed(6);
      return `    <testcase classname="${xmlText(check.kind.name)}" name="${xmlText(target)}" time="${time}">${inner}</testcase>`;
    });
    return [
      `  <testsuite name="${xmlText(check.id)}" tests="${observations.length}" failures="${bad('failed')}" errors="${bad('unknown')}" time="${(ranMs / 1000).toFixed(6)}">`,
      ...cases,
      '  </testsuite>',
    ].join('\n');
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ndots check">\n${suites.join('\n')}\n</testsuites>\n`;
}

/** Nagios states and exit codes, worst first in Nagios's order. */
const nagios = {
  failed: ['CRITICAL', 2],
  unknown: ['UNKNOWN', 3],
  warning: ['WARNING', 1],
  ok: ['OK', 0],
} as const satisfies Readonly<Record<CheckState, readonly [string, number]>>;

export function nagiosCode(results: readonly CheckResult[]): number {
  return nagios[worst(results.map(({ state }) => state))][1];
}

/** A summary line with performance data after the bar, then a line for each check that is not OK. */
function asNagios(results: readonly CheckResult[]): string {
  const state = worst(results.map((result) => result.state));
  const bad = results.flatMap(({ check, observations }) =>
    observations.filter((each) => each.state !== 'ok').map((each) => ({ check, ...each })),
  );
  const [first] = bad.toSorted((a, b) => severity(b.state) - severity(a.state));
  const headline =
    first === undefined
      ? summary(results)
      : `${first.check.kind.name} ${first.target}: ${first.text}`;
  // A bar would start the performance data.
  const plain = (text: string): string => text.replaceAll('|', '/').replaceAll('\n', ' ');
  const numbers = results.map(({ check, observations }) => {
    const times = observations.flatMap(({ tookMs }) => (tookMs === null ? [] : [tookMs]));
    const slowest = times.length === 0 ? 'U' : `${(Math.max(...times) / 1000).toFixed(6)}s`;
    const limit = check.slowMs === null ? '' : `;${check.slowMs / 1000}`;
    return `'${check.id.replaceAll("'", '').replaceAll('=', '')}'=${slowest}${limit}`;
  });
  return [
    `DNS ${nagios[state][0]} - ${plain(headline)} | ${numbers.join(' ')}`,
    ...bad.map(({ check, target, state: each, text }) =>
      plain(`${nagios[each][0]}: ${check.id} ${target}: ${text}`),
    ),
    '',
  ].join('\n');
}

function severity(state: CheckState): number {
  return ['ok', 'warning', 'unknown', 'failed'].indexOf(state);
}
