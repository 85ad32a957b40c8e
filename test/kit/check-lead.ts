/** A replica that replaces Kuberhealthy. It runs in virtual time with an in-memory API server. */
import { randomUUID } from 'node:crypto';
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { CheckCluster } from '../../src/addons/kuberhealthy/check-cluster.ts';
import { CheckEvents } from '../../src/addons/kuberhealthy/check-events.ts';
import { CheckRunner, type CheckRunnerParts } from '../../src/addons/kuberhealthy/check-runner.ts';
import { CheckWatch } from '../../src/addons/kuberhealthy/check-watch.ts';
import { ReportIntake, type ReportAnswer } from '../../src/addons/kuberhealthy/report-intake.ts';
import { CheckApi } from './check-api.ts';

let replicas = 0;

export class Lead {
  readonly api: CheckApi;
  readonly clock: VirtualClock;
  readonly lines: string[] = [];
  readonly watch: CheckWatch;
  readonly intake: ReportIntake;
  readonly runner: CheckRunner;
  readonly events: CheckEvents;
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;

  constructor(
    api: CheckApi = new CheckApi(),
    clock: VirtualClock = new VirtualClock(),
    terms: Partial<Pick<CheckRunnerParts, 'runOwn' | 'retention'>> = {},
  ) {
    this.api = api;
    this.clock = clock;
    const log = makeLog((line) => this.lines.push(line));
    const random = seededRandom(++replicas);
    const authoritativePod = `replica-${replicas}`;
    const parts = { client: api, clock, random, log, namespace: '' };
    this.watch = new CheckWatch(parts);
    this.events = new CheckEvents({ ...parts, host: authoritativePod });
    const { record } = this.events;
    const cluster = new CheckCluster({ ...parts, watch: this.watch, authoritativePod });
    const shared = { ...parts, watch: this.watch, cluster, record };
    this.intake = new ReportIntake(shared);
    this.runner = new CheckRunner({
      ...shared,
      retention: { completed: 1, failed: 2, failedMs: 36 * 3_600_000, jobsMs: 15 * 60_000 },
      newRun: randomUUID,
      reportingUrl: () => Promise.resolve('http://10.0.0.9'),
      whyUnreported: () => Promise.resolve(''),
      runOwn: () => Promise.resolve({ OK: true, Errors: [] }),
      ...terms,
    });
  }

  /** Makes it the leader, which takes a second and a half. */
  async begin(): Promise<void> {
    this.watch.start();
    this.#running = this.runner.run(this.#stop.signal);
    await this.clock.advance(1500);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.events.stop();
    await this.watch.stop();
  }

  /** Sends the report that the check's pod would send, to the URL that the pod was given. */
  report(version: 2 | 3, run: string, ...errors: string[]): Promise<ReportAnswer> {
    return this.reportFrom('10.1.0.7', version, run, ...errors);
  }

  /** The secret of a run's pod, or `''` if there is none. */
  tokenOf(run: string): string {
    if (run === '') return '';
    const pod = this.api.all('pods').find((each) => JSON.stringify(each).includes(run));
    return /\?token=([^"]+)/.exec(JSON.stringify(pod ?? {}))?.[1] ?? '';
  }

  reportFrom(
    from: string,
    version: 2 | 3,
    run: string,
    ...errors: string[]
  ): Promise<ReportAnswer> {
    return this.#send(from, this.tokenOf(run), version, run, errors);
  }

  /** Reports with this secret. */
  reportWith(token: string, from: string, version: 2 | 3, run: string): Promise<ReportAnswer> {
    return this.#send(from, token, version, run, []);
  }

  #send(
    from: string,
    token: string,
    version: 2 | 3,
    run: string,
    errors: readonly string[],
  ): Promise<ReportAnswer> {
    return this.intake.take(
      {
        version,
        method: 'POST',
        contentType: 'application/json',
        run,
        from,
        token,
        body: JSON.stringify({ OK: errors.length === 0, Errors: errors }),
      },
      this.#stop.signal,
    );
  }
}
