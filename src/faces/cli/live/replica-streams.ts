/** Feeds all of a cluster's DNS pods into one model. Picks up new pods, and drops those that go away. */
import type { Clock, Timer } from '../../../server/base/clock.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import type { ClusterAccess } from '../../../tools/pods/cluster-access.ts';
import type { LiveInput } from '../../../tools/watch/live-input.ts';
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import { accessOf, clusterClient } from '../cluster-options.ts';
import type { Io } from '../command.ts';
import type { RunningDnsPod } from '../dns-pods.ts';
import { podStream } from './pod-stream.ts';
import {
  listReplicas,
  REPLICAS,
  type ListedReplicas,
  type ReplicaChoice,
} from './replica-choice.ts';
import { peerOf, ServerStream } from './server-stream.ts';
import type { StreamTurns } from './stream-turns.ts';

/** Delay between pod list requests, in milliseconds: `least`, or more in large clusters to spare the API server. */
const LIST_MS = { least: 10_000, perPod: 30 } as const;
const WAIT_MS = 10_000;

export interface ReplicaStreamsParts {
  readonly choice: ReplicaChoice;
  readonly token: () => string;
  /** Name server ports, for agents that send packets. */
  readonly ports: readonly number[];
  readonly model: LiveModel;
  readonly clock: Clock;
  readonly io: Pick<Io, 'env' | 'signal'>;
  readonly turns: StreamTurns;
}

interface Replica {
  readonly stream: ServerStream;
  readonly input: LiveInput;
}

export class ReplicaStreams {
  readonly #parts: ReplicaStreamsParts;
  readonly #access: ClusterAccess;
  readonly #client: ApiClient;
  /** Uses the name, node and address, so that a recreated pod counts as new. */
  readonly #replicas = new Map<string, Replica>();
  #timer: Timer | null = null;
  /** Pods in the last list, including those that are not followed. */
  #listed = 0;
  #leftOut = 0;
  /** Remarks about the last list. */
  #remarks: readonly string[] = [];
  #isStopped = false;

  private constructor(parts: ReplicaStreamsParts, access: ClusterAccess, client: ApiClient) {
    this.#parts = parts;
    this.#access = access;
    this.#client = client;
  }

  /** @throws Problem if no pods are found */
  static async start(parts: ReplicaStreamsParts): Promise<ReplicaStreams> {
    const { choice, io } = parts;
    const access = accessOf(choice.access, io);
    const client = clusterClient(access);
    try {
      const bounds = { waitMs: WAIT_MS, signal: io.signal };
      const list = await listReplicas(client, choice, access, bounds);
      if (list.none !== null) throw list.none;
      const streams = new ReplicaStreams(parts, access, client);
      streams.#follow(list);
      return streams;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Display name: `3 DNS pods of context prod`. */
  get name(): string {
    const { size } = this.#replicas;
    const beyond = this.#leftOut === 0 ? '' : ` of ${size + this.#leftOut}`;
    return `${size}${beyond} DNS ${size === 1 ? 'pod' : 'pods'} of ${this.#access.name}`;
  }

  /** Updates the loss counts of the inputs. */
  tick(): void {
    for (const { stream, input } of this.#replicas.values()) input.lostByKernel(stream.dropped());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.tick();
    for (const { stream, input } of this.#replicas.values()) {
      stream.stop();
      input.close();
    }
    this.#client.close();
  }

  /** If the list cannot be read, the known pods stay. Each stream reports when its own pod is unavailable. */
  async #refresh(): Promise<void> {
    const { choice, io, model } = this.#parts;
    const bounds = { waitMs: WAIT_MS, signal: io.signal };
    try {
      const list = await listReplicas(this.#client, choice, this.#access, bounds);
      if (!this.#isStopped) this.#follow(list);
    } catch (error) {
      if (this.#isStopped) return;
      const [problem] = problemsIn(error) ?? [];
      if (problem === undefined && !io.signal.aborted) throw error;
      if (problem !== undefined)
        model.unread = [
          `the pods cannot be listed, so changes are not followed: ${problem.message}`,
          ...this.#remarks,
        ];
      this.#refreshLater();
    }
  }

  #refreshLater(): void {
    const waitMs = Math.max(LIST_MS.least, this.#listed * LIST_MS.perPod);
    this.#timer = this.#parts.clock.after(waitMs, () => void this.#refresh());
  }

  #follow(list: ListedReplicas): void {
    const { choice, token, ports, model, clock, turns } = this.#parts;
    const pods = list.chosen.filter(({ address }) => address !== '');
    const keys = new Set(pods.map(keyOf));
    const otherKeys = new Set(list.others.map(keyOf));
    for (const [key, { stream, input }] of this.#replicas) {
      if (keys.has(key)) continue;
      stream.stop();
      model.drop(input, otherKeys.has(key) ? 'is no longer chosen' : 'is gone');
      this.#replicas.delete(key);
    }
    this.#leftOut = 0;
    for (const pod of pods) {
      const key = keyOf(pod);
      if (this.#replicas.has(key)) continue;
      if (this.#replicas.size >= choice.podsMax) {
        this.#leftOut++;
        continue;
      }
      const server = { host: pod.address, port: 53 };
      const node = pod.node === '' ? '' : ` on ${pod.node}`;
      const name = `pod ${choice.namespace}/${pod.name}${node}`;
      const input = model.open(name, { ports, server: peerOf(server) });
      const open = podStream(this.#client, choice, pod.name, token);
      this.#replicas.set(key, {
        input,
        stream: new ServerStream({
          server,
          open,
          input,
          clock,
          model,
          turn: turns.open(),
        }),
      });
    }
    this.#listed = list.chosen.length + list.others.length;
    this.#remarks = [list.none?.message ?? '', list.unmatched, this.#beyondLimit()].filter(
      (remark) => remark !== '',
    );
    model.unread = this.#remarks;
    this.#refreshLater();
  }

  #beyondLimit(): string {
    if (this.#leftOut === 0) return '';
    const { size } = this.#replicas;
    const raise =
      this.#parts.choice.podsMax < REPLICAS.max ? ', --replica-max raises the limit' : '';
    return `${size} of ${size + this.#leftOut} pods are followed: --replica-node and --replica-node-selector choose which${raise}`;
  }
}

function keyOf({ name, node, address }: RunningDnsPod): string {
  return `${name} ${node} ${address}`;
}
