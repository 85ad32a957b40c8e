/** Watches the cluster's checker pods, so that handling reports and timeouts requires no requests to the API server. */
import type { Clock } from '../../server/base/clock.ts';
import type { Log } from '../../server/base/log.ts';
import type { Random } from '../../server/base/random.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { Reflector } from '../../server/kube/api/reflector.ts';
import type { ReflectedStore } from '../../server/kube/store/reflected-store.ts';
import type { KuberhealthyVersion } from './check-object.ts';
import { readCheckerPod, RUN_LABEL, type CheckerPod } from './check-pod.ts';

export interface CheckerPodsParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The watched namespace, or `''` for all. */
  readonly namespace: string;
}

/** Limit on pods per version, because any client can create pods with these labels. */
const PODS_MAX = 20_000;

/** Follows pods that have a run label. */
export class CheckerPods {
  readonly #parts: CheckerPodsParts;
  readonly #stores: Readonly<Record<KuberhealthyVersion, PodStore>>;
  readonly #reflectors: Reflector<CheckerPod, never>[] = [];
  readonly #listed = new Set<KuberhealthyVersion>();

  constructor(parts: CheckerPodsParts) {
    this.#parts = parts;
    this.#stores = { 2: new PodStore(parts.clock), 3: new PodStore(parts.clock) };
  }

  follow(version: KuberhealthyVersion): void {
    const { namespace } = this.#parts;
    const path = namespace === '' ? '/api/v1/pods' : `/api/v1/namespaces/${namespace}/pods`;
    const reflector = new Reflector<CheckerPod, never>({
      ...this.#parts,
      resource: {
        labelSelector: RUN_LABEL[version],
        forms: [
          {
            name: 'pods',
            path,
            transform: (raw) => [readCheckerPod(raw, version)].filter((pod) => pod !== null),
          },
        ],
      },
      store: this.#stores[version],
      listed: () => void this.#listed.add(version),
    });
    this.#reflectors.push(reflector);
    reflector.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
  }

  isListed(version: KuberhealthyVersion): boolean {
    return this.#listed.has(version);
  }

  ofVersion(version: KuberhealthyVersion): Iterable<CheckerPod> {
    return this.#stores[version].pods();
  }

  ofRun(version: KuberhealthyVersion, run: string): CheckerPod | null {
    const [pod = null] = this.allOfRun(version, run);
    return pod;
  }

  /** Pods with a run's label. Anyone who can create pods may have added some of them. */
  allOfRun(version: KuberhealthyVersion, run: string): Iterable<CheckerPod> {
    return this.#stores[version].ofRun(run);
  }

  /**
   * A pod's age in milliseconds. Measured on this process's clock from when it first saw the pod, so that clock changes
   * cannot age it.
   * @returns 0 for an unknown pod
   */
  ageOf(pod: CheckerPod): number {
    return this.#stores[pod.version].ageOf(pod);
  }

  /** The run of the only running version 2 pod with this address, or `''` if there is not exactly one. */
  runAt(address: string): string {
    return this.#stores[2].runAt(address);
  }

  /** The number of known pods, and of those beyond the limit. */
  get numbers(): { readonly pods: number; readonly leftOut: number } {
    const { 2: two, 3: three } = this.#stores;
    return { pods: two.size + three.size, leftOut: two.leftOut + three.leftOut };
  }
}

class PodStore implements ReflectedStore<CheckerPod, never> {
  readonly #clock: Clock;
  readonly #pods = new Map<string, CheckerPod>();
  readonly #byRun = new Map<string, Set<CheckerPod>>();
  readonly #byAddress = new Map<string, Set<CheckerPod>>();
  /** Creation times, by this process's clock. */
  readonly #made = new Map<string, number>();
  #unlisted: Set<string> | null = null;
  leftOut = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#pods.size;
  }

  /** Approximate memory of the stored pods. */
  get bytes(): number {
    return this.#pods.size * 500;
  }

  put(namespace: string, name: string, [pod]: readonly CheckerPod[]): void {
    const key = keyOf(namespace, name);
    this.#unlisted?.delete(key);
    const before = this.#pods.get(key);
    const made = before?.run === pod?.run ? this.#made.get(key) : undefined;
    this.#forget(key);
    if (pod === undefined) return;
    if (this.#pods.size >= PODS_MAX) {
      this.leftOut++;
      return;
    }
    this.#pods.set(key, pod);
    // Listed pods have a creation time, while those that appear later were only just created.
    const agoMs = this.#unlisted === null ? 0 : Math.max(0, this.#clock.wall() - pod.madeAt);
    this.#made.set(key, made ?? this.#clock.now() - agoMs);
    addTo(this.#byRun, pod.run, pod);
    for (const address of pod.addresses) addTo(this.#byAddress, address, pod);
  }

  remove(namespace: string, name: string): void {
    this.#forget(keyOf(namespace, name));
  }

  beginList(): void {
    this.#unlisted = new Set(this.#pods.keys());
    this.leftOut = 0;
  }

  endList(): void {
    for (const key of this.#unlisted ?? []) this.#forget(key);
    this.#unlisted = null;
  }

  pods(): Iterable<CheckerPod> {
    return this.#pods.values();
  }

  ageOf({ namespace, name }: CheckerPod): number {
    const made = this.#made.get(keyOf(namespace, name));
    return made === undefined ? 0 : this.#clock.now() - made;
  }

  ofRun(run: string): Iterable<CheckerPod> {
    return this.#byRun.get(run) ?? [];
  }

  runAt(address: string): string {
    const [pod, ...others] = this.#byAddress.get(address) ?? [];
    return pod === undefined || others.length > 0 ? '' : pod.run;
  }

  #forget(key: string): void {
    const pod = this.#pods.get(key);
    if (pod === undefined) return;
    this.#pods.delete(key);
    this.#made.delete(key);
    removeFrom(this.#byRun, pod.run, pod);
    for (const address of pod.addresses) removeFrom(this.#byAddress, address, pod);
  }
}

function addTo(map: Map<string, Set<CheckerPod>>, key: string, pod: CheckerPod): void {
  const there = map.get(key);
  if (there === undefined) map.set(key, new Set([pod]));
  else there.add(pod);
}

function removeFrom(map: Map<string, Set<CheckerPod>>, key: string, pod: CheckerPod): void {
  const there = map.get(key);
  there?.delete(pod);
  if (there?.size === 0) map.delete(key);
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
