/** The command line of `ndots size`. */
import {
  readDefaults,
  readTargets,
  type ScaleTarget,
} from '../../../addons/autoscaler/autoscaler.ts';
import {
  clusterGiven,
  clusterKeys,
  clusterOptions,
  type ClusterOptions,
} from '../cluster-options.ts';
import { flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { firstBeside, parseOptions } from '../option-parse.ts';
import {
  choice,
  duration,
  file,
  integer,
  listenAddress,
  namespaceName,
  text,
  usage,
} from '../option-values.ts';

export type SizeOptions =
  | {
      readonly mode: 'cluster';
      readonly nodes: number;
      readonly cores: number;
      /** ConfigMap data as JSON, or a whole ConfigMap as YAML. If null, uses kubeadm's default ratio. */
      readonly params: string | null;
      readonly output: 'text' | 'json';
    }
  | {
      readonly mode: 'measured';
      readonly metrics: readonly URL[];
      readonly forMs: number;
      /** CPU cores per replica. */
      readonly cpu: number;
      /** Planned multiple of the current request rate. */
      readonly peak: number;
      readonly output: 'text' | 'json';
    }
  | FollowOptions;

/** The flags of cluster-proportional-autoscaler, for `--follow`. */
export interface FollowOptions extends ClusterOptions {
  readonly mode: 'follow';
  readonly namespace: string;
  readonly configMap: string;
  readonly targets: readonly ScaleTarget[];
  readonly defaults: Readonly<Record<string, string>> | null;
  readonly nodeLabels: string;
  readonly everyMs: number;
  /** Address for /healthz. */
  readonly listen: { readonly host: string; readonly port: number };
}

const fraction: OptionValue<number> = {
  placeholder: 'NUMBER',
  read(given, name) {
    const value = Number(given);
    if (/^\d+(\.\d+)?$/.test(given) && value > 0 && value <= 1000) return value;
    throw usage(`${name} must be a number above 0, not "${given}"`);
  },
};

const url: OptionValue<URL> = {
  placeholder: 'URL',
  read(given, name) {
    const read = URL.parse(given.includes('://') ? given : `http://${given}`);
    if (read === null || !/^https?:$/.test(read.protocol))
      throw usage(`${name} takes http://HOST:9153/metrics, not "${given}"`);
    if (read.pathname === '/') read.pathname = '/metrics';
    return read;
  },
};

const table = {
  ...group('Cluster size', {
    nodes: one('--nodes', integer('N', 0, 1_000_000), 'number of nodes'),
    cores: one('--cores', integer('N', 0, 100_000_000), 'total number of CPU cores on all nodes'),
    params: one(
      '--params',
      file(),
      'the autoscaler’s ConfigMap, or its data (YAML or JSON; -: standard input)',
    ),
  }),
  ...group('Measurement', {
    metrics: many('--metrics', url, 'metrics of one ndots or CoreDNS replica; repeatable'),
    for: one('--for', duration(1000, 86_400_000), 'measure this long (10s)'),
    cpu: one('--cpu', fraction, 'CPU limit of a replica, in cores (1)'),
    peak: one('--peak', fraction, 'plan for this multiple of the current request rate (2)'),
  }),
  ...group('Autoscaler', {
    follow: flag('--follow', 'keep running, and scale the target with the cluster'),
    namespace: one(
      '--namespace',
      namespaceName,
      'namespace of the ConfigMap and the targets (MY_POD_NAMESPACE)',
    ),
    configMap: one('--configmap', text('NAME'), 'ConfigMap with linear or ladder'),
    target: one('--target', text('KIND/NAME,…'), 'workloads to scale, such as deployment/coredns'),
    defaults: one(
      '--default-params',
      text('JSON'),
      'content of the ConfigMap if it does not exist',
    ),
    nodeLabels: one('--nodelabels', text('LABELS'), 'count only nodes with these labels'),
    every: one('--poll-period-seconds', integer('SECONDS', 1, 3600), 'interval (10)'),
    listen: one('--listen', listenAddress(8080), 'serve /healthz here (0.0.0.0:8080)'),
    ...clusterOptions,
    // Flags that existing cluster-proportional-autoscaler manifests set.
    logtostderr: one('--logtostderr', text('BOOL'), 'accepted and ignored'),
    verbosity: one('--v', text('LEVEL'), 'accepted and ignored'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

const ofModes = {
  follow: [
    'follow',
    'namespace',
    'configMap',
    'target',
    'defaults',
    'nodeLabels',
    'every',
    'listen',
    ...clusterKeys,
  ],
  measured: ['metrics', 'for', 'cpu', 'peak', 'output'],
  cluster: ['nodes', 'cores', 'params', 'output'],
} as const;
const besideMode = {
  follow: (name: string): string => `--follow does not take ${name}`,
  measured: (name: string): string => `--metrics does not take ${name}`,
  cluster: (name: string): string => `${name} needs --metrics or --follow`,
};

export const sizeUsage: Usage = {
  synopsis: '--nodes N --cores N | --metrics URL… | --follow …',
  examples: [
    ['--nodes 120 --cores 1920', 'apply the proportional formula'],
    ['--metrics 10.1.2.3:9153 --peak 3', 'measure the replicas'],
    ['--follow --configmap dns --target deployment/coredns', 'scale them continuously'],
  ],
  style: 'gnu',
  options: table,
  notes: ['Exit codes: 0 done, 2 could not measure or compute, 3 usage error.'],
};

/** @param env for `MY_POD_NAMESPACE` */
export function parseSizeOptions(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): SizeOptions {
  const { values, words: rest } = parseOptions(table, words);
  if (rest.length > 0) throw usage(`unexpected word "${rest[0]}"`, 'size accepts only options.');
  const output = values.output ?? 'text';
  const mode = values.follow ? 'follow' : values.metrics.length > 0 ? 'measured' : 'cluster';
  const other = firstBeside(table, values, [...ofModes[mode], 'logtostderr', 'verbosity']);
  if (other !== null) throw usage(besideMode[mode](other));
  if (values.follow) {
    const namespace = values.namespace ?? env['MY_POD_NAMESPACE'] ?? '';
    const { configMap, target } = values;
    if (namespace === '' || configMap === null || target === null)
      throw usage(
        '--follow needs --namespace, --configmap and --target',
        'Example: --follow --namespace kube-system --configmap dns --target deployment/coredns',
      );
    return {
      mode: 'follow',
      namespace,
      configMap,
      targets: readTargets(target, usage),
      defaults: values.defaults === null ? null : readDefaults(values.defaults, usage),
      nodeLabels: values.nodeLabels ?? '',
      everyMs: (values.every ?? 10) * 1000,
      listen: values.listen ?? { host: '0.0.0.0', port: 8080 },
      ...clusterGiven(values),
    };
  }
  if (values.metrics.length > 0)
    return {
      mode: 'measured',
      metrics: values.metrics,
      forMs: values.for ?? 10_000,
      cpu: values.cpu ?? 1,
      peak: values.peak ?? 2,
      output,
    };
  if (values.nodes !== null && values.cores === null) throw usage('--nodes needs --cores');
  if (values.cores !== null && values.nodes === null) throw usage('--cores needs --nodes');
  if (values.nodes === null || values.cores === null)
    throw usage(
      'nothing to compute the size from',
      'Give --nodes and --cores, or --metrics URL, or --follow.',
    );
  return {
    mode: 'cluster',
    nodes: values.nodes,
    cores: values.cores,
    params: values.params,
    output,
  };
}
