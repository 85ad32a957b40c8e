/** Publishes a source's records to workers. */
import type { Clock } from '../../../base/clock.ts';
import type { GoneRecord } from '../../../kube/store/object-record.ts';
import type { Source } from '../../../kube/store/object-source.ts';
import { programmingBuckets } from '../../../metrics/buckets.ts';
import type { Histogram, Registry } from '../../../metrics/registry.ts';
import type { KeptAcrossReloads } from '../../../engine/contract/control-context.ts';
import type { DataSet, OpenDataSet } from '../../../engine/contract/data-set.ts';
import type { ClusterFact, TriggerTimes } from '../contract/cluster-facts.ts';
import { PodTable } from './pod-table.ts';
import type { ClusterRecord } from './cluster-records.ts';

export interface PublisherParts {
  readonly source: Source<ClusterRecord>;
  readonly open: OpenDataSet;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** True if workers need the names and labels of client pods (for `metadata`). */
  readonly clientNames: boolean;
}

/** Facts that do not change the zone's content. */
const SERIALLESS: ReadonlySet<string> = new Set(['Namespace', 'Node', 'Time']);

/** Size in bytes of a fact in transit, excluding any endpoints. */
const FACT_BYTES = 64;

/**
 * The control thread's end of the replication to workers. It publishes a source's records, and what pods
 * mean for their addresses. It survives reloads that do not change the source.
 */
export class ClusterPublisher implements KeptAcrossReloads {
  readonly #parts: PublisherParts;
  readonly #pods: PodTable;
  readonly #facts: DataSet<ClusterFact>;
  #started = false;
  #listed = false;
  #synced = false;
  /** Time of the most recently published facts, in Unix seconds. */
  #at = 0;
  #serial = 0;
  #importedSerial = 0;
  #waiting: (() => void)[] = [];
  readonly #cluster: Histogram;
  readonly #headless: Histogram;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
    this.#pods = new PodTable(parts.clientNames);
    const latency = parts.metrics.histogram(
      'coredns_kubernetes_dns_programming_duration_seconds',
      'Histogram of the time (in seconds) it took to program a dns instance.',
      ['service_kind'],
      programmingBuckets,
    );
    this.#cluster = latency.with('cluster_ip');
    this.#headless = latency.with('headless_with_selector');
    this.#facts = parts.open<ClusterFact, TriggerTimes>({
      snapshot: () => this.#snapshot(),
      size: (fact) => FACT_BYTES + (fact.kind === 'EndpointSlice' ? fact.endpoints.length : 0),
      applied: (times) => this.#observe(times),
    });
  }

  get synced(): boolean {
    return this.#synced;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#parts.source.start({
      changes: (batch) => this.#publish(batch),
      synced: () => this.#check(),
      away: () => this.#settle(),
    });
    this.#check();
  }

  /**
   * Calls `run` once the workers have the complete first list, which may be immediately. It is also called if the
   * source is unavailable, or when this is closed.
   */
  whenSettled(run: () => void): void {
    if (this.#synced) run();
    else this.#waiting.push(run);
  }

  async close(): Promise<void> {
    this.#settle();
    this.#facts.close();
    await this.#parts.source.stop();
  }

  #publish(batch: readonly (ClusterRecord | GoneRecord)[]): void {
    const facts: ClusterFact[] = [];
    const at = Math.floor(this.#parts.clock.wall() / 1000);
    if (at !== this.#at) facts.push({ kind: 'Time', at });
    this.#at = at;
    for (const change of batch) facts.push(...this.#factsOf(change));
    for (const fact of facts) {
      const kind = fact.kind === 'Gone' ? fact.of : fact.kind;
      if (kind === 'ServiceImport' || (fact.kind === 'EndpointSlice' && fact.imported !== ''))
        this.#importedSerial = at;
      else if (!SERIALLESS.has(kind)) this.#serial = at;
    }
    this.#facts.publish(facts);
  }

  #factsOf(change: ClusterRecord | GoneRecord): readonly ClusterFact[] {
    if (change.kind === 'Pod') return this.#pods.put(change);
    if (change.kind === 'Gone')
      return change.of === 'Pod' ? this.#pods.remove(change.namespace, change.name) : [change];
    // The first list is not a change.
    return [this.#listed || !change.triggeredAt ? change : { ...change, triggeredAt: 0 }];
  }

  /** Records how long it took from a change until every worker answers with it. */
  #observe(times: TriggerTimes): void {
    if (times === undefined) return;
    const now = this.#parts.clock.wall();
    for (const time of times.cluster) this.#cluster.observe(Math.max(0, now - time) / 1000);
    for (const time of times.headless) this.#headless.observe(Math.max(0, now - time) / 1000);
  }

  /**
   * Notifies workers that the first listing is complete and, once they have acknowledged it, everyone who waits for it.
   */
  #check(): void {
    if (this.#listed || !this.#parts.source.synced) return;
    this.#listed = true;
    this.#facts.publish([{ kind: 'Listed' }]);
    this.#facts.whenApplied(() => {
      this.#synced = true;
      this.#settle();
    });
  }

  #settle(): void {
    for (const run of this.#waiting.splice(0)) run();
  }

  *#snapshot(): Generator<ClusterFact> {
    yield { kind: 'Time', at: this.#at };
    if (this.#started) {
      for (const record of this.#parts.source.snapshot()) if (record.kind !== 'Pod') yield record;
      yield* this.#pods.facts();
    }
    yield { kind: 'Serials', own: this.#serial, imported: this.#importedSerial };
    if (this.#listed) yield { kind: 'Listed' };
  }
}
