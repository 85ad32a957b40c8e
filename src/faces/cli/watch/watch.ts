/** `ndots watch serve`: streams a node's DNS packets to `ndots top` and `ndots console`. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { every, systemClock } from '../../../server/base/clock.ts';
import { count } from '../../../server/base/counted.ts';
import { secretGate, type AccessGate } from '../../../server/base/http-access.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { makeLog, type Log } from '../../../server/base/log.ts';
import { readSecret, readSecretOrLog } from '../../../server/base/secret-file.ts';
import { ownVersion } from '../../../server/engine/contract/own-version.ts';
import { interfaceSides, type InterfaceSide } from '../../../server/runtime/interface-sides.ts';
import { MemoryPolicy } from '../../../server/runtime/memory-policy.ts';
import { inNetworkNamespace } from '../../../server/runtime/network-namespace.ts';
import type { TakePacket } from '../../../server/runtime/packet-socket.ts';
import { AgentServer } from '../../../tools/watch/agent-server.ts';
import { NodeClients } from '../../../tools/watch/node-clients.ts';
import { PacketStream, type OpenCapture } from '../../../tools/watch/packet-stream.ts';
import { openPackets, packetPlace, unlessGone } from '../capture/capture-live.ts';
import { delegatedAccess } from '../delegated-access.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { listening } from '../serve/listening.ts';
import { unencryptedWarning } from '../unencrypted.ts';
import { untilAborted, untilSignal } from '../until-signal.ts';
import { parseWatchOptions, type WatchOptions } from './watch-options.ts';

const TOKEN_BYTES = 24;
/** Interval between searches for new interfaces. Each new pod adds one. */
const SIDES_MS = 10_000;

export const watch: Command = {
  name: 'watch',
  async run(words, io) {
    return serveAgent(parseWatchOptions(words), io);
  },
};

async function serveAgent(options: WatchOptions, io: Io): Promise<number> {
  const ended = untilSignal('log');
  const log = makeLog((line) => io.out(`${line}\n`));
  const { host, port } = options.listen;
  const { gate, made } = gateOf(options, io, log);
  const identity = options.identity ?? (io.env['NODE_NAME'] || hostname());
  // Fails right away if capturing is not possible, not only when the first reader connects.
  const tried = openPackets(options, () => undefined);
  tried.stop();
  const stream = new PacketStream({
    clock: systemClock,
    version: ownVersion(),
    open: (take) => openCapture(options, take),
  });
  const server = new AgentServer(stream, { gate, identity });
  const place = { host, port, option: '--listen' };
  const bound = await listening(place, () => server.listen(host, port));
  const at = printHostPort(host, bound);
  log.info(`${tried.name}: packets for readers on ${at}`);
  if (made !== null) log.info(`ndots top --server ${at}, with the token ${made}`);
  const warning = unencryptedWarning('packets', host, bound);
  if (warning !== null) log.warning(warning);
  new MemoryPolicy({ clock: systemClock, thrifty: true }).begin();
  await untilAborted(ended);
  await server.close();
  log.info(
    `${count(stream.packets, 'packet', 'packets')} for readers, ${stream.dropped + stream.missed} lost`,
  );
  return EXIT.ok;
}

/** Returns the gate for readers, and the token if one was generated. */
function gateOf(
  { tokenFile, decidedBy }: WatchOptions,
  io: Io,
  log: Log,
): { readonly gate: AccessGate; readonly made: string | null } {
  if (decidedBy !== null) return { gate: delegatedAccess(decidedBy, io, log), made: null };
  if (tokenFile === null) {
    const made = randomBytes(TOKEN_BYTES).toString('base64url');
    return { gate: secretGate(() => made), made };
  }
  readSecret(tokenFile);
  return { gate: secretGate(() => readSecretOrLog(tokenFile, log)), made: null };
}

function openCapture(options: WatchOptions, take: TakePacket): OpenCapture {
  const place = packetPlace(options);
  const isGone = (): boolean => packetPlace(options) !== place;
  if (options.allClients) return { ...openPackets(options, take), isGone };
  const clients = new NodeClients(options.ports, new Map());
  const capture = openPackets(options, (bytes, start, end, timeMs, port, isOutgoing) => {
    if (clients.isOwn(bytes, start, end, timeMs, port, isOutgoing))
      take(bytes, start, end, timeMs, port, isOutgoing);
  });
  const renew = (): void => {
    // Without the namespace, the last known sides stay until the readers are disconnected.
    clients.sides = unlessGone(() => sidesIn(options.netns)) ?? clients.sides;
  };
  renew();
  const renewed = every(systemClock, SIDES_MS, renew);
  return {
    dropped: () => capture.dropped(),
    isGone,
    stop() {
      renewed.cancel();
      capture.stop();
    },
  };
}

function sidesIn(netns: string | null): ReadonlyMap<number, InterfaceSide> {
  return netns === null ? interfaceSides() : inNetworkNamespace(netns, interfaceSides);
}
