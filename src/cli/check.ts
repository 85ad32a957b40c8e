/** `ndots check`: whether DNS does what clients need, seen from where this runs. */
import { systemClock } from '../base/clock.ts';
import { commonParameters, fileParameters } from '../probe/check-file.ts';
import { worst } from '../probe/check.ts';
import { checkKinds } from '../probe/kinds.ts';
import { kuberhealthyRun } from '../probe/kuberhealthy/run.ts';
import type { ProbeServer } from '../probe/network.ts';
import type { YamlFields } from '../kube/manifests/yaml-shape.ts';
import { runChecks, type CheckResult } from '../probe/round.ts';
import { runForKuberhealthy } from './check-kuberhealthy.ts';
import { nagiosCode, printChecks } from './check-formats.ts';
import { chosen, parseCheckOptions, type CheckOptions } from './check-options.ts';
import { contextOf, ownServers, planOf } from './check-plan.ts';
import { serveChecks } from './check-serve.ts';
import { EXIT, failure, wantsColour, type Command, type Io } from './command.ts';

/** The verb `check`. */
export const check: Command = {
  name: 'check',
  async run(words, io) {
    const options = parseCheckOptions(words, io.env);
    switch (options.action) {
      case 'list':
        io.out(listing());
        return EXIT.ok;
      case 'init':
        io.out(firstFile(ownServers()));
        return EXIT.ok;
      case 'run':
        return run(options, io);
      case 'serve': {
        if (!options.kuberhealthy) return serveChecks(options, io);
        // Only then is it loaded: a checker is to be small.
        const { serveKuberhealthy } = await import('./check-serve-kuberhealthy.ts');
        return serveKuberhealthy(options, io);
      }
    }
  },
};

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
  const forKuberhealthy = options.noReport ? null : kuberhealthyRun(io.env, systemClock.wall());
  if (forKuberhealthy !== null) return runForKuberhealthy(forKuberhealthy, options, io);
  const plan = await planOf(options, io);
  const checks = chosen(plan.checks, options.only);
  const context = await contextOf(plan, options, io);
  // Timers of the clock do not hold the process; this one does, until the checks are over.
  const hold = setInterval(() => undefined, 60_000);
  const results = await runChecks(checks, context, systemClock, io.signal).finally(() =>
    clearInterval(hold),
  );
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

function listing(): string {
  const lines = ['Checks (check: NAME), and what each takes:', ''];
  const rows = (table: YamlFields): string[] =>
    Object.entries(table).map(
      ([key, { shape, help, fallback }]) =>
        `    ${`${key}: ${shape.placeholder}`.padEnd(34)} ${help}${fallback === undefined ? ' (must be there)' : ''}`,
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
