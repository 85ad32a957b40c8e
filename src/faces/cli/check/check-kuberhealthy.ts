/** Runs `ndots check run` in a Kuberhealthy pod, finishing and reporting before the deadline. */
import { promises as dns } from 'node:dns';
import { hostname, networkInterfaces } from 'node:os';
import { printSpan } from '../../../server/base/elapsed.ts';
import { systemClock } from '../../../server/base/clock.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { planChecks, type CheckPlan } from '../../../tools/probe/check-file.ts';
import { explainHost } from '../../../tools/probe/kuberhealthy/explanation.ts';
import {
  findReportingAddresses,
  type AddressSources,
  type FoundAddresses,
} from '../../../tools/probe/kuberhealthy/reporting-address.ts';
import {
  reportOf,
  reportOfFailure,
  reportOfProblems,
  sendReport,
  type KuberhealthyReport,
} from '../../../tools/probe/kuberhealthy/report.ts';
import { resolutionCheck, type KuberhealthyRun } from '../../../tools/probe/kuberhealthy/run.ts';
import { runChecks } from '../../../tools/probe/round.ts';
import type { Settings } from '../../../tools/resolver/client.ts';
import { findClient } from '../../../tools/resolver/clients.ts';
import { isLocalhostName } from '../../../tools/resolver/myhostname.ts';
import { chosen, type CheckOptions } from './check-options.ts';
import { printChecks } from './check-formats.ts';
import { clusterIpOf, contextOf, planOf, type ServiceLabels } from './check-plan.ts';
import { EXIT, wantsColour, type Io } from '../command.ts';
import { tellProblems } from '../problem-text.ts';

/** Time between sending the report and the deadline, in milliseconds. */
const MARGIN_MS = 5000;
/** Time limit for resolving the reporting host, milliseconds. */
const LOOKUP_MS = 3000;

/**
 * Runs the checks and reports the results. The exit code is 0 if the report was accepted or came too late, whatever the
 * results are.
 */
export async function runForKuberhealthy(
  run: KuberhealthyRun,
  options: CheckOptions,
  io: Io,
): Promise<number> {
  // Resolved once before the checks, because those may find that DNS is down.
  const found = await findReportingAddresses(run.url, addressSources(options, io));
  await tellAddresses(run, found, io);
  const report = await checked(run, options, io);
  // A verdict requires all checks.
  if (io.signal.aborted) return EXIT.interrupted;
  const reported = await sendReport(run, found.addresses, report, systemClock);
  switch (reported.kind) {
    case 'taken':
      io.err(
        `ndots check: reported ${report.OK ? 'OK' : `${report.Errors.length} errors`} to ${run.url.href} at ${printHostPort(reported.by.host, reported.by.port)}\n`,
      );
      return EXIT.ok;
    case 'late':
      io.err('ndots check: too late, because Kuberhealthy has already ended this run\n');
      return EXIT.ok;
    case 'refused':
    case 'failed':
      io.err(`ndots check: the report was rejected: ${reported.text}\n`);
      return EXIT.failed;
  }
}

/** The report. If the checks could not run or did not finish in time, it says why. */
async function checked(
  run: KuberhealthyRun,
  options: CheckOptions,
  io: Io,
): Promise<KuberhealthyReport> {
  const stop = new AbortController();
  const leftMs = run.deadline - systemClock.wall() - MARGIN_MS;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<KuberhealthyReport>((resolve) => {
    timer = setTimeout(
      () => {
        stop.abort();
        resolve(reportOfFailure('the checks did not end before the run’s deadline'));
      },
      Math.max(0, leftMs),
    );
  });
  try {
    return await Promise.race([late, checkAll(options, io, stop.signal)]);
  } catch (error) {
    const problems = problemsIn(error);
    if (problems === null) throw error;
    tellProblems('check', problems, io);
    return reportOfProblems(problems);
  } finally {
    clearTimeout(timer);
  }
}

async function checkAll(
  options: CheckOptions,
  io: Io,
  signal: AbortSignal,
): Promise<KuberhealthyReport> {
  const [plan, labels] =
    options.file === null ? planOfEnvironment(io) : [await planOf(options, io), null];
  const context = await contextOf(plan, options, io, labels);
  const results = await runChecks(
    chosen(plan.checks, options.only),
    context,
    systemClock,
    AbortSignal.any([signal, io.signal]),
  );
  if (!signal.aborted)
    io.out(
      printChecks(options.output, results, {
        colour: wantsColour(options, io),
        columns: io.columns,
      }),
    );
  return reportOf(results);
}

/**
 * The plan that `dns-resolution-check` derives from these variables, with one name that is queried through the service
 * or at each server.
 */
function planOfEnvironment(io: Io): readonly [CheckPlan, ServiceLabels | null] {
  const { name, labels, namespace, remarks } = resolutionCheck(io.env, hostname());
  for (const remark of remarks) io.err(`ndots check: ${remark}\n`);
  const conf = findClient('go')!.conf(ownSettings(io));
  const at = labels === null ? 'vip' : 'replicas';
  const values = { name, at, clients: [findClient('go')] };
  const plan = planChecks({ search: [...conf.search], ndots: conf.ndots }, [
    { kind: 'search-walk', values },
  ]);
  return [plan, labels === null ? null : { namespace, labels }];
}

function addressSources(options: CheckOptions, io: Io): AddressSources {
  return {
    env: io.env,
    async lookup(name) {
      const found = await Promise.race([
        dns.lookup(name, { all: true }),
        new Promise<never>((_resolve, reject) => {
          setTimeout(
            () => reject(new Error(`nothing in ${printSpan(LOOKUP_MS)}`)),
            LOOKUP_MS,
          ).unref();
        }),
      ]);
      return found.map(({ address }) => address);
    },
    clusterIp: (namespace, name) => clusterIpOf(namespace, name, options, io),
  };
}

/** Logs where reports are sent and, if clients resolve the host differently, why. */
async function tellAddresses(
  { url }: KuberhealthyRun,
  { addresses, failures }: FoundAddresses,
  io: Io,
): Promise<void> {
  const [first] = addresses;
  const name = url.hostname;
  if (first !== undefined)
    io.err(`ndots check: reports go to ${printHostPort(first.host, first.port)} (${first.from})\n`);
  for (const failure of failures)
    if (first === undefined || failure.startsWith('looking up'))
      io.err(`ndots check: ${failure}\n`);
  if (first !== undefined && !isLocalhostName(name)) return;
  io.err(`ndots check: how clients in this pod would find ${name} if no server knows it:\n`);
  for (const line of await explainHost(name, ownSettings(io))) io.err(`  ${line}\n`);
  if (isLocalhostName(name))
    io.err(
      '  Names under localhost refer to this machine (RFC 6761). systemd’s nss-myhostname resolves them, but DNS servers and Go without cgo do not. ' +
        'An address (http://127.0.0.1/…) or a cluster name works for every client.\n',
    );
}

/** Resolver settings from the files in this pod. */
function ownSettings({ env }: Io): Settings {
  const read = (path: string): string | null => {
    try {
      return readFileText(path, FILE_MAX.small);
    } catch {
      return null;
    }
  };
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return {
    resolvConf: read('/etc/resolv.conf'),
    nsswitch: read('/etc/nsswitch.conf'),
    hosts: read('/etc/hosts'),
    hostAliases: null,
    env,
    host: {
      hostname: hostname(),
      addresses: own.filter(({ internal }) => !internal).map(({ address }) => address),
      loopback: [4, 6],
    },
  };
}
