/**
 * Node globals that engines use and browsers do not have: `Buffer`, `setImmediate` and `process`. Loaded before any
 * engine.
 */
import { Buffer } from 'buffer';
import * as cryptography from './cryptography.ts';

/** Implements `setImmediate` with messages, because browsers run nested timers no more than every 4 ms. */
function messageTurns(): (run: (...words: unknown[]) => void, ...words: unknown[]) => object {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return (run, ...words) => {
    waiting.push(() => run(...words));
    port2.postMessage(null);
    return { unref: () => undefined };
  };
}

/** Turns timers into objects, as in Node. In browsers they are numbers. */
function timerObjects(
  set: (run: () => void, delayMs?: number) => number,
): (run: (...words: unknown[]) => void, delayMs?: number, ...words: unknown[]) => object {
  return (run, delayMs, ...words) => {
    const id = set(() => run(...words), delayMs);
    const timer = { valueOf: () => id, ref: () => timer, unref: () => timer, hasRef: () => true };
    return timer;
  };
}

const processOfPage = {
  platform: 'browser',
  arch: 'browser',
  pid: 1,
  env: {},
  cwd: () => '/',
  nextTick: (run: (...words: unknown[]) => void, ...words: unknown[]) =>
    queueMicrotask(() => run(...words)),
  getBuiltinModule: (name: string) => (name === 'node:crypto' ? cryptography : undefined),
};

const globals = globalThis as unknown as Record<string, unknown>;
globals['global'] ??= globalThis;
globals['setTimeout'] = timerObjects(globalThis.setTimeout.bind(globalThis) as never);
globals['setInterval'] = timerObjects(globalThis.setInterval.bind(globalThis) as never);
globals['Buffer'] ??= Buffer;
globals['process'] ??= processOfPage;
globals['setImmediate'] ??= messageTurns();
// Shared memory requires response headers that plain file servers do not send. A single thread can do without it.
globals['SharedArrayBuffer'] ??= ArrayBuffer;
// Event loop utilization controls the thread's memory policy, but browsers do not report it.
Object.assign(performance, {
  eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
});
