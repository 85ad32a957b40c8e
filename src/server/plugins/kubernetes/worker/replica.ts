/** A worker's end of the data set. */
import type { Replica } from '../../../engine/contract/data-set.ts';
import { Cluster } from './cluster.ts';
import type { ClusterFact, TriggerTimes } from '../contract/cluster-facts.ts';

export class ClusterReplica implements Replica<ClusterFact, TriggerTimes> {
  /** The data to answer from, which is always the same object. */
  readonly cluster: Cluster = new Cluster();
  /** The cluster built from a snapshot that is not complete yet, or null. */
  #next: Cluster | null = null;

  begin(): void {
    this.#next = new Cluster();
  }

  apply(facts: readonly ClusterFact[]): TriggerTimes {
    const cluster = this.#next ?? this.cluster;
    const times: Record<'cluster' | 'headless', number[]> = { cluster: [], headless: [] };
    for (const fact of facts) {
      cluster.apply(fact);
      if (fact.kind !== 'EndpointSlice' || !fact.triggeredAt) continue;
      const form = cluster.serviceNamed(fact.namespace, fact.service)?.form;
      if (form === 'cluster' || form === 'headless') times[form].push(fact.triggeredAt);
    }
    return times.cluster.length + times.headless.length > 0 ? times : undefined;
  }

  complete(): void {
    if (this.#next !== null) this.cluster.replaceBy(this.#next);
    this.#next = null;
  }
}
