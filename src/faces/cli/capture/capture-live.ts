/** Captures live traffic: packets from an interface, or dnstap from other programs. */
import { existsSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { createServer, type Socket } from 'node:net';
import { errorCode } from '../../../server/base/error-code.ts';
import { boundSenders } from '../../../server/base/idle-connections.ts';
import { parseAddress } from '../../../server/base/ip.ts';
import { Problem, problemsIn } from '../../../server/base/problem.ts';
import type { Reading } from '../../../tools/capture/read/reading.ts';
import { DnstapReader } from '../../../tools/capture/read/records/dnstap-messages.ts';
import { libc, LibcMissing } from '../../../server/runtime/libc.ts';
import { inNetworkNamespace } from '../../../server/runtime/network-namespace.ts';
import { PacketSocket, type TakePacket } from '../../../server/runtime/packet-socket.ts';
import { DNSTAP_CONTENT_TYPE } from '../../../server/wire/dnstap.ts';
import { CONTROL, writeControl } from '../../../server/wire/frame-stream.ts';
import { PLACE_LOOK_MS } from '../../../tools/watch/packet-stream.ts';
import { usage } from '../option-values.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

export interface LiveCapture {
  /** Display name: `interface eth0`. */
  readonly name: string;
  dropped(): number;
  stop(): void;
}

/** The remark for packets that the kernel dropped. */
export const TOO_FAST = 'packets arrived too fast and were lost';

/** DNS over TLS, whose packets are only counted. */
const ENCRYPTED = 853;

/** Limit on dnstap connections, each of which may hold an incomplete frame of up to 1 MiB. */
const SENDERS_MAX = 256;

export interface PacketChoice {
  readonly device: string;
  readonly netns: string | null;
  readonly ports: readonly number[];
  /** Also captures packets that open TCP connections. */
  readonly opened?: boolean;
}

/**
 * Starts a packet capture that continues when its interface or namespace is removed and created again.
 *
 * @param changed receives the reason when there is nothing to capture, and null once there is again
 * @throws Problem
 */
export function capturePackets(
  choice: PacketChoice,
  take: TakePacket,
  changed: (why: string | null) => void = () => undefined,
): LiveCapture {
  let place = packetPlace(choice);
  let capture: LiveCapture | null = openPackets(choice, take);
  const { name } = capture;
  let droppedBefore = 0;
  // Without an interface, only this timer keeps the process alive.
  const look = setInterval(() => {
    const now = packetPlace(choice);
    if (capture !== null && now === place) return;
    capture?.stop();
    droppedBefore += capture?.dropped() ?? 0;
    capture = null;
    place = now;
    try {
      capture = openPackets(choice, take);
      changed(null);
    } catch (error) {
      const [problem] = problemsIn(error) ?? [];
      if (problem === undefined && errorCode(error) === '') throw error;
      changed(problem?.message ?? whyFailed(error));
    }
  }, PLACE_LOOK_MS);
  return {
    name,
    dropped: () => droppedBefore + (capture?.dropped() ?? 0),
    stop() {
      clearInterval(look);
      capture?.stop();
    },
  };
}

/** Adds a remark if a capture has lost packets. */
export function remarkOnLosses(capture: LiveCapture, { remarks }: Reading): void {
  if (capture.dropped() > 0) remarks.add(TOO_FAST, '', capture.dropped());
}

export function whileGone(why: string): string {
  return `packets are missing, because for a while ${why}`;
}

/** Identifies the namespace and interface that a capture would open now. Null if they do not exist. */
export function packetPlace({ device, netns }: Omit<PacketChoice, 'ports'>): string | null {
  return unlessGone(() => {
    const index = (): number => (device === 'any' ? 0 : libc().interfaceIndex(device));
    if (netns === null) return String(index());
    return `${statSync(netns).ino} ${inNetworkNamespace(netns, index)}`;
  });
}

/** Returns null if the system reports an error, because namespaces and interfaces can go away at any time. */
export function unlessGone<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (errorCode(error) === '') throw error;
    return null;
  }
}

/**
 * Starts a packet capture. If its interface is removed, it receives nothing more.
 * @throws Problem
 */
export function openPackets(
  { device, netns, ports, opened = false }: PacketChoice,
  take: TakePacket,
): LiveCapture {
  const open = (): PacketSocket =>
    new PacketSocket(device === 'any' ? null : device, [...new Set([...ports, ENCRYPTED])], opened);
  let socket: PacketSocket;
  try {
    socket = netns === null ? open() : inNetworkNamespace(netns, open);
  } catch (error) {
    throw told(error, device, netns);
  }
  socket.start(take);
  const where = netns === null ? '' : ` in ${netns}`;
  return {
    name: `${device === 'any' ? 'all interfaces' : `interface ${device}`}${where}, ${printPorts(ports)}`,
    dropped: () => socket.dropped,
    stop() {
      socket.drain(take);
      socket.close();
    },
  };
}

/** `port 53` or `ports 53 and 5353`, to explain why queries on other ports are not shown. */
function printPorts(ports: readonly number[]): string {
  const last = ports.at(-1);
  return ports.length < 2 ? `port ${last}` : `ports ${ports.slice(0, -1).join(', ')} and ${last}`;
}

function told(error: unknown, device: string, netns: string | null): unknown {
  if (error instanceof LibcMissing)
    return new Problem({
      code: 'capture-not-here',
      text: `cannot capture packets here: ${error.message}`,
      remedy: 'Capture with tcpdump instead: tcpdump -w - port 53 | ndots capture - (or doctor -)',
      cause: error,
    });
  switch (errorCode(error)) {
    case 'EPERM':
    case 'EACCES':
      return new Problem({
        code: 'capture-not-permitted',
        text: `cannot capture packets: permission denied${netns === null ? '' : ` (${netns})`}`,
        hint: `Packet sockets need CAP_NET_RAW${netns === null ? '' : ', and other network namespaces need CAP_SYS_ADMIN'}.`,
        remedy:
          'Use sudo, or pipe a capture in: sudo tcpdump -w - port 53 | ndots capture - (or doctor -)',
        cause: error,
      });
    case 'ENODEV':
      return new Problem({
        code: 'no-interface',
        text: `there is no interface ${device}${netns === null ? '' : ` in ${netns}`}`,
        remedy: 'ip -brief link lists the interfaces; -i any captures on all of them.',
        cause: error,
      });
    case 'ENOENT':
      return noNamespace(netns ?? '', error);
    default:
      return error;
  }
}

export function noNamespace(netns: string, cause: unknown): Problem {
  return new Problem({
    code: 'no-namespace',
    text: `there is no network namespace ${netns}`,
    remedy:
      'ip netns lists the named ones. For a pod, give --pid with the PID of one of its processes.',
    cause,
  });
}

/**
 * Listens for dnstap messages at `unix:PATH` or `tcp:IP:PORT`.
 * @throws Problem
 */
export async function captureDnstap(at: string, reading: Reading): Promise<LiveCapture> {
  const where = readPlace(at);
  const sockets = new Set<Socket>();
  let stopped = false;
  const server = createServer((socket) => {
    sockets.add(socket);
    const reader = new DnstapReader(
      (message) => reading.takeMessage(message),
      reading.remarks,
      ({ type }) => {
        if (type === CONTROL.READY)
          socket.write(writeControl(CONTROL.ACCEPT, [DNSTAP_CONTENT_TYPE]));
        if (type === CONTROL.STOP) socket.end(writeControl(CONTROL.FINISH));
      },
    );
    socket.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      if (reader.broken) socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      if (!stopped) reader.end();
    });
  });
  boundSenders(server, SENDERS_MAX, () =>
    reading.remarks.add(
      `more than ${SENDERS_MAX} programs send dnstap; the one that was silent longest was disconnected`,
    ),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(notListening(at, where, error)));
    server.listen(where, resolve);
  });
  return {
    name: `dnstap at ${at}`,
    dropped: () => 0,
    stop() {
      stopped = true;
      for (const socket of sockets) socket.destroy();
      server.close();
      if ('path' in where) rmSync(where.path, { force: true });
    },
  };
}

function readPlace(at: string): { path: string } | { host: string; port: number } {
  const [, path] = /^unix:(?:\/\/)?(\/.+)$/.exec(at) ?? [];
  if (path !== undefined) return { path };
  const [, host = '', port] = /^tcp:(?:\/\/)?\[?([^\]]+?)\]?:(\d{1,5})$/.exec(at) ?? [];
  if (parseAddress(host) !== null) return { host, port: Number(port) };
  throw usage(
    `--dnstap takes unix:PATH or tcp:IP:PORT, not "${at}"`,
    'Example: --dnstap unix:/run/ndots/tap.sock',
  );
}

function notListening(at: string, where: ReturnType<typeof readPlace>, error: Error): Problem {
  // The runtime reports EACCES for a missing directory, too.
  if ('path' in where && !existsSync(dirname(where.path)))
    return new Problem({
      code: 'dnstap-not-listening',
      text: `cannot listen at ${at}: there is no directory ${dirname(where.path)}`,
      remedy: `Create it: mkdir -p ${dirname(where.path)}`,
      cause: error,
    });
  return new Problem({
    code: 'dnstap-not-listening',
    text: `cannot listen at ${at}: ${whyFailed(error)}`,
    ...(errorCode(error) === 'EADDRINUSE' && {
      remedy: 'If another program left this socket behind, remove it: rm PATH',
    }),
    cause: error,
  });
}
