/** The command line of `ndots plan`. */
import type { Client } from '../../../tools/resolver/client.ts';
import { clientLabels } from '../../../tools/resolver/clients.ts';
import { clientsNamed } from '../client-choice.ts';
import {
  clusterGiven,
  clusterOptions,
  namesCluster,
  type ClusterOptions,
} from '../cluster-options.ts';
import { flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { addresses, choice, file, integer, namespaceName, text, usage } from '../option-values.ts';

/** What a command line of `ndots plan` says. */
export interface PlanOptions extends ClusterOptions {
  readonly files: readonly string[];
  readonly clients: readonly Client[];
  /** The workload that the names belong to, for files that do not say: `deploy/shop/cart`. */
  readonly from: string | null;
  readonly namespace: string | null;
  readonly resolvConf: string | null;
  readonly manifests: string | null;
  readonly cluster: boolean;
  readonly clusterDomain: string;
  readonly clusterDns: readonly string[] | null;
  /** Names of one workload, those that are asked for most. */
  readonly most: number;
  /** `deploy/cart`: plan for this one alone; null: for all. */
  readonly workload: string | null;
  readonly output: 'text' | 'json' | 'patch';
}

/** What most pods run. */
const usualClients = ['glibc', 'musl', 'go'];

const clientList: OptionValue<readonly Client[]> = {
  placeholder: 'NAME,…',
  offers: { list: true, words: [...clientLabels, 'all'] },
  read: (given) => clientsNamed(given.split(',')),
};

const table = {
  ...group('Whose names', {
    manifests: one(
      '--manifests',
      file('DIR'),
      'pods, what makes them, and services: what kubectl get … -A -o yaml has printed',
    ),
    cluster: flag('--cluster', 'ask the cluster that kubectl would ask'),
    ...clusterOptions,
    from: one('--from', text('TYPE/NAME'), 'the names of a list are those of this workload’s pods'),
    workload: one('--workload', text('TYPE/NAME'), 'plan for this one alone, as the plan names it'),
    namespace: one(
      '-n, --namespace',
      namespaceName,
      'of --from and --workload, and of clients nobody knows',
    ),
  }),
  ...group('How they are looked up', {
    clients: many(
      '-c, --client',
      clientList,
      `resolvers that pods may have, or all (${usualClients.join(',')})`,
    ),
    resolvConf: one(
      '--resolv-conf',
      file(),
      'of all clients, in place of what kubelet would write',
    ),
    clusterDomain: one('--cluster-domain', text('NAME'), 'kubelet’s clusterDomain (cluster.local)'),
    clusterDns: one('--cluster-dns', addresses, 'kubelet’s clusterDNS'),
    most: one('--names', integer('N', 1, 10_000), 'of each workload, the most asked for (200)'),
  }),
  ...group('Output', {
    output: one(
      '-o, --output',
      choice('FORMAT', ['text', 'json', 'patch']),
      'text, json, or patch: the strategic merge patch of one workload, for kubectl patch',
    ),
  }),
};

/** The help of `ndots plan`. */
export const planUsage: Usage = {
  synopsis: 'FILE…|-',
  examples: [
    ['node7.pcap --cluster', 'for the pods of a cluster'],
    [
      'coredns.log --manifests dump/ --workload deploy/cart -o patch',
      'the patch of one, for kubectl patch --patch-file',
    ],
    ['names.txt --from deploy/cart --manifests dump/', 'for a list of names'],
    ['names.txt --resolv-conf resolv.conf -c musl', 'for one resolver'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Files: captures (pcap, pcapng), dnstap, query logs; compressed, too; or lists with a line NAME [LOOKUPS] for each name as programs spell it.',
    'Nothing is sent: lookups are planned as ndots trace plans them, with what the capture and the services say of each name.',
    'Exit codes: 0 nothing to save without breaking a name, 1 something, 2 could not be read, 3 wrong usage. More: docs/plan.md',
  ],
  words: { files: true },
};

/** Throws a `Problem` with the code `usage`. */
export function parsePlanOptions(given: readonly string[]): PlanOptions {
  const { values, words } = parseOptions(table, given);
  if (words.length === 0) throw usage('which names?', 'A capture, a query log, a list, or -');
  const cluster = values.cluster || namesCluster(values);
  if (cluster && values.manifests !== null) throw usage('--manifests or the cluster, not both');
  if (values.from !== null && values.manifests === null && !cluster)
    throw usage('--from needs --manifests or --cluster');
  const clients = values.clients.flat();
  return {
    files: words,
    clients: clients.length > 0 ? clients : clientsNamed(usualClients),
    from: values.from,
    namespace: values.namespace,
    resolvConf: values.resolvConf,
    manifests: values.manifests,
    cluster,
    ...clusterGiven(values),
    clusterDomain: (values.clusterDomain ?? 'cluster.local').replace(/\.$/, '').toLowerCase(),
    clusterDns: values.clusterDns,
    workload: values.workload,
    most: values.most ?? 200,
    output: values.output ?? 'text',
  };
}
