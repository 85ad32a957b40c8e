/** Runs checks once. */
import type { Clock } from '../../server/base/clock.ts';
import type { PlannedCheck } from './check-file.ts';
import { worst, type CheckState, type Observation, type ProbeContext } from './check.ts';

export interface CheckResult {
  readonly check: PlannedCheck;
  readonly state: CheckState;
  readonly observations: readonly Observation[];
  /** Duration in milliseconds. */
  readonly ranMs: number;
}

/** Runs one check. Never rejects because of a network failure. */
export async function runCheck(
  check: PlannedCheck,
  context: ProbeContext,
  clock: Clock,
): Promise<CheckResult> {
  const begun = clock.now();
  const lacks = missing(check, context);
  const observations =
    lacks === null
      ? (await check.run(context)).map((each) => judged(each, check.slowMs))
      : [
          {
            target: 'servers',
            state: 'unknown',
            text: lacks,
            tookMs: null,
            sent: 0,
            lost: 0,
          } as const,
        ];
  return {
    check,
    state: worst(observations.map(({ state }) => state)),
    observations,
    ranMs: clock.now() - begun,
  };
}

/**
 * Runs checks one at a time, so that they do not distort each other's timings.
 * @returns those that finished before `signal` aborted, without the one in progress
 */
export async function runChecks(
  checks: readonly PlannedCheck[],
  context: ProbeContext,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  const { promise: aborted, resolve } = Promise.withResolvers<null>();
  const stop = (): void => resolve(null);
  signal.addEventListener('abort', stop, { once: true });
  for (const check of checks) {
    if (signal.aborted) break;
    const result = await Promise.race([runCheck(check, context, clock), aborted]);
    if (result === null) break;
    results.push(result);
  }
  signal.removeEventListener('abort', stop);
  return results;
}

function missing({ kind }: PlannedCheck, { vip, replicas }: ProbeContext): string | null {
  if (kind.needs === 'vip' && vip.length === 0)
    return 'the address of the DNS service is unknown; set vip: IP in the file, or use --vip IP';
  if (kind.needs === 'replicas' && replicas.length === 0)
    return 'no replicas are known; set service: kube-system/kube-dns or replicas: [IP, …] in the file, or use --service or --replica';
  if (vip.length + replicas.length === 0)
    return 'no server is known; set vip: or service: in the file, or use --vip or --service';
  return null;
}

function judged(observation: Observation, slowMs: number | null): Observation {
  const { state, tookMs, text } = observation;
  if (state !== 'ok' || slowMs === null || tookMs === null || tookMs <= slowMs) return observation;
  return {
    ...observation,
    state: 'warning',
    text: `${text}; ${tookMs.toFixed(1)} ms is slower than ${slowMs} ms`,
  };
}
