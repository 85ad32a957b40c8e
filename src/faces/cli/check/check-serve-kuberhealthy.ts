/**
 * `ndots check serve --kuberhealthy`: takes over from Kuberhealthy by running the cluster's check objects, along with
 * the checks in a file.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock } from '../../../server/base/clock.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { makeLog } from '../../../server/base/log.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { MemoryPolicy } from '../../../server/runtime/memory-policy.ts';
import { Lease } from '../../../addons/kuberhealthy/lease.ts';
import { CheckCluster } from '../../../addons/kuberhealthy/check-cluster.ts';
import { CheckEvents } from '../../../addons/kuberhealthy/check-events.ts';
import {
  fullName,
  OWN_CHECKS,
  type CheckObject,
} from '../../../addons/kuberhealthy/check-object.ts';
import { CheckRunner } from '../../../addons/kuberhealthy/check-runner.ts';
import { CheckWatch } from '../../../addons/kuberhealthy/check-watch.ts';
import { EventList } from '../../../addons/kuberhealthy/event-list.ts';
import { ReportIntake } from '../../../addons/kuberhealthy/report-intake.ts';
import { readReportingUrl, ReportingUrl } from '../../../addons/kuberhealthy/reporting-url.ts';
import { KuberhealthyServer } from '../../../addons/kuberhealthy/server.ts';
import type { StatusFacts } from '../../../addons/kuberhealthy/status-documents.ts';
import { readCheckFile } from '../../../tools/probe/check-file.ts';
import {
  reportOf,
  reportOfProblems,
  type KuberhealthyReport,
} from '../../../tools/probe/kuberhealthy/report.ts';
import { runChecks } from '../../../tools/probe/round.ts';
import { unheard } from './check-environment.ts';
import type { CheckOptions } from './check-options.ts';
import { clusterIpBy, contextOf } from './check-plan.ts';
import { watchFile, type FileWatch } from './check-serve.ts';
import { accessOf, clusterClient } from '../cluster-options.ts';
import { EXIT, type Io } from '../command.ts';
import { listening } from '../serve/listening.ts';
import { untilSignal } from '../until-signal.ts';

/** The same lease that Kuberhealthy uses, so that only one of the two programs is active. */
const LEASE = 'kuberhealthy-controller';

/**
 * Runs until a signal arrives.
 * @throws Problem
 */
export async function serveKuberhealthy(options: CheckOptions, io: Io): Promise<number> {
  const ended = untilSignal('log');
  const { targetNamespace: namespace } = options;
  const access = accessOf(options, io);
  const log = makeLog((line) => io.out(`${line}\n`));
  const clock = systemClock;
  const random = secureRandom;
  const names = unheard(io.env);
  if (names.length > 0)
    log.warning(
      `these settings have no effect: ${names.join(', ')}; see the table in docs/check.md`,
    );
  const client = clusterClient(access, { perSecond: 50, burst: 100, inFlight: 32 });
  const ownNamespace = io.env['POD_NAMESPACE'] || access.namespace;
  const identity = io.env['POD_NAME'] || hostname();
  const watch = new CheckWatch({ client, clock, random, log, namespace });
  const cluster = new CheckCluster({ client, watch, clock, authoritativePod: identity });
  const events = new CheckEvents({ client, clock, random, log, host: identity });
  const { record } = events;
  const reporting = new ReportingUrl({
    url:
      options.reportingUrl ??
      readReportingUrl(`http://kuberhealthy.${ownNamespace}.svc.cluster.local`),
    by: options.reportBy,
    clusterIp: (where, name, signal) => clusterIpBy(client, where, name, signal),
    clock,
    log,
  });
  const runner = new CheckRunner({
    watch,
    cluster,
    clock,
    log,
    record,
    retention: options.kept,
    newRun: randomUUID,
    reportingUrl: (signal) => reporting.current(signal),
    whyUnreported: () => reporting.whyUnreported(),
    runOwn: (content, check, signal) => runOwn(content, check, options, io, signal),
  });
  const lease = new Lease({
    client,
    clock,
    random,
    log,
    identity,
    namespace: ownNamespace,
    name: LEASE,
  });
  const file: FileWatch | null = options.file === null ? null : await watchFile(options, io, log);
  const facts = (): StatusFacts => ({
    checks: [...watch.checks()],
    leader: lease.holder,
    leads: lease.holder === identity,
    ...runner.numbers,
    sweepSeconds: runner.sweeper.tookSeconds,
    swept: runner.sweeper.deleted,
    pods: watch.pods.numbers,
    objects: watch.numbers,
    podOfRun: (run) => watch.pods.ofRun(3, run)?.name ?? null,
    eventsDropped: events.dropped,
    wall: clock.wall(),
  });
  const server = new KuberhealthyServer({
    intake: new ReportIntake({ watch, cluster, clock, record }),
    facts,
    isReady: () => watch.isSynced,
    ask: (where, name) => runner.ask(where, name),
    events: new EventList({ client, clock, watch }),
    clock,
    log,
    more: () => file?.watch.samples() ?? [],
    own: () => file?.document() ?? null,
  });
  const { host, port } = options.listen;
  const place = { host, port, option: '--listen' };
  const bound = await listening(place, () => server.listen(host, port));
  log.info(`instead of Kuberhealthy for ${access.name}, on ${printHostPort(host, bound)}`);
  new MemoryPolicy({ clock: systemClock, thrifty: true }).begin();
  watch.start();
  await Promise.all([lease.run(ended, (signal) => runner.run(signal)), file?.run(ended)]);
  await server.close();
  await events.stop();
  await watch.stop();
  client.close();
  return EXIT.ok;
}

/** Runs the checks listed in an annotation, in this process. */
async function runOwn(
  content: string,
  check: CheckObject,
  options: CheckOptions,
  io: Io,
  signal: AbortSignal,
): Promise<KuberhealthyReport> {
  try {
    const plan = readCheckFile(content, `${OWN_CHECKS} of ${fullName(check)}`);
    // Servers on the command line apply only to the checks in the file.
    const context = await contextOf(plan, { ...options, vip: [], replicas: [], service: null }, io);
    return reportOf(await runChecks(plan.checks, context, systemClock, signal));
  } catch (error) {
    const problems = problemsIn(error);
    if (problems === null) throw error;
    return reportOfProblems(problems);
  }
}
