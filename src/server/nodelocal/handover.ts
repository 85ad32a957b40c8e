/** Lets an instance on a node find its predecessor, take over its state, and make it release the node. */
import { chmodSync, existsSync, renameSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import { whyFailed } from '../base/why-failed.ts';

/** The messages between the instances, one per line. */
const WORDS = { ASK: 'take over', SERVING: 'serving', RELEASED: 'released' };
/** Milliseconds of silence after which the other instance is assumed to be gone. */
const SILENCE_MS = 8000;
/**
 * Maximum number of bytes of cache content that are handed over. On the largest nodes, each of many workers has some.
 */
const CACHE_MAX = 64 * 1024 * 1024;
const LINE_MAX = 64;

/** The previous instance, if it still exists. */
export interface Predecessor {
  readonly cache: Uint8Array;
  /**
   * Reports that this instance is serving, so that the other one releases the node. Resolves when the other has done
   * so, or has ended.
   */
  release(): Promise<void>;
}

/** The functions that the serving instance provides to the next one. */
export interface HandoverParts {
  readonly path: string;
  readonly cache: () => Promise<Uint8Array>;
  /** Called when the next instance is serving. Resolves when this one no longer is. */
  readonly release: () => Promise<void>;
  readonly log: Log;
}

/**
 * Returns the meeting point for instances in this network namespace. It is a socket in a directory that only root can
 * enter, and that all of them see. Several nodes on one machine (network namespaces) may share the directory.
 */
export function meetingPoint(directory: string): string {
  return join(directory, `node-cache-${statSync('/proc/self/ns/net').ino}.sock`);
}

/** Connects to the serving instance to take over its cache. Returns null if there is none. */
export async function findPredecessor(path: string, log: Log): Promise<Predecessor | null> {
  if (!existsSync(path)) return null;
  const socket = connect(path);
  socket.on('error', () => undefined);
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  socket.write(`${WORDS.ASK}\n`);
  const pieces: Buffer[] = [];
  let wanted = -1;
  let size = 0;
  return new Promise((resolve) => {
    socket.once('close', () => resolve(null));
    socket.on('data', function take(chunk: Buffer) {
      pieces.push(chunk);
      size += chunk.length;
      if (wanted < 0 && size >= 4) wanted = Buffer.concat(pieces).readUInt32BE(0);
      if (wanted > CACHE_MAX) socket.destroy();
      if (wanted < 0 || size < 4 + wanted) return;
      socket.off('data', take);
      socket.removeAllListeners('close');
      log.info(
        `Another instance is serving; this one is taking over, with ${wanted} bytes of its cache`,
      );
      const cache = Buffer.concat(pieces).subarray(4, 4 + wanted);
      resolve({ cache, release: () => tellServing(socket) });
    });
  });
}

function tellServing(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on('close', () => resolve());
    // From now on, it only reports that it has released the node.
    socket.on('data', () => socket.end());
    socket.write(`${WORDS.SERVING}\n`);
    if (socket.destroyed) resolve();
  });
}

/** Waits for the next instance. Only the first one that connects is served. */
export class Handover {
  readonly #parts: HandoverParts;
  readonly #server: Server;
  #busy = false;
  /** Inode of the socket file. It is checked because the next instance replaces the file with its own. */
  #inode: number | null = null;

  constructor(parts: HandoverParts) {
    this.#parts = parts;
    this.#server = createServer((socket) => this.#onSocket(socket));
    this.#server.on('error', (error) =>
      parts.log.warning(`no other instance can take over from this one: ${whyFailed(error)}`),
    );
  }

  /** Takes the place of the previous instance. */
  listen(): void {
    const { path } = this.#parts;
    const own = `${path}.${process.pid}`;
    if (existsSync(own)) unlinkSync(own);
    this.#server.listen(own, () => {
      chmodSync(own, 0o600);
      renameSync(own, path);
      this.#inode = inodeOf(path);
    });
    this.#server.unref();
  }

  /** Withdraws the offer to hand over. The socket is removed, unless another instance has already replaced it. */
  close(): void {
    this.#server.close();
    const { path } = this.#parts;
    if (this.#inode !== null && inodeOf(path) === this.#inode) rmSync(path, { force: true });
    this.#inode = null;
  }

  #onSocket(socket: Socket): void {
    socket.on('error', () => undefined);
    if (this.#busy) return void socket.destroy();
    this.#busy = true;
    // If an instance dies before it serves, nothing changes.
    socket.on('close', () => (this.#busy = false));
    let line = '';
    let step: Promise<void> = Promise.resolve();
    socket.on('data', (chunk: Buffer) => {
      line += chunk.toString('latin1');
      if (line.length > LINE_MAX) return void socket.destroy();
      for (let end = line.indexOf('\n'); end >= 0; end = line.indexOf('\n')) {
        const word = line.slice(0, end);
        line = line.slice(end + 1);
        step = step.then(() => this.#answer(word, socket));
      }
    });
  }

  async #answer(word: string, socket: Socket): Promise<void> {
    const { cache, release, log } = this.#parts;
    if (word === WORDS.ASK) {
      log.info('Another instance is about to take over');
      const bytes = (await cache()).subarray(0, CACHE_MAX);
      const head = Buffer.alloc(4);
      head.writeUInt32BE(bytes.length);
      socket.write(head);
      socket.write(bytes);
    } else if (word === WORDS.SERVING) {
      log.info('Another instance has taken over');
      await release();
      socket.end(`${WORDS.RELEASED}\n`);
    } else socket.destroy();
  }
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
