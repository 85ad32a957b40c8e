/** Entry of a worker thread: a data plane behind the thread's message port. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { makeLog } from '../../base/log.ts';
import { settleMemory } from '../../base/settle-memory.ts';
import { stdoutLines } from '../../base/stdout.ts';
import { secureRandom } from '../../base/random.ts';
import { SharedRegistry } from '../../metrics/registry.ts';
import { stopPackets } from '../../linux/packet-loop.ts';
import { useSocketTable, type SocketTable } from '../../linux/socket-table.ts';
import { closeLeftSockets } from '../../linux/udp-socket.ts';
import { listenAt } from './listen.ts';
import { systemNetwork } from '../../net/system-network.ts';
import { DataPlane } from './data-plane.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { FromWorker, ToWorker } from '../contract/protocol.ts';

/** What a thread is started with. */
export interface WorkerStart {
  readonly id: number;
  /** Module that exports `loadPlugins`: the server itself knows none. */
  readonly pluginsModule: string;
  readonly transport: 'auto' | 'batched' | 'plain';
  /** Where this thread notes its sockets, and finds those of the thread whose place it takes. */
  readonly sockets: SocketTable;
}

const { id, pluginsModule, transport, sockets } = workerData as WorkerStart;
useSocketTable(sockets);
const port = parentPort!;
const send = (message: FromWorker): void => port.postMessage(message);

const lines = stdoutLines();
const log = makeLog(lines.write, () => plane.debugging);
const { loadPlugins } = (await import(pluginsModule)) as {
  loadPlugins(names: ReadonlySet<string>): Promise<readonly Plugin[]>;
};
const metrics = new SharedRegistry((registration) => send({ kind: 'register', registration }));
const plane: DataPlane = new DataPlane({
  plugins: loadPlugins,
  log,
  send,
  onServing() {
    closeLeftSockets();
    settleMemory();
  },
  onClosed: stopPackets,
  clock: systemClock,
  random: secureRandom,
  metrics,
  network: systemNetwork({ clock: systemClock, random: secureRandom, transport }),
  listen: (endpoint, serve) =>
    listenAt(endpoint, serve, { clock: systemClock, log, metrics, transport }),
});
// However this thread ends: whoever takes its place finds its sockets open, and nothing is told to JavaScript any more.
process.on('exit', stopPackets);
// A bug outside any query ends it, in order; the main thread starts another.
process.on('uncaughtException', (error) => {
  log.error(`worker ${id} ends because of a bug: ${error.stack ?? error.message}`);
  lines.flush();
  process.exit(1);
});
port.on('message', (message: ToWorker) => void plane.handle(message));
