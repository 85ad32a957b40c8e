import type * as Koffi from 'koffi';
import { unterminated } from './termination-gate.ts';

/**
 * A descriptor that wakes the event loop without calling JavaScript; its user checks it in the following turn. While
 * referenced, it keeps the event loop alive. Close it before its descriptor. If the thread ends without a chance to do
 * so (out of memory, terminated), the runtime closes it.
 */
export interface Wakeup {
  /** Returns true if the descriptor became readable since the last call. */
  take(): boolean;
  ref(): void;
  unref(): void;
  close(): void;
}

/** Result of `uv_handle_get_type` for a poll handle. */
const UV_POLL = 8;
const UV_READABLE = 1;
/** A value that libuv never writes: statuses are 0 or negative error numbers. */
const NOT_YET = 1;

/**
 * koffi's poll handles call JavaScript outside the runtime's own scope. A thread that runs out of memory or is
 * terminated can no longer run JavaScript, but its event loop still turns a few times. A datagram arriving then would
 * end the whole process (Node-API: `FATAL ERROR: napi_throw`). koffi therefore only owns the handle and closes it with
 * the thread, however the thread ends. The callback is libuv's own `uv_handle_set_data`, which stores the poll status
 * in the first word of the handle, where JavaScript reads it.
 *
 * The opposite direction is just as dangerous. In a thread that is being terminated, koffi's own functions (poll
 * handles, `alloc`, `view`, `free`, declarations) throw, which ends the process in the same way. Calls to C functions
 * with numbers and strings do not. All these calls go through `termination-gate.ts`, and code that ends a thread closes
 * the gate first (`engine/control/worker-ports.ts`).
 */
export function wakeups(koffi: typeof Koffi, lib: Koffi.LibraryHandle): (fd: number) => Wakeup {
  const slot = koffi.alloc('uint64_t', 1) as bigint;
  const cell = new BigUint64Array(koffi.view(slot, 8));
  const loopOf = lib.func('napi_get_uv_event_loop', 'int', ['uintptr_t', 'uintptr_t']);
  const visit = koffi.pointer(koffi.proto('void', ['uintptr_t', 'uintptr_t']));
  const walk = lib.func('uv_walk', 'void', ['uintptr_t', visit, 'uintptr_t']);
  const typeOf = lib.func('uv_handle_get_type', 'int', ['uintptr_t']);
  const fileOf = lib.func('uv_fileno', 'int', ['uintptr_t', 'uintptr_t']);
  const start = lib.func('uv_poll_start', 'int', ['uintptr_t', 'int', 'uintptr_t']);
  const setData = lib.symbol('uv_handle_set_data') as bigint;
  loopOf(koffi.node.env, slot);
  const loop = cell[0]!;
  const pollHandle = (fd: number): bigint => {
    let found = 0n;
    walk(
      loop,
      (handle: number | bigint) => {
        if (typeOf(handle) !== UV_POLL || fileOf(handle, slot) !== 0) return;
        if (Number(cell[0]! & 0xffff_ffffn) === fd) found = BigInt(handle);
      },
      0,
    );
    return found;
  };
  const wakeup = (fd: number): Wakeup => {
    const owned = koffi.node.poll(fd, () => undefined);
    const handle = pollHandle(fd);
    let status: Int32Array | null = new Int32Array(koffi.view(handle, 4));
    status[0] = NOT_YET;
    start(handle, UV_READABLE, setData);
    return {
      take() {
        if (status === null || status[0] === NOT_YET) return false;
        // After an error, the watch has ended and must be started again.
        if (status[0] !== 0) start(handle, UV_READABLE, setData);
        status[0] = NOT_YET;
        return true;
      },
      ref: () => unterminated(() => owned.ref()),
      unref: () => unterminated(() => owned.unref()),
      close() {
        status = null;
        unterminated(() => owned.close());
      },
    };
  };
  return (fd) => unterminated(() => wakeup(fd));
}

/** Argument of `uv_handle_size` for a signal handle. */
const UV_SIGNAL = 16;
const UV_RUN_NOWAIT = 2;

/**
 * A separate loop that runs only once, to arm its descriptor, with a signal handle. libuv's signal handler writes to it
 * as to all others.
 * @returns its descriptor, or -1
 */
export function signalDescriptor(
  koffi: typeof Koffi,
  lib: Koffi.LibraryHandle,
  signal: number,
): number {
  const size = (name: string, ...of: number[]): number =>
    lib.func(
      name,
      'int',
      of.map(() => 'int'),
    )(...of) as number;
  const call = (name: string, ...words: (number | bigint)[]): number =>
    lib.func(
      name,
      'int',
      words.map((word) => (typeof word === 'bigint' ? 'uintptr_t' : 'int')),
    )(...words) as number;
  const loop = koffi.alloc('uint8_t', size('uv_loop_size')) as bigint;
  const handle = koffi.alloc('uint8_t', size('uv_handle_size', UV_SIGNAL)) as bigint;
  if (call('uv_loop_init', loop) < 0 || call('uv_signal_init', loop, handle) < 0) return -1;
  const ignored = lib.symbol('uv_handle_set_data') as bigint;
  if (call('uv_signal_start', handle, ignored, signal) < 0) return -1;
  call('uv_run', loop, UV_RUN_NOWAIT);
  return call('uv_backend_fd', loop);
}
