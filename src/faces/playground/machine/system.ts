/**
 * The system of the machine in the browser: one CPU, no interface, no native code. It replaces the
 * remaining modules of Node that the server in memory names (`node:os`, `node:module` and so on)
 * where it is bundled for the playground.
 */
import * as re2js from 're2js';
import * as yaml from 'yaml';

function unavailable(): never {
  throw Object.assign(new Error('this page cannot do this'), { code: 'ENOSYS' });
}

export {
  unavailable as createPrivateKey,
  unavailable as createPublicKey,
  unavailable as getSystemErrorName,
  unavailable as sign,
  unavailable as verify,
};

/** The path that `read-file.ts` treats as an empty file. */
export const devNull = '/dev/null';

/** One: no thread is started. */
export function availableParallelism(): number {
  return 1;
}

/** None. */
export function networkInterfaces(): Record<string, never> {
  return {};
}

/** The host name in replies of `chaos` and `nsid`. */
export function hostname(): string {
  return 'playground';
}

/** Nothing is cached. */
export function flushCompileCache(): void {}

export function fileURLToPath(url: string | URL): string {
  return new URL(url).pathname;
}

const packages: Readonly<Record<string, unknown>> = { re2js, yaml };

/** Loads the packages that are bundled; all others are missing, as native ones are. */
export function createRequire(): (name: string) => unknown {
  return (name) => {
    if (Object.hasOwn(packages, name)) return packages[name];
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  };
}

/** Stacks already name the bundled files that the browser knows. */
export class SourceMap {
  findEntry(): object {
    return {};
  }
}

/** Threads are not started: the server in memory has its one worker on the same thread. */
export class Worker {
  constructor() {
    unavailable();
  }
}

/** The browser's own. */
export const MessageChannel: typeof globalThis.MessageChannel = globalThis.MessageChannel;

/** True if the bytes are UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

export { createHash, hash, randomBytes } from './cryptography.ts';

/** `setImmediate` of `node:timers/promises`. */
export function setImmediate(): Promise<void> {
  return new Promise((resolve) => globalThis.setImmediate(() => resolve()));
}
