/** `ndots check`: whether DNS does what clients need, seen from where this runs. */
import { systemClock } from '../base/clock.ts';
import { parseAddress } from '../base/ip.ts';
import { Problem } from '../base/problem.ts';
import { secureRandom } from '../base/random.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { apiClient } from '../kube/api/client.ts';
import { clusterAccess } from '../kube/api/cluster-access.ts';
import {
  commonParameters,
  fileParameters,
  planChecks,
  readCheckFile,
  type CheckPlan,
} from '../probe/check-file.ts';
import { worst, type ProbeContext } from '../probe/check.ts';
import { uniqueServers } from '../probe/asking.ts';
import { checkKinds } from '../probe/kinds.ts';
import type { ProbeServer } from '../probe/network.ts';
import { findServers, type FoundServers } from '../probe/replicas.ts';
import { runChecks, type CheckResult } from '../probe/round.ts';
import { systemProbeNetwork } from '../probe/system-network.ts';
import type { Parameter } from '../probe/parameters.ts';
import { linesOf, wordsOf } from '../resolver/resolv-conf.ts';
import { nagiosCode, printChecks } from './check-formats.ts';
import { chosen, parseCheckOptions, type CheckOptions } from './check-options.ts';
import { liveLookup } from './check-lookup.ts';
import { EXIT, failure, wantsColour, type Command, type Io } from './command.ts';
import { coreVersion } from './version.ts';

/** The verb `check`. */
export const check: Command = {
  name: 'check',
  async run(words, io) {
    const options = parseCheckOptions(words);
    switch (options.action) {
      case 'list':
        io.out(listing());
        return EXIT.ok;
      case 'init':
        io.out(firstFile(ownServers()));
        return EXIT.ok;
      case 'run':
        return run(options, io);
    }
  },
};

/** What is run without a file: the checks that need no names of their own, and the walk to the one name that every cluster has. */
const usual = checkKinds
  .filter(({ parameters }) =>
    Object.values(parameters).every((each) => each.fallback !== undefined),
  )
  .map(({ name: kind }) => ({ kind, values: {} }))
  .concat([{ kind: 'search-walk', values: { name: 'kubernetes.default' } }]);

async function run(options: CheckOptions, io: Io): Promise<number> {
  // Whatever is wrong: a program that reads Nagios's codes must not take 2 for CRITICAL.
  if (options.output !== 'nagios') return runOnce(options, io);
  try {
    return await runOnce(options, io);
  } catch (error) {
    io.out(`DNS UNKNOWN - ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}\n`);
    failure('check', error, io);
    return 3;
  }
}

async function runOnce(options: CheckOptions, io: Io): Promise<number> {
  const plan = await planOf(options, io);
  const checks = chosen(plan.checks, options.only);
  const context = await contextOf(plan, options, io);
  const results = await runChecks(checks, context, systemClock, io.signal);
  if (io.signal.aborted) return EXIT.interrupted;
  io.out(printChecks(options.output, results, wantsColour(options, io)));
  return options.output === 'nagios' ? nagiosCode(results) : exitCode(results, options);
}

function exitCode(results: readonly CheckResult[], { failOn }: CheckOptions): number {
  const state = worst(results.map((result) => result.state));
  if (state === 'failed') return EXIT.no;
  if (state === 'unknown') return EXIT.failed;
  return state === 'warning' && failOn === 'warning' ? EXIT.no : EXIT.ok;
}

async function planOf({ file }: CheckOptions, io: Io): Promise<CheckPlan> {
  if (file === null) return planChecks({}, usual);
  if (file === '-') return readCheckFile(await io.stdin(), 'standard input');
  let content: string;
  try {
    content = readFileText(file, FILE_MAX.manifest);
  } catch (error) {
    throw new Problem({
      code: 'file-unreadable',
      text: `${file} cannot be read: ${(error as Error).message}`,
      remedy: `${io.program} check init > ${file} makes one to begin with.`,
      cause: error,
    });
  }
  return readCheckFile(content, file);
}

/** The servers: those of the command line, else the file's, else the service's, else this machine's. */
async function contextOf(plan: CheckPlan, options: CheckOptions, io: Io): Promise<ProbeContext> {
  const service = options.service ?? plan.service;
  const found: FoundServers =
    service === null ? { vip: [], replicas: [] } : await askCluster(service, options, io);
  const vip = [options.vip, plan.vip ?? [], found.vip, ownServers()].find(
    ({ length }) => length > 0,
  );
  const replicas = [options.replicas, plan.replicas ?? [], found.replicas].find(
    ({ length }) => length > 0,
  );
  return {
    ...plan,
    network: systemProbeNetwork(secureRandom, liveLookup(plan.timeoutMs)),
    random: secureRandom,
    vip: uniqueServers(vip ?? []),
    replicas: uniqueServers(replicas ?? []),
  };
}

async function askCluster(service: string, options: CheckOptions, io: Io): Promise<FoundServers> {
  const { kubeconfig, context } = options;
  const [namespace = '', name = ''] = service.split('/');
  const { connection } = clusterAccess({ kubeconfig, context, env: io.env });
  const userAgent = `ndots/${coreVersion} (${process.platform}/${process.arch})`;
  const client = apiClient({ connection, clock: systemClock, userAgent });
  try {
    return await findServers(client, { namespace, name, labels: null }, io.signal);
  } finally {
    client.close();
  }
}

/** The servers of /etc/resolv.conf. */
function ownServers(): readonly ProbeServer[] {
  try {
    const text = readFileText('/etc/resolv.conf', FILE_MAX.small);
    return linesOf(text)
      .map(wordsOf)
      .filter(([key, host = '']) => key === 'nameserver' && parseAddress(host) !== null)
      .map(([, host = '']) => ({ host, port: 53 }));
  } catch {
    return [];
  }
}

function listing(): string {
  const lines = ['Checks (check: NAME), and what each takes:', ''];
  const rows = (table: Readonly<Record<string, Parameter<unknown>>>): string[] =>
    Object.entries(table).map(
      ([key, { placeholder, help, fallback }]) =>
        `    ${`${key}: ${placeholder}`.padEnd(34)} ${help}${fallback === undefined ? ' (must be there)' : ''}`,
    );
  for (const { name, summary, parameters } of checkKinds)
    lines.push(`  ${name.padEnd(22)} ${summary}`, ...rows(parameters), '');
  lines.push('  Every check', ...rows(commonParameters), '', '  The file', ...rows(fileParameters));
  return `${lines.join('\n')}\n`;
}

function firstFile(servers: readonly ProbeServer[]): string {
  const vip = servers[0]?.host ?? '10.96.0.10';
  return `# Checks of DNS: ndots check run -f check.yaml
# "ndots check list" shows every check and what it takes.

vip: ${vip}
# The service whose replicas are asked one by one, and whose address is taken where there is no vip:
service: kube-system/kube-dns
timeout: 1s
tries: 2
every: 30s
objective: 99.9

checks:
  - check: replica-answers
    slow: 50ms
  - check: vip-fresh-port
  - check: vip-fixed-port
  - check: pair-same-socket
  - check: tcp
  - check: edns-1232
  - check: search-walk
    name: kubernetes.default
  - check: suffix-hazards
  - check: aaaa-consistency
  - check: replica-agreement
  - check: negative
    slow: 50ms
  - check: external-names
    names: [www.example.com]
    slow: 500ms
`;
}
