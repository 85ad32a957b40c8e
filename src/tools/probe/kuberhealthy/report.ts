/** Reports checks to Kuberhealthy 2 or 3 with a single POST, and interprets refusals. */
import { clipped } from '../../../server/base/shortened.ts';
import type { Problem } from '../../../server/base/problem.ts';
import { sendHttp } from '../../../server/base/http-request.ts';
import { printSpan } from '../../../server/base/elapsed.ts';
import { sleep, type Clock } from '../../../server/base/clock.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import type { CheckResult } from '../round.ts';
import type { ReportingAddress } from './reporting-address.ts';
import type { KuberhealthyRun } from './run.ts';

export interface KuberhealthyReport {
  readonly OK: boolean;
  /** Empty if OK, otherwise a list without blank strings. Both versions reject anything else. */
  readonly Errors: readonly string[];
}

export type Reported =
  | { readonly kind: 'taken'; readonly by: ReportingAddress }
  /**
   * The run is over, because it timed out (410) or another run has started (400 with that message). The check itself is
   * fine.
   */
  | { readonly kind: 'late' }
  /** Kuberhealthy rejected the report, and would do so again. */
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string };

/** Errors become metric labels, so there should be few, and they should be short. */
const ERRORS_MAX = 10;
const ERROR_LENGTH = 200;

/** Builds the report for these results. `unknown` does not count as OK, and the report says so. */
export function reportOf(results: readonly CheckResult[]): KuberhealthyReport {
  const errors = results.flatMap(({ check, observations }) =>
    observations
      .filter(({ state }) => state === 'failed' || state === 'unknown')
      .map(({ state, target, text }) => {
        const prefix = state === 'unknown' ? 'DNS unknown' : 'DNS failed';
        return shortened(`${prefix}: ${check.kind.name} ${target}: ${text}`);
      }),
  );
  const shown = errors.slice(0, ERRORS_MAX);
  if (errors.length > ERRORS_MAX) shown.push(`and ${errors.length - ERRORS_MAX} more`);
  return { OK: shown.length === 0, Errors: shown };
}

/** Builds the report for a failure that prevented the checks from running. */
export function reportOfFailure(text: string): KuberhealthyReport {
  return { OK: false, Errors: [shortened(`DNS unknown: ${text}`)] };
}

/** Builds the same report for errors in the check file, with the error, its line, and a suggestion. */
export function reportOfProblems(problems: readonly Problem[]): KuberhealthyReport {
  const texts = problems.map(({ message, place, hint }) => {
    const more = [place === null ? '' : `line ${place.line}`, hint ?? ''].filter(
      (part) => part !== '',
    );
    return more.length === 0 ? message : `${message} (${more.join(': ')})`;
  });
  return reportOfFailure(texts.join('; '));
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return clipped(line, ERROR_LENGTH);
}

/** Time limit for a response, in milliseconds. */
const REPLY_MS = 5000;
/** The maximum size of a response, in bytes. */
const REPLY_MAX = 64 * 1024;
/** The maximum number of bytes to report from a refusal. */
const TOLD_MAX = 1000;
/** The retry limit in milliseconds, as in Kuberhealthy's own clients. */
const TRY_MS = 30_000;

/** Sends a report to the first address that accepts it. After temporary failures, retries with increasing delays. */
export async function sendReport(
  run: KuberhealthyRun,
  addresses: readonly ReportingAddress[],
  report: KuberhealthyReport,
  clock: Clock,
): Promise<Reported> {
  const end = clock.now() + TRY_MS;
  let text = 'there is no address to report to';
  for (let waitMs = 500; addresses.length > 0; waitMs = Math.min(8000, waitMs * 2)) {
    for (const address of addresses) {
      let status: number;
      let told: string;
      try {
        ({ status, told } = await post(run, address, report, clock));
      } catch (error) {
        text = `${printHostPort(address.host, address.port)} (${address.from}): ${(error as Error).message}`;
        continue;
      }
      if (status === 200) return { kind: 'taken', by: address };
      if (status === 410 || (status === 400 && told.includes('invalid or expired')))
        return { kind: 'late' };
      text = `${run.url.href} answers ${status}${meanings[status] ?? ''}`;
      if (status in meanings) return { kind: 'refused', text };
    }
    if (clock.now() + waitMs >= end) break;
    await hold(sleep(clock, waitMs));
  }
  return { kind: 'failed', text };
}

/** Refusals that a retry would not change. */
const meanings: Readonly<Record<number, string>> = {
  400: ': it does not know this run, or does not accept this report format',
  403: ': it accepts reports from the address of the run’s own pod, or with the token of KH_REPORTING_URL, which must be used unchanged',
  404: ': this version of Kuberhealthy does not serve the path in KH_REPORTING_URL (/check, or /externalCheckStatus in version 2)',
  405: ': it does not accept POST there',
  415: ': it does not accept JSON there',
};

async function post(
  { url, id }: KuberhealthyRun,
  { host, port }: ReportingAddress,
  report: KuberhealthyReport,
  clock: Clock,
): Promise<{ readonly status: number; readonly told: string }> {
  const text = JSON.stringify(report);
  const { status, body } = await sendHttp({
    // Kuberhealthy accepts reports over HTTP only.
    url: new URL(`http://${printHostPort(host, port)}${url.pathname}${url.search}`),
    options: {
      method: 'POST',
      headers: {
        host: url.host,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...(id !== '' && { 'kh-run-uuid': id }),
      },
    },
    body: text,
    clock,
    waitMs: REPLY_MS,
    late: `no reply in ${printSpan(REPLY_MS)}`,
    bytesMax: REPLY_MAX,
    tooLong: 'the reply is too long',
  });
  return { status, told: body.toString('utf8', 0, TOLD_MAX) };
}

/** Keeps the process alive until the wait is over, which the clock's timers do not. */
async function hold(wait: Promise<void>): Promise<void> {
  const timer = setInterval(() => undefined, 60_000);
  try {
    await wait;
  } finally {
    clearInterval(timer);
  }
}
