import { readFileSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';

import type * as Koffi from 'koffi';

import { endProcessWith } from './end-process.ts';
import { signalDescriptor, wakeups, type Wakeup } from './event-loop.ts';
import { loadKoffi } from './koffi.ts';
import { unterminated } from './termination-gate.ts';

/**
 * System calls used by the transports. Pointers are numbers, because addresses fit into 47 bits. Failures are negative.
 */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, name: number, length: number): number;
  connect(fd: number, name: number, length: number): number;
  getsockname(fd: number, name: number, length: number): number;
  setsockopt(fd: number, level: number, option: number, value: number, length: number): number;
  getsockopt(fd: number, level: number, option: number, value: number, length: number): number;
  recvmmsg(fd: number, heads: number, count: number, flags: number, timeout: number): number;
  sendmmsg(fd: number, heads: number, count: number, flags: number): number;
  recv(fd: number, bytes: number, size: number, flags: number): number;
  send(fd: number, bytes: number, size: number, flags: number): number;
  epollCreate(flags: number): number;
  epollControl(epoll: number, operation: number, fd: number, event: number): number;
  epollWait(epoll: number, events: number, count: number, timeoutMs: number): number;
  close(fd: number): number;
  /** Writes a clock's seconds and nanoseconds, 64 bits each. */
  clockGettime(clock: number, time: number): number;
  /** Moves this thread into the namespace of the descriptor. */
  setns(fd: number, kind: number): number;
  poll(descriptors: number, count: number, timeoutMs: number): number;
  /** Changes the set of signals that this thread blocks. */
  sigprocmask(how: number, set: number, before: number): number;
  setitimer(which: number, value: number, before: number): number;
  /** Makes a system call that has no C library function. */
  syscall(call: number, first: number, second: number, third: number): number;
  /** Makes SIGALRM end the process with the signal's number as exit code, even for process 1 in a container. */
  exitOnAlarm(): void;
  _exit(code: number): void;
  /** Returns a new descriptor that becomes readable once the signal has arrived and is never read. -1 on failure. */
  signalDescriptor(signal: number): number;
  /** 0 if there is no such interface. */
  interfaceIndex(name: string): number;
  /** Returns the error number of this thread's last failed call. Read it immediately. */
  errno(): number;
  /** Allocates memory that never moves, along with a view of it. */
  allocate(size: number): { readonly address: number; readonly buffer: ArrayBuffer };
  free(address: number): void;
  /**
   * Maps a descriptor's memory. Returns null on failure. Views must not be used after `unmap`.
   * @param offset a multiple of the page size
   */
  mapDescriptor(
    fd: number,
    offset: number,
    size: number,
    writable: boolean,
  ): { readonly address: number; readonly buffer: ArrayBuffer } | null;
  unmap(address: number, size: number): number;
  /** Returns free memory held by the C library to the system. */
  trim(): void;
  /** Advises the kernel how a range of whole pages will be used. */
  madvise(address: number, length: number, advice: number): number;
  /** Wakes this thread's event loop while the descriptor is readable (level-triggered). */
  wakeOn(fd: number): Wakeup;
}

/** Reports why there is no foreign function interface. */
export class LibcMissing extends Error {
  override readonly name = 'LibcMissing';
}

let loaded: Libc | LibcMissing | null = null;

/**
 * Returns the C library, loaded on first use.
 * @throws LibcMissing except on 64-bit little-endian Linux with the optional package installed
 */
export function libc(): Libc {
  if (loaded === null) {
    try {
      loaded = unterminated(load);
    } catch (error) {
      loaded =
        error instanceof LibcMissing
          ? error
          : new LibcMissing(error instanceof Error ? error.message : String(error));
    }
  }
  if (loaded instanceof LibcMissing) throw loaded;
  return loaded;
}

/** Calls `use`, or returns null if there is no foreign function interface. */
export function withLibc<T>(use: (calls: Libc) => T): T | null {
  try {
    return use(libc());
  } catch (error) {
    if (error instanceof LibcMissing) return null;
    throw error;
  }
}

function load(): Libc {
  // The kernel's struct layouts are defined only for these.
  if (process.platform !== 'linux') throw new LibcMissing(`not on ${process.platform}`);
  if (process.arch !== 'x64' && process.arch !== 'arm64') {
    throw new LibcMissing(`not on ${process.arch}`);
  }
  const koffi = loadKoffi();
  if (koffi === null) throw new LibcMissing('the optional package koffi is not installed');
  // null means the symbols already loaded into this process, from glibc or musl.
  const lib = koffi.load(null);
  pin(lib);
  const declare = (name: string, args: readonly string[]): never =>
    lib.func(name, 'int', [...args]) as never;
  const setHandler = lib.func('signal', 'uintptr_t', ['int', 'uintptr_t']);
  const exit = lib.symbol('_exit') as bigint;
  const _exit: Libc['_exit'] = declare('_exit', ['int']);
  const fcntl: FileControl = declare('fcntl', ['int', 'int', 'int']);
  endProcessWith((code) => {
    for (const fd of STANDARD_STREAMS) makeBlocking(fcntl, fd);
    _exit(code);
  });
  return {
    socket: declare('socket', ['int', 'int', 'int']),
    bind: declare('bind', ['int', 'uintptr_t', 'uint32']),
    connect: declare('connect', ['int', 'uintptr_t', 'uint32']),
    getsockname: declare('getsockname', ['int', 'uintptr_t', 'uintptr_t']),
    setsockopt: declare('setsockopt', ['int', 'int', 'int', 'uintptr_t', 'uint32']),
    getsockopt: declare('getsockopt', ['int', 'int', 'int', 'uintptr_t', 'uintptr_t']),
    recvmmsg: declare('recvmmsg', ['int', 'uintptr_t', 'uint32', 'int', 'uintptr_t']),
    sendmmsg: declare('sendmmsg', ['int', 'uintptr_t', 'uint32', 'int']),
    recv: declare('recv', ['int', 'uintptr_t', 'uintptr_t', 'int']),
    send: declare('send', ['int', 'uintptr_t', 'uintptr_t', 'int']),
    epollCreate: declare('epoll_create1', ['int']),
    epollControl: declare('epoll_ctl', ['int', 'int', 'int', 'uintptr_t']),
    epollWait: declare('epoll_wait', ['int', 'uintptr_t', 'int', 'int']),
    close: declare('close', ['int']),
    clockGettime: declare('clock_gettime', ['int', 'uintptr_t']),
    setns: declare('setns', ['int', 'int']),
    poll: declare('poll', ['uintptr_t', 'uint64', 'int']),
    sigprocmask: declare('pthread_sigmask', ['int', 'uintptr_t', 'uintptr_t']),
    setitimer: declare('setitimer', ['int', 'uintptr_t', 'uintptr_t']),
    syscall: declare('syscall', ['long', 'long', 'uintptr_t', 'long']),
    exitOnAlarm: () => void setHandler(SIGALRM, exit),
    _exit,
    signalDescriptor: (signal) => unterminated(() => signalDescriptor(koffi, lib, signal)),
    interfaceIndex: declare('if_nametoindex', ['str']),
    errno: () => koffi.errno(),
    allocate: (size) =>
      unterminated(() => {
        const pointer = koffi.alloc('uint8_t', size) as bigint;
        return { address: Number(pointer), buffer: koffi.view(pointer, size) };
      }),
    free: (address) => unterminated(() => koffi.free(BigInt(address))),
    mapDescriptor: descriptorMaps(koffi, lib),
    unmap: declare('munmap', ['uintptr_t', 'uint64']),
    trim: trimmer(lib),
    madvise: declare('madvise', ['uintptr_t', 'uintptr_t', 'int']),
    wakeOn: wakeups(koffi, lib),
  };
}

type FileControl = (fd: number, command: number, value: number) => number;

const STANDARD_STREAMS = [0, 1, 2] as const;
const F_GETFL = 3;
const F_SETFL = 4;
const O_NONBLOCK = 0x800;

/**
 * Node makes pipes non-blocking and undoes that only in an exit handler. The next program to write to the same pipe, in
 * `(ndots version; cat file) | less`, expects it to block.
 */
function makeBlocking(fcntl: FileControl, fd: number): void {
  const flags = fcntl(fd, F_GETFL, 0);
  if (flags > 0 && (flags & O_NONBLOCK) !== 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/** glibc keeps freed memory until `malloc_trim` releases it. musl has no such function and keeps none. */
function trimmer(lib: Koffi.LibraryHandle): () => void {
  try {
    const trim = lib.func('malloc_trim', 'int', ['size_t']) as (keep: number) => number;
    return () => void trim(0);
  } catch {
    return () => undefined;
  }
}

const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_SHARED = 1;

function descriptorMaps(koffi: typeof Koffi, lib: Koffi.LibraryHandle): Libc['mapDescriptor'] {
  const mmap = lib.func('mmap', 'intptr_t', [
    ...['uintptr_t', 'uint64', 'int', 'int', 'int'],
    'int64',
  ]) as (...given: readonly number[]) => number | bigint;
  return (fd, offset, size, writable) => {
    const protection = PROT_READ | (writable ? PROT_WRITE : 0);
    const address = Number(mmap(0, size, protection, MAP_SHARED, fd, offset));
    if (address === -1) return null;
    return unterminated(() => ({ address, buffer: koffi.view(BigInt(address), size) }));
  };
}

const SIGALRM = 14;
const RTLD_NOW = 2;
const RTLD_NOLOAD = 4;
const RTLD_NODELETE = 0x1000;

/**
 * Pins the native code in memory. A thread that ends unloads its addons, but its event loop closes poll handles
 * afterwards and would call unloaded code.
 */
function pin(lib: Koffi.LibraryHandle): void {
  const line = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .find((text) => text.endsWith('.node') && text.slice(text.lastIndexOf('/')).includes('koffi'));
  const path = line?.slice(line.indexOf('/'));
  const dlopen = lib.func('dlopen', 'uintptr_t', ['str', 'int']) as (
    path: string,
    flags: number,
  ) => number | bigint;
  if (path === undefined || Number(dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) === 0) {
    throw new LibcMissing('the addon could not be pinned in memory');
  }
}

/** A failed system call. `code` is the system's error name, e.g. `EADDRINUSE`. */
export class SystemError extends Error {
  override readonly name = 'SystemError';
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;

  constructor(syscall: string, errno: number) {
    const code = errnoName(errno);
    super(`${syscall}: ${code}`);
    this.code = code;
    this.errno = errno;
    this.syscall = syscall;
  }
}

function errnoName(errno: number): string {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
}

/** Types and flags of sockets, and the level of options that all sockets have. */
export const SOCK = { DGRAM: 2, RAW: 3, NONBLOCK: 0o4000, CLOEXEC: 0o2000000 } as const;
export const SOL_SOCKET = 1;
/** For single calls of recv(2) and send(2). */
export const MSG_DONTWAIT = 0x40;

/** Error numbers from <errno.h> on Linux, the same on all supported architectures. */
export const ERRNO = {
  ENOENT: 2,
  EINTR: 4,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  ENODEV: 19,
  ENETDOWN: 100,
  ENETUNREACH: 101,
  ENOBUFS: 105,
  ECONNREFUSED: 111,
  EHOSTUNREACH: 113,
} as const;
