/** Exports check results as metrics. */
import type { MetricSample } from '../../server/metrics/sample.ts';
import { checkStates, type CheckState } from './check.ts';
import type { CheckResult } from './round.ts';

type SampleRow = readonly [
  kind: 'counter' | 'gauge',
  name: string,
  help: string,
  value: number | null,
];

/** The samples in a table, without those whose value is null. */
export function samplesOf(
  labels: MetricSample['labels'],
  rows: readonly SampleRow[],
): readonly MetricSample[] {
  return rows.flatMap(([kind, name, help, value]) =>
    value === null ? [] : [{ name: `ndots_check_${name}`, help, kind, labels, value }],
  );
}

/** Returns a round's results as gauges for node_exporter's textfile collector or a push gateway. */
export function roundSamples(results: readonly CheckResult[]): readonly MetricSample[] {
  return results.flatMap(({ check, observations }) =>
    observations.flatMap(({ target, state, tookMs, sent, lost }) => {
      const labels = { check: check.kind.name, title: check.title, target };
      // Left out if unknown, because alerts act on both values and either would be wrong.
      const up = state === 'unknown' ? null : Number(isUp(state));
      const seconds = tookMs === null ? null : tookMs / 1000;
      return [
        ...samplesOf(labels, [
          ['gauge', 'up', 'Whether a client would have received an answer.', up],
        ]),
        ...stateSamples(labels, state),
        ...samplesOf(labels, [
          ['gauge', 'duration_seconds', 'Duration of the answer.', seconds],
          ['gauge', 'queries_sent', 'Queries of the round.', sent],
          ['gauge', 'queries_lost', 'Queries in the round that got no reply.', lost],
        ]),
      ];
    }),
  );
}

/** Returns one series for each state, of which the current one is 1. */
export function stateSamples(
  labels: Readonly<Record<string, string>>,
  state: CheckState,
): readonly MetricSample[] {
  return checkStates.map((each) => ({
    name: 'ndots_check_state',
    help: 'State of the target: 1 for the current state, 0 for the others.',
    kind: 'gauge',
    labels: { ...labels, state: each },
    value: each === state ? 1 : 0,
  }));
}

/** True if clients get answers, even with a warning. */
export function isUp(state: CheckState): boolean {
  return state === 'ok' || state === 'warning';
}
