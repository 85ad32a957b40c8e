/** `ndots check`: checks that DNS works for clients at this point in the network. */
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { commonParameters, fileParameters } from '../../../tools/probe/check-file.ts';
import { worst } from '../../../tools/probe/check.ts';
import { checkKinds } from '../../../tools/probe/kinds.ts';
import { kuberhealthyRun } from '../../../tools/probe/kuberhealthy/run.ts';
import type { ProbeServer } from '../../../tools/probe/network.ts';
import type { YamlFields } from '../../../server/kube/manifests/yaml-shape.ts';
import { runChecks, type CheckResult } from '../../../tools/probe/round.ts';
import { runForKuberhealthy } from './check-kuberhealthy.ts';
import { nagiosCode, printChecks } from './check-formats.ts';
import { parseCheckOptions, type CheckOptions } from './check-options.ts';
import { checksOf, contextOf, ownServers, planOf } from './check-plan.ts';
import { serveChecks } from './check-serve.ts';
import { EXIT, failure, wantsColour, type Command, type Io } from '../command.ts';
import { count } from '../../../server/base/counted.ts';
import { beside, wrap } from '../page.ts';

export const check: Command = {
  name: 'check',
  async run(words, io) {
    const options = parseCheckOptions(words, io.env);
    switch (options.action) {
      case 'list':
        io.out(options.output === 'json' ? listingDocument() : listing(io));
        return EXIT.ok;
      case 'init':
        io.out(firstFile(ownServers()));
        return EXIT.ok;
      case 'run':
        return run(options, io);
      case 'serve': {
        if (!options.kuberhealthy) return serveChecks(options, io);
        // Loaded on demand to keep checkers small.
        const { serveKuberhealthy } = await import('./check-serve-kuberhealthy.ts');
        return serveKuberhealthy(options, io);
      }
    }
  },
};

async function run(options: CheckOptions, io: Io): Promise<number> {
  // Nagios would read exit code 2 as CRITICAL, so errors use another code.
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
  const checks = checksOf(plan, options, (text) => io.err(`ndots check: ${text}\n`));
  const context = await contextOf(plan, options, io);
  // The clock's timers do not keep the process alive, so this timer does so until the checks end.
  const hold = setInterval(() => undefined, 60_000);
  const results = await runChecks(checks, context, systemClock, io.signal).finally(() =>
    clearInterval(hold),
  );
  const left = checks.length - results.length;
  if (left > 0) {
    const text = `ended before ${left} of ${count(checks.length, 'check', 'checks')} could be done`;
    // Nagios has no code for an interruption, but failures found before it still count.
    if (options.output === 'nagios' && exitCode(results, options) !== EXIT.no) throw cutShort(text);
    io.err(`ndots check: ${text}\n`);
  }
  io.out(
    printChecks(options.output, results, { colour: wantsColour(options, io), columns: io.columns }),
  );
  if (options.output === 'nagios') return nagiosCode(results);
  if (left > 0) return EXIT.interrupted;
  return exitCode(results, options);
}

function cutShort(text: string): Problem {
  return new Problem({ code: 'check-cut-short', text });
}

function exitCode(results: readonly CheckResult[], { failOn }: CheckOptions): number {
  const state = worst(results.map((result) => result.state));
  if (state === 'failed') return EXIT.no;
  if (state === 'unknown') return EXIT.failed;
  return state === 'warning' && failOn === 'warning' ? EXIT.no : EXIT.ok;
}

/** Column where descriptions of checks and parameters start. */
const CHECK_COLUMN = 25;
const PARAMETER_COLUMN = 39;

function listing(io: Io): string {
  const lines = [...wrap('Checks (check: NAME) and their settings:', '', io), ''];
  const rows = (table: YamlFields): string[] =>
    Object.entries(table).flatMap(([key, { shape, help, fallback }]) =>
      beside(
        `    ${key}: ${shape.placeholder}`.padEnd(PARAMETER_COLUMN - 1),
        `${help}${fallback === undefined ? ' (required)' : ''}`,
        PARAMETER_COLUMN,
        io,
      ),
    );
  for (const { name, summary, parameters } of checkKinds)
    lines.push(
      ...beside(`  ${name}`.padEnd(CHECK_COLUMN - 1), summary, CHECK_COLUMN, io),
      ...rows(parameters),
      '',
    );
  lines.push('  Every check', ...rows(commonParameters), '', '  The file', ...rows(fileParameters));
  return `${lines.join('\n')}\n`;
}

function listingDocument(): string {
  const rows = (table: YamlFields): object[] =>
    Object.entries(table).map(([key, { shape, help, fallback }]) => ({
      key,
      value: shape.placeholder,
      help,
      required: fallback === undefined,
    }));
  const document = {
    checks: checkKinds.map(({ name, summary, parameters }) => ({
      check: name,
      summary,
      parameters: rows(parameters),
    })),
    everyCheck: rows(commonParameters),
    file: rows(fileParameters),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function firstFile(servers: readonly ProbeServer[]): string {
  const vip = servers[0]?.host ?? '10.96.0.10';
  return `# DNS checks: ndots check run -f check.yaml
# "ndots check list" shows every check and its settings.

vip: ${vip}
# The Service. Each of its replicas is tested. Without vip, its address is tested:
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
