/** The command line of `ndots check`. */
import type { Retention } from '../../../addons/kuberhealthy/pod-sweeper.ts';
import { readReportingUrl } from '../../../addons/kuberhealthy/reporting-url.ts';
import type { PlannedCheck } from '../../../tools/probe/check-file.ts';
import { readServer, serverAddress } from '../../../tools/probe/parameters.ts';
import { checkKinds } from '../../../tools/probe/kinds.ts';
import type { ProbeServer } from '../../../tools/probe/network.ts';
import { keptOf } from './check-environment.ts';
import { clusterOptions, type ClusterOptions } from '../cluster-options.ts';
import { beside, flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstBeside, firstGiven, parseOptions } from '../option-parse.ts';
import { choice, file, integer, listenAddress, text, usage } from '../option-values.ts';
import { didYouMean } from '../../../server/base/problem.ts';

export type CheckOutput = 'text' | 'json' | 'junit' | 'prom' | 'nagios';

export interface CheckOptions extends ClusterOptions, ColourOptions {
  readonly action: 'run' | 'serve' | 'list' | 'init';
  /** Check files, where `-` is standard input. Null for the default checks. */
  readonly file: string | null;
  readonly vip: readonly ProbeServer[];
  readonly replicas: readonly ProbeServer[];
  readonly service: string | null;
  /** Kinds or titles of the checks to run. If empty, runs all checks. */
  readonly only: readonly string[];
  readonly output: CheckOutput;
  readonly failOn: 'warning' | 'failed';
  readonly listen: ProbeServer;
  /** Limit of targets that `serve` remembers. */
  readonly targetsMax: number;
  readonly kuberhealthy: boolean;
  /** The namespace whose checks run, or `''` for all. */
  readonly targetNamespace: string;
  /** URL to send reports to, or null for the `kuberhealthy` service in the same namespace. */
  readonly reportingUrl: URL | null;
  readonly reportBy: 'address' | 'name';
  readonly kept: Retention;
  /** True to send Kuberhealthy no reports, even from one of its pods. */
  readonly noReport: boolean;
}

const server: OptionValue<ProbeServer> = {
  placeholder: serverAddress.placeholder,
  read(given, name) {
    const found = readServer(given);
    if (found !== null) return found;
    throw usage(`${name} takes an IP address, or one with a port, not "${given}"`);
  },
};

const service: OptionValue<string> = {
  placeholder: 'NAMESPACE/NAME',
  read(given, name) {
    if (/^[a-z0-9-]{1,63}\/[a-z0-9-]{1,63}$/.test(given)) return given;
    throw usage(`${name} takes NAMESPACE/NAME, not "${given}"`, 'Example: kube-system/kube-dns');
  },
};

const table = {
  ...group('Checks', {
    file: one(
      '-f, --file',
      file(),
      'YAML file of checks (-: standard input; default: the usual checks)',
    ),
    only: many(
      '--only',
      text('CHECK', { words: checkKinds.map(({ name }) => name) }),
      'only checks of this kind or title; repeatable',
    ),
  }),
  ...group('Servers', {
    vip: many('--vip', server, 'address of the DNS service (overrides the file)'),
    replicas: many('--replica', server, 'address of a replica; repeatable (overrides the file)'),
    service: one('--service', service, 'read both from this service’s EndpointSlices'),
    ...beside(['--service', '--file', '--kuberhealthy'], { ...clusterOptions }),
  }),
  ...group('Serving (serve)', {
    listen: one(
      '--listen',
      listenAddress(9154),
      'serve metrics, JSON and readiness here (0.0.0.0:9154)',
    ),
    targetsMax: one(
      '--max-targets',
      integer('N', 1, 100_000),
      'number of targets to remember (1000)',
    ),
  }),
  ...group('Replacing Kuberhealthy (serve)', {
    kuberhealthy: flag(
      '--kuberhealthy',
      "run the cluster's khchecks and healthchecks, accept their reports",
    ),
    ...beside(['--kuberhealthy'], {
      targetNamespace: one(
        '--target-namespace',
        text('NAMESPACE'),
        'only checks in this namespace (KH_TARGET_NAMESPACE)',
      ),
      reportingUrl: one(
        '--reporting-url',
        text('URL'),
        'URL for reports (KH_CHECK_REPORT_URL, else the kuberhealthy service)',
      ),
      reportBy: one(
        '--report-by',
        choice('HOW', ['address', 'name']),
        'give checkers its address, which does not need DNS, or its name (address)',
      ),
      keepCompleted: one(
        '--keep-completed',
        integer('N', 0, 1000),
        'completed pods to keep per check (KH_MAX_COMPLETED_POD_COUNT, else 1)',
      ),
      keepFailed: one(
        '--keep-failed',
        integer('N', 0, 1000),
        'failed pods to keep for 36 hours (KH_MAX_ERROR_POD_COUNT, else 2)',
      ),
    }),
  }),
  ...group('Output', {
    noReport: flag('--no-report', 'send no report to Kuberhealthy (run, in a checker pod)'),
    output: one(
      '-o, --output',
      choice('FORMAT', ['text', 'json', 'junit', 'prom', 'nagios']),
      'text, json, junit, prom (Prometheus), or nagios (with Nagios exit codes)',
    ),
    nagios: flag('--nagios', 'same as -o nagios'),
    failOn: one(
      '--fail-on',
      choice('STATE', ['failed', 'warning']),
      'lowest state that makes the exit code 1 (failed)',
    ),
    ...colourOptions,
  }),
};

export const checkUsage: Usage = {
  synopsis: 'run|serve|list|init [-f FILE]',
  examples: [
    ['run --service kube-system/kube-dns', 'test replicas, service address, TCP …'],
    ['run -f examples/check.yaml -o junit', 'run the checks in a file'],
    ['serve -f check.yaml --listen :9154', 'repeat the checks, and export metrics'],
    ['serve --kuberhealthy', 'replace Kuberhealthy'],
    ['init > check.yaml', 'print a sample file'],
  ],
  style: 'gnu',
  options: table,
  words: { words: ['run', 'serve', 'list', 'init'] },
  notes: [
    'In a Kuberhealthy checker pod (KH_REPORTING_URL is set), run also reports its result. More: docs/check.md',
    'Exit codes: 0 all passed, 1 a check failed, 2 could not check, 3 usage error. With --nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.',
  ],
};

const actions = ['run', 'serve', 'list', 'init'] as const;

const ofList = ['output', 'color', 'noColor'] as const;
const ofRun = ['noReport', 'output', 'nagios', 'failOn'] as const;
const ofServe = ['listen', 'targetsMax'] as const;
const ofServers = ['only', 'vip', 'replicas', 'service', 'targetsMax'] as const;

/** Parses the words after `ndots check`. */
export function parseCheckOptions(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CheckOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [given = '', ...more] = rest;
  const action = actions.find((each) => each === given);
  if (action === undefined)
    throw usage(
      given === ''
        ? 'check needs an action: run, serve, list or init'
        : `there is no "check ${given}"`,
      didYouMean(given, actions, 'Example: ndots check run'),
    );
  const [extra] = more;
  if (extra !== undefined)
    throw usage(
      `unexpected word "${extra}"`,
      extra.startsWith('@')
        ? `Specify the server with --vip ${extra.slice(1)}, or find all servers with --service.`
        : 'Specify a check file with -f.',
    );
  if (action === 'list' && !['text', 'json'].includes(values.output ?? 'text'))
    throw usage('list takes -o text or -o json');
  if (values.kuberhealthy && action !== 'serve')
    throw usage('--kuberhealthy needs serve', 'Example: ndots check serve --kuberhealthy');
  const idle = action === 'list' || action === 'init';
  const other = idle
    ? firstBeside(table, values, action === 'list' ? ofList : [])
    : firstGiven(table, values, action === 'run' ? ofServe : ofRun);
  if (other !== null) throw usage(`${action} does not take ${other}`);
  const ofFile = values.kuberhealthy ? firstGiven(table, values, ofServers) : null;
  if (ofFile !== null && values.file === null)
    throw usage(`with --kuberhealthy, ${ofFile} needs a check file`, 'Give one: -f FILE');
  if ((values.nagios || values.output === 'nagios') && values.failOn !== null)
    throw usage('--fail-on cannot be combined with -o nagios, which has its own exit codes');
  const url =
    values.reportingUrl || env['KH_CHECK_REPORT_URL'] || env['KH_EXTERNAL_REPORTING_URL'] || '';
  const kept = keptOf(values.kuberhealthy ? env : {});
  const listen = values.kuberhealthy ? (env['KH_LISTEN_ADDRESS'] ?? '') : '';
  return {
    ...values,
    action,
    targetNamespace: values.targetNamespace ?? env['KH_TARGET_NAMESPACE'] ?? '',
    reportingUrl: url === '' ? null : readReportingUrl(url),
    reportBy: values.reportBy ?? 'address',
    kept: {
      ...kept,
      completed: values.keepCompleted ?? kept.completed,
      failed: values.keepFailed ?? kept.failed,
    },
    output: values.nagios ? 'nagios' : (values.output ?? 'text'),
    failOn: values.failOn ?? 'failed',
    listen:
      values.listen ??
      (listen === ''
        ? { host: '0.0.0.0', port: 9154 }
        : listenAddress(9154).read(listen, 'KH_LISTEN_ADDRESS')),
    targetsMax: values.targetsMax ?? 1000,
  };
}

/** The checks selected by `--only`. */
export function chosen(
  checks: readonly PlannedCheck[],
  only: readonly string[],
): readonly PlannedCheck[] {
  const names = checks.flatMap(({ kind, title }) => [kind.name, title]);
  for (const name of only) {
    if (names.includes(name)) continue;
    throw usage(
      `--only ${name}: there is no such check`,
      didYouMean(name, names, `Known: ${[...new Set(names)].join(', ')}`),
    );
  }
  return only.length === 0
    ? checks
    : checks.filter(({ kind, title }) => only.includes(kind.name) || only.includes(title));
}
