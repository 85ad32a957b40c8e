/** The command line of `ndots plan`. */
import type { Client } from '../../../tools/resolver/client.ts';
import { clientLabels } from '../../../tools/resolver/clients.ts';
import { clientsNamed } from '../client-choice.ts';
import { clusterOptions, namesCluster, type ClusterOptions } from '../cluster-options.ts';
import { flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { addresses, choice, file, integer, namespaceName, text, usage } from '../option-values.ts';

export interface PlanOptions extends ClusterOptions {
  readonly files: readonly string[];
  readonly clients: readonly Client[];
  /** The workload that looked up the names, for files that do not say: `deploy/shop/cart`. */
  readonly from: string | null;
  readonly namespace: string | null;
  readonly resolvConf: string | null;
  readonly manifests: string | null;
  readonly cluster: boolean;
  readonly clusterDomain: string;
  readonly clusterDns: readonly string[] | null;
  /** Limit of names per workload, busiest first. */
  readonly most: number;
  /** `deploy/cart` plans only for this workload. Null plans for all. */
  readonly workload: string | null;
  readonly output: 'text' | 'json' | 'patch';
}

/** The resolvers of most pods. */
const usualClients = ['glibc', 'musl', 'go'];

const clientList: OptionValue<readonly Client[]> = {
  placeholder: 'NAME,…',
  offers: { list: true, words: [...clientLabels, 'all'] },
  read: (given) => clientsNamed(given.split(',')),
};

const table = {
  ...group('Pods', {
    manifests: one(
      '--manifests',
      file('DIR'),
      'directory with the pods, workloads and services (kubectl get … -A -o yaml)',
    ),
    cluster: flag('--cluster', 'read them from the current kubectl cluster'),
    ...clusterOptions,
    from: one('--from', text('TYPE/NAME'), 'workload that looks up the listed names'),
    workload: one('--workload', text('TYPE/NAME'), 'plan only for this workload'),
    namespace: one(
      '-n, --namespace',
      namespaceName,
      'namespace for --from, --workload, and unknown clients',
    ),
  }),
  ...group('Lookups', {
    clients: many(
      '-c, --client',
      clientList,
      `resolvers to plan for, or all (${usualClients.join(',')})`,
    ),
    resolvConf: one('--resolv-conf', file(), 'resolv.conf for all clients (default: kubelet’s)'),
    clusterDomain: one('--cluster-domain', text('NAME'), 'kubelet’s clusterDomain (cluster.local)'),
    clusterDns: one('--cluster-dns', addresses, 'clusterDNS of kubelet'),
    most: one(
      '--names',
      integer('N', 1, 10_000),
      'plan for the N busiest names of each workload (200)',
    ),
  }),
  ...group('Output', {
    output: one(
      '-o, --output',
      choice('FORMAT', ['text', 'json', 'patch']),
      'text, json, or patch (one workload’s patch for kubectl patch)',
    ),
  }),
};

export const planUsage: Usage = {
  synopsis: 'FILE…|-',
  examples: [
    ['node7.pcap --cluster', 'plan for the pods in a capture'],
    [
      'coredns.log --manifests dump/ --workload deploy/cart -o patch',
      'print the patch for one workload',
    ],
    ['names.txt --from deploy/cart --manifests dump/', 'plan for a list of names'],
    ['names.txt --resolv-conf resolv.conf -c musl', 'plan for one resolver'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Reads captures (pcap, pcapng), dnstap and query logs, optionally compressed, or lists with one line NAME [LOOKUPS] per name, as the program writes it.',
    'plan sends nothing. It computes lookups like ndots trace, with answers from the capture and the services.',
    'Exit codes: 0 nothing to save safely, 1 a lower ndots or a trailing dot saves queries, 2 could not be read, 3 usage error. More: docs/plan.md',
  ],
  words: { files: true },
};

/** @throws Problem (`usage`) */
export function parsePlanOptions(given: readonly string[]): PlanOptions {
  const { values, words } = parseOptions(table, given);
  if (words.length === 0)
    throw usage(
      'plan needs names',
      'Give a capture, a query log, a list of names, or - for standard input',
    );
  const cluster = values.cluster || namesCluster(values);
  if (cluster && values.manifests !== null)
    throw usage('--manifests cannot be combined with --cluster');
  if (values.from !== null && values.manifests === null && !cluster)
    throw usage('--from needs --manifests or --cluster');
  const clients = values.clients.flat();
  return {
    ...values,
    files: words,
    clients: clients.length > 0 ? clients : clientsNamed(usualClients),
    cluster,
    clusterDomain: (values.clusterDomain ?? 'cluster.local').replace(/\.$/, '').toLowerCase(),
    most: values.most ?? 200,
    output: values.output ?? 'text',
  };
}
