/**
 * Accepts and rejects checker reports like Kuberhealthy, with version 2 at `/externalCheckStatus` and version 3 at
 * `/check`. Kuberhealthy's clients retry without the body, so reports that cannot be stored yet are held.
 */
import { timingSafeEqual } from 'node:crypto';
import { printSpan } from '../../server/base/elapsed.ts';
import { sleep, type Clock } from '../../server/base/clock.ts';
import { isObject } from '../../server/base/json-object.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import type { CheckCluster } from './check-cluster.ts';
import { reported, type RecordEvent } from './check-events.ts';
import { fullName, type CheckObject, type KuberhealthyVersion } from './check-object.ts';
import type { RunResult } from './check-state.ts';
import type { CheckWatch } from './check-watch.ts';
import { ReportGate } from './report-gate.ts';

export interface ReportRequest {
  readonly version: KuberhealthyVersion;
  readonly method: string;
  readonly contentType: string;
  /** The `kh-run-uuid` header; `''`: absent. */
  readonly run: string;
  /** The sender's address, taken from the socket because headers can be forged. */
  readonly from: string;
  /** The secret in the request URL, or `''` if there is none. */
  readonly token: string;
  /** Null: too large. */
  readonly body: string | null;
}

export interface ReportAnswer {
  readonly status: 200 | 400 | 403 | 405 | 410 | 413 | 415 | 503;
  /** Why the report was rejected, or empty if accepted. */
  readonly text: string;
  /** The check's `namespace/name`, once known. */
  readonly check: string;
}

export interface ReportIntakeParts {
  readonly watch: CheckWatch;
  readonly cluster: CheckCluster;
  readonly clock: Clock;
  readonly record: RecordEvent;
}

/** Time to hold reports for runs that another replica may have just started, and the maximum number of such reports. */
const UNKNOWN_MS = 2000;
const UNKNOWN_MAX = 64;
/** Limit on held reports per sender, so that none can block the others. */
const UNKNOWN_EACH_MAX = 4;
const LOOK_EVERY_MS = 100;
/** Time to hold a report while the API server is unavailable, and the number of attempts. */
const PATIENCE_MS = 60_000;
const AGAIN_MS = 1000;

/** Stores reports in their checks' states. Runs on every replica. */
export class ReportIntake {
  readonly #parts: ReportIntakeParts;
  readonly #gate: ReportGate;
  /** The number of held reports for unknown runs, by sender. */
  readonly #waiting = new Map<string, number>();
  #waitingOfAll = 0;

  constructor(parts: ReportIntakeParts) {
    this.#parts = parts;
    this.#gate = new ReportGate(parts.clock);
  }

  /** Stores a report. Rejects with an `ApiFailure` if the state cannot be written within a minute. */
  async take(request: ReportRequest, signal: AbortSignal): Promise<ReportAnswer> {
    const { version } = request;
    const { watch } = this.#parts;
    if (version === 3) {
      if (request.method !== 'POST') return refused(405, 'reports are posted');
      if (!request.contentType.startsWith('application/json'))
        return refused(415, 'a report is application/json');
      if (request.run === '') return refused(400, 'the kh-run-uuid header is missing');
    }
    let [run, check] = this.#find(request);
    if (check === null || !this.#isOwn(request, run, check)) {
      if (!(await this.#untilKnown(request, signal)))
        return refused(503, 'too many reports for unknown runs');
      [run, check] = this.#find(request);
    }
    if (!watch.isSynced) return refused(503, 'the checks are not known here yet');
    if (check === null)
      return refused(
        400,
        run === ''
          ? 'the kh-run-uuid header is missing, and no checker pod has this address'
          : `run uuid ${shown(run)} is invalid or expired`,
      );
    const late = this.#lateness(check);
    if (late !== null) return { ...late, check: fullName(check) };
    if (!this.#isOwn(request, run, check))
      return { ...refused(403, strangerText(request)), check: fullName(check) };
    return { ...(await this.#write(request, run, check, signal)), check: fullName(check) };
  }

  /** True if the report's address or secret shows that it comes from the run's own pod. */
  #isOwn({ version, from, token }: ReportRequest, run: string, check: CheckObject): boolean {
    for (const pod of this.#parts.watch.pods.allOfRun(version, run)) {
      if (pod.namespace !== check.namespace || pod.owner !== check.uid) continue;
      if (pod.addresses.includes(from) || isSecret(token, pod.token)) return true;
    }
    return false;
  }

  /** Finds the run. Version 2 reports without the header are matched by pod address. */
  #find({ version, run: given, from }: ReportRequest): readonly [string, CheckObject | null] {
    const { watch } = this.#parts;
    const run = given === '' && version === 2 ? watch.pods.runAt(from) : given;
    return [run, run === '' ? null : watch.byRun(version, run)];
  }

  async #write(
    { version, body }: ReportRequest,
    run: string,
    check: CheckObject,
    signal: AbortSignal,
  ): Promise<ReportAnswer> {
    if (body === null) return refused(413, 'the report is too large');
    const report = readReport(body, version);
    if (typeof report === 'string') return refused(400, report);
    if (saysTheSame(check, report)) return TAKEN;
    const answer = await this.#gate.pass(run, () => this.#writeDown(run, check, report, signal));
    return answer ?? refused(503, 'too many reports of this run');
  }

  async #writeDown(
    run: string,
    check: CheckObject,
    report: RunResult,
    signal: AbortSignal,
  ): Promise<ReportAnswer> {
    const { cluster, clock, record } = this.#parts;
    const end = clock.now() + PATIENCE_MS;
    for (;;) {
      let waitMs = AGAIN_MS;
      try {
        // The report counts as on time, even if storing it takes longer.
        const written = await cluster.endRun(check, run, report, signal, true);
        // Otherwise, another report for the same run, or its end, was written first.
        if (written !== null) {
          record(check, reported(report));
          return TAKEN;
        }
        return refused(400, `run uuid ${shown(run)} is invalid or expired`);
      } catch (error) {
        if (!(error instanceof ApiFailure) || signal.aborted) throw error;
        // The server's retry time, but well before the report is dropped.
        waitMs = Math.min(PATIENCE_MS / 4, Math.max(waitMs, error.retryAfterMs ?? 0));
        if (clock.now() >= end) {
          const message = `failed to store check state: ${error.message}`;
          record(check, { type: 'Warning', reason: 'CheckReportFailed', message });
          throw error;
        }
      }
      await sleep(clock, waitMs, signal);
    }
  }

  /**
   * Waits until the run is known.
   * @returns false if too many reports are already waiting, in total or from this sender
   */
  async #untilKnown(request: ReportRequest, signal: AbortSignal): Promise<boolean> {
    const { watch, clock } = this.#parts;
    const { from } = request;
    const others = this.#waiting.get(from) ?? 0;
    if (this.#waitingOfAll >= UNKNOWN_MAX || others >= UNKNOWN_EACH_MAX) return false;
    // Right after startup no runs are known yet.
    const end = clock.now() + (watch.isSynced ? UNKNOWN_MS : PATIENCE_MS);
    this.#waitingOfAll++;
    this.#waiting.set(from, others + 1);
    try {
      // A pod's address becomes known shortly after it starts.
      const isKnown = (): boolean => {
        const [run, check] = this.#find(request);
        return check !== null && this.#isOwn(request, run, check);
      };
      while (!isKnown() && clock.now() < end && !signal.aborted)
        await sleep(clock, LOOK_EVERY_MS, signal);
    } finally {
      this.#waitingOfAll--;
      const left = (this.#waiting.get(from) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(from);
      else this.#waiting.set(from, left);
    }
    return true;
  }

  #lateness(check: CheckObject): ReportAnswer | null {
    if (this.#parts.watch.sinceBegun(check) < check.timeoutMs) return null;
    return check.version === 3
      ? refused(410, `the run ended ${printSpan(check.timeoutMs)} after it began`)
      : refused(400, 'the run has timed out');
  }
}

const TAKEN: ReportAnswer = { status: 200, text: '', check: '' };

function refused(status: Exclude<ReportAnswer['status'], 200>, text: string): ReportAnswer {
  return { status, text, check: '' };
}

/** Client text, shortened for the log. */
function shown(run: string): string {
  return JSON.stringify(run.slice(0, 64));
}

function strangerText({ from, token }: ReportRequest): string {
  const what = token === '' ? 'without the token in KH_REPORTING_URL' : 'with another token';
  return `a report is accepted from the address of its run's own pod, or with the token of KH_REPORTING_URL; this one came from ${from} ${what}`;
}

/** Compares in constant time; an empty secret never matches. */
function isSecret(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return b.length > 0 && a.length === b.length && timingSafeEqual(a, b);
}

/** True if the run has already reported the same result, so there is nothing to write. */
function saysTheSame({ state }: CheckObject, { ok, errors }: RunResult): boolean {
  return (
    !state.isRunning &&
    state.ok === ok &&
    state.errors.length === errors.length &&
    state.errors.every((error, index) => error === errors[index])
  );
}

/** Parses a report, or returns why it is invalid. */
function readReport(body: string, version: KuberhealthyVersion): RunResult | string {
  let read: unknown;
  try {
    read = JSON.parse(body);
  } catch {
    return 'the report is not JSON';
  }
  if (!isObject(read)) return 'the report is not a JSON object';
  // Keys are case-insensitive and null means absent, as in Go's decoder.
  const fields = new Map(Object.entries(read).map(([key, value]) => [key.toLowerCase(), value]));
  const ok = fields.get('ok') ?? false;
  const errors = fields.get('errors') ?? [];
  if (typeof ok !== 'boolean') return 'OK is true or false';
  if (!Array.isArray(errors) || !errors.every((each) => typeof each === 'string'))
    return 'Errors is a list of texts';
  if (ok && version === 3 && errors.length > 0) return 'OK is true, but there are errors';
  if (!ok && errors.length === 0) return 'OK is false, but there are no errors';
  if (!ok && errors.includes('')) return 'one of the errors is blank';
  return { ok, errors };
}
