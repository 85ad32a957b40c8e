/** Entry point of a worker thread: a data plane behind the thread's message port. */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { useHashKey, type HashKey } from '../../base/hash.ts';
import { bugText, jsonLines, makeLog } from '../../base/log.ts';
import { collectGrown, MemoryPolicy } from '../../runtime/memory-policy.ts';
import { LineWriter, type LineRingMemory } from '../../base/line-ring.ts';
import { secureRandom } from '../../base/random.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { runOn, type Processors } from '../../runtime/scheduling.ts';
import { batchedUdp, stopPackets } from '../../runtime/packet-loop.ts';
import { unmapUnusedCode } from '../../runtime/program-pages.ts';
import { useNotes, type HeldByThread } from '../../runtime/held-by-thread.ts';
import { useGate, type TerminationGate } from '../../runtime/termination-gate.ts';
import { TerminationWatch, type Termination } from '../../runtime/termination.ts';
import { giveBackOrphans } from '../../runtime/udp-socket.ts';
import { listenAt, termsOf } from './listen.ts';
import { systemNetwork } from '../../transport/system-network.ts';
import { DataPlane } from './data-plane.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { EndThread, FromWorker, ToWorker } from '../contract/protocol.ts';
import { beat, showBuilding, showLoaded, type Pulse } from '../contract/pulse.ts';

/** The first message to a thread. */
export interface WorkerStart {
  readonly id: number;
  /** The module that exports `loadPlugins`, because the server itself knows no plugins. */
  readonly pluginsModule: string;
  readonly transport: 'auto' | 'batched' | 'plain';
  /** Maximum number of UDP sockets for upstreams on this thread. Infinity means no limit. */
  readonly sourcePorts: number;
  /** Records this thread's sockets, and lists those of the thread that it replaces. */
  readonly held: HeldByThread;
  /** Shows when this thread must not be terminated. */
  readonly gate: TerminationGate;
  /** The destination of this thread's log lines. */
  readonly ring: LineRingMemory;
  /** Absent: text. */
  readonly logFormat?: 'text' | 'json';
  /** Shows that this thread's event loop is running. */
  readonly pulse: Pulse;
  /** The secret from which all the process's threads derive their TLS session ticket keys. */
  readonly ticketSecret: Uint8Array;
  /** The key for all hash tables. It is the same everywhere, because threads share some tables. */
  readonly hashKey: HashKey;
  /** True if saving memory is worth an occasional pause of about 15 ms. */
  readonly thrifty?: boolean;
  /** Number of bytes that the process may use, or undefined if no limit is known. */
  readonly memory?: number;
  /** This thread's CPUs, regardless of its parent's. If undefined, they are the same. */
  readonly processors?: Processors;
  /** Ends the process if the main thread hangs. */
  readonly termination?: Termination;
}

const start = (await told(workerData as MessagePort)) ?? process.exit(0);
const { id, pluginsModule, transport, sourcePorts, held, ring, pulse, termination } = start;
const { gate, thrifty = false, memory = Infinity, ticketSecret, processors } = start;
useGate(gate);
useHashKey(start.hashKey);
useNotes(held);
if (processors !== undefined) runOn(processors);
let mayEnd: TerminationWatch | null = null;
beat(pulse, systemClock, () => mayEnd?.look());
const port = parentPort!;
const send = (message: FromWorker): void => port.postMessage(message);

const lines = new LineWriter(ring);
const log = makeLog(
  (line) => lines.write(line),
  () => plane.debugging,
  start.logFormat === 'json' ? jsonLines(systemClock) : null,
);
const { loadPlugins } = (await import(pluginsModule)) as {
  loadPlugins(names: ReadonlySet<string>): Promise<readonly Plugin[]>;
};
const memoryPolicy = new MemoryPolicy({ clock: systemClock, limit: memory, thrifty });
const metrics = new SharedRegistry((registration) => send({ kind: 'register', registration }));
const plane: DataPlane = new DataPlane({
  plugins: loadPlugins,
  log,
  send,
  onServing() {
    giveBackOrphans();
    memoryPolicy.begin(() => {
      // One thread does this for the whole process, whose code is mapped only once.
      if (id === 0) unmapUnusedCode();
    });
  },
  onDropped: () => collectGrown(memoryPolicy.droppedMax),
  onClosed: stopPackets,
  crash(error) {
    setImmediate(() => {
      throw error;
    });
  },
  clock: systemClock,
  random: secureRandom,
  metrics,
  network: systemNetwork({
    clock: systemClock,
    random: secureRandom,
    transport,
    sourcePorts,
    onFewPorts: () =>
      log.warning(
        `this worker may open only ${sourcePorts} UDP sockets to upstreams (RLIMIT_NOFILE), fewer than their source_ports, ` +
          'so source ports are easier to guess; raise the limit ("ulimit -n", LimitNOFILE=)',
      ),
  }),
  listen: (endpoint, serve, counters, files) =>
    listenAt(endpoint, serve, {
      clock: systemClock,
      log,
      counters,
      transport,
      ticketSecret,
      files,
      isShort: () => memoryPolicy.short,
    }),
  terms: (endpoint, files) => termsOf(endpoint, ticketSecret, files),
});
// However this thread ends, there are no more callbacks into JavaScript, and the replacement finds the sockets open.
process.on('exit', stopPackets);
// A bug outside any query ends the worker in an orderly way, and the main thread starts another.
process.on('uncaughtException', (error) => {
  log.error(`worker ${id} ends because of a bug: ${bugText(error)}`);
  process.exit(1);
});
if (termination !== undefined && batchedUdp().available) mayEnd = new TerminationWatch(termination);
showLoaded(pulse);
port.on('message', (message: ToWorker | EndThread) => {
  if (message.kind === 'end') process.exit(0);
  const builds = message.kind === 'prepare';
  if (builds) showBuilding(pulse, true);
  void plane.handle(message).finally(() => {
    if (builds) showBuilding(pulse, false);
  });
});

/** Waits for the only message on a port. Null means that there is nothing to do. */
function told(from: MessagePort): Promise<WorkerStart | null> {
  return new Promise((resolve) => {
    from.once('message', (message: WorkerStart | null) => {
      resolve(message);
      from.close();
    });
  });
}
