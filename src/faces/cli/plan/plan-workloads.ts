/** Groups clients by workload and computes how much each could save. */
import { problemsIn } from '../../../server/base/problem.ts';
import type { AddressOwner } from '../../../tools/pods/address-owners.ts';
import type { PodSource } from '../../../tools/pods/pod-source.ts';
import { parseResourceName } from '../../../tools/pods/resource-name.ts';
import type { Settings } from '../../../tools/resolver/client.ts';
import { labelOf } from '../../../tools/resolver/clients.ts';
import { podResolvConf, type DnsConfig } from '../../../tools/resolver/dns-policy.ts';
import {
  bestNdots,
  planNdots,
  type AskedName,
  type ClientPlan,
} from '../../../tools/resolver/ndots-plan.ts';
import { NameFacts } from './plan-facts.ts';
import { spelledName } from '../../../tools/capture/pair/spelled-name.ts';
import type { SeenNames, SeenWalk } from './plan-names.ts';
import type { PlanOptions } from './plan-options.ts';
import { imageSettings } from '../trace/image-settings.ts';
import { settingsBehind, usualDns } from '../trace/trace-pod.ts';
import { readText } from '../named-file.ts';

/** Clients that have the same settings, such as a workload's pods. */
export interface Workload {
  readonly namespace: string;
  /** `deploy/cart`, `pod/web-0`, or empty if it is unknown who owns the addresses. */
  readonly name: string;
  readonly clients: number;
  /** dnsConfig of the pods, or null if there is none. */
  readonly dnsConfig: DnsConfig | null;
}

export interface WorkloadPlan {
  readonly workload: Workload;
  readonly names: number;
  readonly lookups: number;
  /** Number of omitted names, which have fewer lookups. */
  readonly leftOut: number;
  readonly plans: readonly ClientPlan[];
  /** Names that may or may not be services. */
  readonly unknown: readonly string[];
  /** The proposed ndots, or null if no lower value is safe. */
  readonly best: number | null;
}

interface WorkloadGroup {
  readonly namespace: string;
  readonly name: string;
  readonly clients: Set<string>;
  readonly walks: SeenWalk[];
}

const HOSTS = '127.0.0.1 localhost\n';

/** Groups clients and plans for each group. */
export class WorkloadPlanning {
  readonly #options: PlanOptions;
  readonly #seen: SeenNames;
  readonly #source: PodSource | null;
  readonly #facts: NameFacts;
  readonly #note: (text: string) => void;

  constructor(
    options: PlanOptions,
    seen: SeenNames,
    source: PodSource | null,
    note: (text: string) => void,
  ) {
    this.#options = options;
    this.#seen = seen;
    this.#source = source;
    this.#facts = new NameFacts(seen, source, options.clusterDomain);
    this.#note = note;
  }

  async all(owners: ReadonlyMap<string, AddressOwner>): Promise<readonly WorkloadPlan[]> {
    const found: WorkloadPlan[] = [];
    for (const group of this.#groups(owners)) found.push(await this.#planFor(group));
    if (this.#seen.listed.size > 0) found.push(await this.#planForList());
    const queries = ({ plans }: WorkloadPlan): number => plans[0]?.choices[0]?.queries ?? 0;
    return found.toSorted((a, b) => queries(b) - queries(a));
  }

  #groups(owners: ReadonlyMap<string, AddressOwner>): Iterable<WorkloadGroup> {
    const groups = new Map<string, WorkloadGroup>();
    for (const [client, walks] of this.#seen.clients) {
      const owner = owners.get(client);
      const isPod = owner?.kind === 'pod';
      // Servers that forward send other clients' queries.
      if (owner !== undefined && !isPod) continue;
      const name = isPod ? owner.workload || `pod/${owner.name}` : '';
      const namespace = isPod ? owner.namespace : this.#namespaceOf(walks);
      const key = `${namespace} ${name}`;
      const group = groups.get(key) ?? { namespace, name, clients: new Set(), walks: [] };
      groups.set(key, group);
      group.clients.add(client);
      // Not a spread, because calls cannot have hundreds of thousands of arguments.
      for (const walk of walks) group.walks.push(walk);
    }
    return groups.values();
  }

  /** The namespace in which a client's names were mostly searched. */
  #namespaceOf(walks: readonly SeenWalk[]): string {
    if (this.#options.namespace !== null) return this.#options.namespace;
    const suffix = `.svc.${this.#options.clusterDomain}.`;
    const counts = new Map<string, number>();
    for (const { first, lookups } of walks) {
      if (!first.endsWith(suffix)) continue;
      const labels = first.slice(0, -suffix.length).split('.');
      const namespace = labels.length > 1 ? labels.at(-1)! : '';
      counts.set(namespace, (counts.get(namespace) ?? 0) + lookups);
    }
    const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
    return most?.[0] || 'default';
  }

  async #planFor({ namespace, name, clients, walks }: WorkloadGroup): Promise<WorkloadPlan> {
    const { text, own } = await this.#settingsOf(
      name === '' ? null : named(name, namespace),
      namespace,
      this.#nodeSearchOf(clients),
    );
    const settings = imageSettings(text, HOSTS);
    const conf = this.#options.clients[0]!.conf(settings);
    const names = new Map<string, { lookups: number; both: boolean }>();
    for (const walk of walks) {
      const spelled = spelledName(walk, conf);
      const known = names.get(spelled) ?? { lookups: 0, both: false };
      names.set(spelled, {
        lookups: known.lookups + walk.lookups,
        both: known.both || walk.both,
      });
    }
    const workload = { namespace, name, clients: clients.size, dnsConfig: own };
    return this.#planWith(workload, settings, names, false);
  }

  /** Search domains that clients appended after the cluster's own. They come from their nodes or their dnsConfig. */
  #nodeSearchOf(clients: ReadonlySet<string>): readonly string[] {
    const { clusterDomain } = this.#options;
    let longest: readonly string[] = [];
    for (const client of clients) {
      const walked = this.#seen.searches.get(client) ?? [];
      if (walked.length > longest.length) longest = walked;
    }
    return longest.filter(
      (domain) =>
        domain !== clusterDomain &&
        !domain.endsWith(`.${clusterDomain}`) &&
        !clusterDomain.endsWith(`.${domain}`),
    );
  }

  async #planForList(): Promise<WorkloadPlan> {
    const { from, namespace } = this.#options;
    const wanted = from === null ? null : parseResourceName(from);
    const where = wanted?.namespace ?? namespace ?? this.#source?.namespace ?? 'default';
    const name =
      wanted === null
        ? ''
        : `${wanted.of.shortNames[0] ?? wanted.of.kind.toLowerCase()}/${wanted.name}`;
    const { text, own } = await this.#settingsOf(
      wanted === null ? null : named(name, where),
      where,
    );
    const names = [...this.#seen.listed].map(
      ([each, lookups]) => [each, { lookups, both: true }] as const,
    );
    const workload = { namespace: where, name, clients: 0, dnsConfig: own };
    return this.#planWith(workload, imageSettings(text, HOSTS), new Map(names), true);
  }

  async #planWith(
    workload: Workload,
    settings: Settings,
    names: ReadonlyMap<string, { readonly lookups: number; readonly both: boolean }>,
    listed: boolean,
  ): Promise<WorkloadPlan> {
    const { clients, most } = this.#options;
    const { search } = clients[0]!.conf(settings);
    const sorted = [...names].toSorted(([, a], [, b]) => b.lookups - a.lookups);
    const asked: AskedName[] = [];
    for (const [name, { lookups, both }] of sorted.slice(0, most)) {
      const script = await this.#facts.scriptFor(name, search, listed);
      const assumed = this.#facts.isAssumed(name, listed);
      asked.push({ name, lookups, families: both ? [4, 6] : [4], script, assumed });
    }
    const plans: ClientPlan[] = [];
    for (const client of clients) {
      const isOne = clients.filter(({ name }) => name === client.name).length === 1;
      const plan = await planNdots(client, settings, asked);
      plans.push(isOne ? plan : { ...plan, client: labelOf(client) });
    }
    return {
      workload,
      names: asked.length,
      lookups: asked.reduce((sum, { lookups }) => sum + lookups, 0),
      leftOut: sorted.length - asked.length,
      plans,
      unknown: asked.filter(({ assumed }) => assumed).map(({ name }) => name),
      best: bestNdots(plans),
    };
  }

  /** resolv.conf in a workload's pods. If there are none, the one in a pod with default settings. */
  async #settingsOf(
    from: string | null,
    namespace: string,
    nodeSearch: readonly string[] = [],
  ): Promise<{ readonly text: string; readonly own: DnsConfig | null }> {
    const { resolvConf, clusterDns, clusterDomain } = this.#options;
    if (resolvConf !== null) return { text: readText(resolvConf, 'resolv.conf'), own: null };
    const nodeResolvConf = nodeSearch.length === 0 ? '' : `search ${nodeSearch.join(' ')}\n`;
    const kubelet = { clusterDns, clusterDomain, nodeResolvConf };
    if (from !== null && this.#source !== null) {
      try {
        const pod = await settingsBehind(this.#source, parseResourceName(from), kubelet);
        return { text: pod.text, own: pod.own.config };
      } catch (error) {
        const problems = problemsIn(error);
        if (problems === null || this.#options.from !== null) throw error;
        for (const problem of problems)
          this.#note(`${problem.message}: treated as a pod without DNS settings`);
      }
    }
    const pod = { namespace, policy: 'ClusterFirst', config: null, hostNetwork: false } as const;
    const { text } = podResolvConf(pod, { ...kubelet, clusterDns: clusterDns ?? [usualDns] });
    return { text, own: null };
  }
}

/** `deploy/cart` in its namespace: `deploy/shop/cart`. */
function named(name: string, namespace: string): string {
  return name.replace('/', `/${namespace}/`);
}
