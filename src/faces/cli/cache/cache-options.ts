/** The command line of `ndots cache`. */
import { clusterNames, clusterOptions, namesCluster } from '../cluster-options.ts';
import { beside, flag, group, many, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import {
  choice,
  duration,
  file,
  hostAddress,
  integer,
  labelSelector,
  namespaceName,
  readAction,
  usage,
} from '../option-values.ts';
import type { AdminChoice } from './admin-servers.ts';

const actions = ['explain', 'flush'] as const;

export interface CacheVerbOptions extends AdminChoice {
  readonly action: (typeof actions)[number];
  /** Absolute names. */
  readonly names: readonly string[];
  /** Includes all subdomains. */
  readonly below: boolean;
  readonly output: 'text' | 'json';
}

/** Default port of the `admin` directive. */
export const ADMIN_PORT = 9154;

const table = {
  ...group('Entries', {
    below: flag('--below', 'include all names below'),
    all: flag('--all', 'every entry'),
  }),
  ...group('Servers', {
    servers: many(
      '-s, --server',
      hostAddress(ADMIN_PORT),
      `address of the admin plugin; repeatable (localhost:${ADMIN_PORT})`,
    ),
    tokenFile: one('--token-file', file(), 'the token_file of admin'),
    tls: flag('--tls', 'use HTTPS'),
    ca: one('--ca', file(), 'CA of the server certificate'),
    cert: one('--cert', file(), 'client certificate'),
    key: one('--key', file(), 'client key'),
    timeout: one('--timeout', duration(100, 60_000), 'limit per server (5s)'),
  }),
  ...group('All replicas in a cluster', {
    cluster: flag(
      '--cluster',
      'all DNS pods in the current kubectl cluster, through the API server',
    ),
    ...beside(clusterNames, {
      namespace: one('-n, --namespace', namespaceName, 'namespace of the pods (kube-system)'),
      selector: one(
        '-l, --selector',
        labelSelector,
        'label selector for the pods (default: the DNS service’s)',
      ),
      port: one('--port', integer('PORT', 1, 65_535), `admin port in the pods (${ADMIN_PORT})`),
    }),
    ...clusterOptions,
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

export const cacheUsage: Usage = {
  synopsis: 'explain NAME… | flush NAME… | flush --all',
  examples: [
    ['explain www.example.com', 'show the cache entries of a name'],
    [
      'explain example.com --below -s 10.0.0.7 -s 10.0.0.8',
      'on two servers, including all names under it',
    ],
    ['flush www.example.com --cluster --token-file FILE', 'flush it on all replicas'],
    ['flush --all', 'flush the whole cache here'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'The servers need the admin directive. In a cluster, requests go through the API server to each pod (permission: create pods/proxy). Therefore, admin must listen on all addresses, with a token file: admin :9154 { token_file FILE }.',
    'Exit codes: 0 entries found or flushed, 1 no entries, 2 a server did not answer, 3 usage error. More: docs/cache.md',
  ],
  words: { words: actions },
};

/** @throws Problem (`usage`) */
export function parseCacheOptions(given: readonly string[]): CacheVerbOptions {
  const { values, words } = parseOptions(table, given);
  const [first = '', ...names] = words;
  const action = readAction(first, actions);
  const { all, ca, cert, key, tokenFile, servers } = values;
  if (all === names.length > 0)
    throw usage(all ? '--all or names, not both' : `${action} needs a name, or --all`);
  if ((cert === null) !== (key === null)) throw usage('--cert and --key must be given together');
  const inCluster = values.cluster || namesCluster(values);
  if (inCluster && servers.length > 0) throw usage('--server cannot be combined with --cluster');
  if (inCluster && cert !== null)
    throw usage(
      'the API server does not forward your certificate to the pods',
      'Use --token-file.',
    );
  if (inCluster && ca !== null)
    throw usage('the API server does not verify the pods’ certificates', 'Use --tls.');
  const secure = values.tls || ca !== null || cert !== null;
  return {
    action,
    names: all ? ['.'] : names.map((name) => (name.endsWith('.') ? name : `${name}.`)),
    below: values.below || all,
    servers: servers.length > 0 ? servers : [{ host: 'localhost', port: ADMIN_PORT }],
    tokenFile,
    tokenOption: '--token-file',
    tls: secure ? { ca, cert, key } : null,
    cluster: inCluster
      ? {
          namespace: values.namespace ?? 'kube-system',
          selector: values.selector,
          port: values.port ?? ADMIN_PORT,
          access: values,
        }
      : null,
    timeoutMs: values.timeout ?? 5000,
    output: values.output ?? 'text',
  };
}
