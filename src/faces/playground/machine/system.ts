/**
 * The browser machine's system, with one CPU, no network interfaces and no native code. Replaces the other Node modules
 * that the in-memory server imports (`node:os`, `node:module` and so on) when it is bundled for the playground.
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

/** `read-file.ts` treats this path as an empty file. */
export const devNull = '/dev/null';

/** Returns 1 because threads are not supported. */
export function availableParallelism(): number {
  return 1;
}

export function networkInterfaces(): Record<string, never> {
  return {};
}

/** The host name in `chaos` and `nsid` replies. */
export function hostname(): string {
  return 'playground';
}

/** Does nothing because there is no cache. */
export function flushCompileCache(): void {}

export function fileURLToPath(url: string | URL): string {
  return new URL(url).pathname;
}

const packages: Readonly<Record<string, unknown>> = { re2js, yaml };

/** Loads bundled packages. All others, including native ones, count as missing. */
export function createRequire(): (name: string) => unknown {
  return (name) => {
    if (Object.hasOwn(packages, name)) return packages[name];
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  };
}

/** Empty, because stack traces already refer to the bundled files, which the browser knows. */
export class SourceMap {
  findEntry(): object {
    return {};
  }
}

/** Never starts a thread, because the in-memory server's only worker runs on the same one. */
export class Worker {
  constructor() {
    unavailable();
  }
}

export const MessageChannel: typeof globalThis.MessageChannel = globalThis.MessageChannel;

/** True if the bytes are valid UTF-8. */
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
