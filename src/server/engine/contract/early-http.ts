/**
 * Opens the addresses of `health` and `ready` before the program is loaded. A probe that finds a closed port fails, and
 * the kubelet does not probe again until `periodSeconds` have passed. A probe that finds an open port waits
 * (docs/decisions/start.md).
 */
import { readFileSync, statSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';

/** Requests are answered within this time, because the kubelet waits only a second (`timeoutSeconds`). */
export const HOLD_MS = 800;
/** Connections beyond the needs of probes are dropped. */
const CONNECTIONS_MAX = 64;
/** A larger file is not a Corefile. */
const FILE_MAX = 1 << 20;

interface EarlyListener {
  readonly host: string;
  readonly port: number;
  readonly server: Server;
  readonly openedAt: number;
  /** Connections with unread requests, and the timers that end their wait. */
  readonly waiting: Map<Socket, NodeJS.Timeout>;
}

const open: EarlyListener[] = [];
/** The earliest time at which a connection can have started, for connections older than the server. */
const begun = new WeakMap<object, number>();

/**
 * Opens the addresses that the Corefile appears to contain. The file is only scanned. An address that is missed is
 * opened with the server, and a superfluous one is closed at that point. Errors are left to the server.
 * @param words the command line after the command
 * @param plugins those that answer probes, with their default ports
 * @returns resolves when each address is open or has failed
 */
export async function openEarly(
  words: readonly string[],
  plugins: ReadonlyMap<string, number>,
): Promise<void> {
  const settled: Promise<void>[] = [];
  for (const { host, port } of probeAddresses(corefileText(words), plugins)) {
    const waiting = new Map<Socket, NodeJS.Timeout>();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    const listener: EarlyListener = { host, port, server, openedAt: performance.now(), waiting };
    const drop = (): void => {
      const at = open.indexOf(listener);
      if (at >= 0) open.splice(at, 1);
    };
    server.maxConnections = CONNECTIONS_MAX;
    server.on('error', drop).on('connection', (socket: Socket) => hold(socket, listener));
    server.listen({ port, ...(host !== '' && { host }) });
    server.unref();
    open.push(listener);
    // The handlers are added at once, because several addresses may fail in one turn of the event loop.
    if (!server.listening)
      settled.push(
        new Promise((done) => {
          server.once('listening', done).once('error', () => done());
        }),
      );
  }
  await Promise.all(settled);
}

function hold(socket: Socket, { openedAt, waiting }: EarlyListener): void {
  const now = performance.now();
  // Nothing was accepted while a file was being loaded.
  const since = now - openedAt < HOLD_MS ? openedAt : now;
  begun.set(socket, since);
  const timer = setTimeout(() => cut(socket), HOLD_MS - (now - since));
  timer.unref();
  waiting.set(socket, timer);
  const forget = (): void => {
    clearTimeout(timer);
    waiting.delete(socket);
  };
  socket.on('error', forget).on('close', forget);
}

/** Answers like the `ready` plugin while it waits. */
function cut(socket: Socket): void {
  socket.resume();
  const headers = 'Content-Type: text/plain; charset=utf-8\r\nConnection: close';
  socket.end(`HTTP/1.1 503 Service Unavailable\r\n${headers}\r\nContent-Length: 9\r\n\r\nstarting`);
  setTimeout(() => socket.destroy(), 100).unref();
}

/** Hands over the open socket for an address. */
export interface EarlyConnections {
  readonly server: Server;
  readonly sockets: readonly Socket[];
}

/** Hands the socket that is open at this address over to the caller, or returns null if there is none. */
export function takeEarly(host: string, port: number): EarlyConnections | null {
  const at = open.findIndex((each) => each.host === host && each.port === port);
  const [found] = at < 0 ? [] : open.splice(at, 1);
  if (found === undefined) return null;
  const sockets = [...found.waiting.keys()];
  for (const timer of found.waiting.values()) clearTimeout(timer);
  found.server.removeAllListeners('connection');
  return { server: found.server, sockets };
}

/** Closes the sockets that were not handed over. */
export function closeEarly(): void {
  for (const { server, waiting } of open.splice(0)) {
    server.close();
    for (const socket of waiting.keys()) socket.destroy();
  }
}

/** Returns the longest time, in milliseconds, that a client may have waited before its request was read. */
export function waitedMs(socket: object): number {
  const since = begun.get(socket);
  begun.delete(socket);
  return since === undefined ? 0 : performance.now() - since;
}

/** Returns `''` for input that cannot be read twice. */
function corefileText(words: readonly string[]): string {
  const at = words.findIndex((word) => /^--?conf(=|$)/.test(word));
  const file = at < 0 ? 'Corefile' : (/=(.*)/s.exec(words[at]!)?.[1] ?? words[at + 1] ?? '');
  const { isFile = false, size = 0 } = fileAt(file);
  return isFile && size <= FILE_MAX ? readFileSync(file, 'utf8') : '';
}

function fileAt(file: string): { readonly isFile?: boolean; readonly size?: number } {
  try {
    const found = statSync(file);
    return { isFile: found.isFile(), size: found.size };
  } catch {
    return {};
  }
}

interface ProbeAddress {
  readonly host: string;
  readonly port: number;
}

/** Returns the plugins' addresses, if each is defined on a single line. */
export function probeAddresses(
  corefile: string,
  plugins: ReadonlyMap<string, number>,
): readonly ProbeAddress[] {
  const found = new Map<string, ProbeAddress>();
  for (const line of corefile.split('\n')) {
    const [, name = '', text] =
      /^\s*(\w+)(?:[ \t]+([^\s{}#"]+))?\s*(?:\{\s*(?:#.*)?|#.*)?$/.exec(line) ?? [];
    const usual = plugins.get(name);
    if (usual === undefined) continue;
    const address = text ?? `:${usual}`;
    const [, written = '', port = ''] = /^(|localhost|[\d.]+):(\d{1,5})$/.exec(address) ?? [];
    const host = written === '0.0.0.0' ? '' : written.replace('localhost', '127.0.0.1');
    if (Number(port) > 0 && Number(port) < 65_536)
      found.set(`${host}:${port}`, { host, port: Number(port) });
  }
  return [...found.values()];
}
