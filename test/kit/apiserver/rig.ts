/** A source that watches the fake API server. */
import { makeLog } from '../../../src/server/base/log.ts';
import { seededRandom } from '../../../src/server/base/random.ts';
import { VirtualClock } from '../../../src/server/base/virtual-clock.ts';
import {
  apiServerSource,
  type ApiServerParts,
} from '../../../src/server/kube/api/api-server-source.ts';
import { endpointConnection, type ApiConnection } from '../../../src/server/kube/api/connection.ts';
import type { GoneRecord } from '../../../src/server/kube/store/object-record.ts';
import type { KubeObject, ObjectKind } from '../../../src/server/kube/store/objects.ts';
import type {
  Source,
  SourceEvents,
  WantedObjects,
} from '../../../src/server/kube/store/object-source.ts';
import {
  namespaceOf,
  wholeChange,
  wholeRecords,
  type ObjectChange,
  type WholeRecord,
} from '../whole-records.ts';
import { ApiServer, type ApiServerOptions } from './server.ts';

/** The objects that most tests need, without the rare ones. */
export const everything: WantedObjects = {
  endpoints: true,
  pods: true,
  multicluster: false,
  labels: '',
  namespaceLabels: '',
  zones: false,
};

/** Records a source's events and the resulting state. */
export class Listener implements SourceEvents<WholeRecord> {
  readonly batches: (readonly ObjectChange[])[] = [];
  readonly syncedKinds: ObjectKind[] = [];
  /** Called when the source reports the server as unreachable. */
  away: () => void = () => {
    this.timesAway++;
  };
  timesAway = 0;
  /** Maps `Kind namespace/name` to the object as it is after all changes so far. */
  readonly state: Map<string, KubeObject> = new Map<string, KubeObject>();

  get all(): ObjectChange[] {
    return this.batches.flat();
  }

  changes(records: readonly (WholeRecord | GoneRecord)[]): void {
    const batch = records.map(wholeChange);
    this.batches.push(batch);
    for (const change of batch) {
      if (change.verb === 'put') this.state.set(keyOf(change.object), change.object);
      else this.state.delete(`${change.kind} ${change.namespace}/${change.name}`);
    }
  }

  synced(kind: ObjectKind): void {
    this.syncedKinds.push(kind);
  }

  names(kind: ObjectKind): string[] {
    return [...this.state.values()]
      .filter((object) => object.kind === kind)
      .map((object) => object.name)
      .sort();
  }

  forget(): void {
    this.batches.length = 0;
  }
}

function keyOf(object: KubeObject): string {
  return `${object.kind} ${namespaceOf(object)}/${object.name}`;
}

/** A fake server and a source that watches it. Both use the same virtual clock. */
export interface Rig {
  readonly server: ApiServer;
  readonly clock: VirtualClock;
  readonly source: Source<WholeRecord>;
  readonly heard: Listener;
  readonly lines: string[];
  start(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Deviations from a correct server, and from a source that wants everything. */
export interface RigOptions {
  readonly server?: Omit<ApiServerOptions, 'clock'>;
  readonly wanted?: Partial<WantedObjects>;
  readonly source?: Partial<ApiServerParts<WholeRecord>>;
  readonly connection?: (server: ApiServer, clock: VirtualClock) => ApiConnection;
  readonly debugging?: boolean;
}

/** Starts the server and the source that watches it, in virtual time. */
export async function makeRig(options: RigOptions = {}): Promise<Rig> {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ ...options.server, clock });
  const lines: string[] = [];
  const source = apiServerSource({
    connection: options.connection?.(server, clock) ?? endpointConnection(server.url),
    wanted: { ...everything, ...options.wanted },
    reduction: wholeRecords,
    clock,
    random: seededRandom(7),
    log: makeLog(
      (line) => lines.push(line),
      () => options.debugging ?? false,
    ),
    version: '1.2.3',
    ...options.source,
  });
  const heard = new Listener();
  return {
    server,
    clock,
    source,
    heard,
    lines,
    start: () => source.start(heard),
    async [Symbol.asyncDispose]() {
      await source.stop();
      await server.stop();
    },
  };
}

/** Waits for real I/O on loopback until the condition is met, without advancing virtual time. */
export async function until(holds: () => boolean, what: string = String(holds)): Promise<void> {
  const end = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`still waiting until ${what}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
  }
}

/** Advances virtual time in small steps until the condition is met, for at most `limitMs`. */
export async function elapse(
  clock: VirtualClock,
  limitMs: number,
  holds: () => boolean,
): Promise<void> {
  const step = Math.max(10, limitMs / 200);
  for (let passed = 0; passed < limitMs && !holds(); passed += step) {
    await clock.advance(step);
    await quiet();
  }
  await until(holds);
}

/** Waits until pending loopback traffic has arrived. */
export async function quiet(turns = 4): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
  }
}
