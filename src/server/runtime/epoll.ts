/** epoll(7): which of many descriptors are readable. */
import { libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';
import { noteDescriptor, forgetDescriptor } from './held-by-thread.ts';

const EPOLL_CLOEXEC = 0o2000000;
const EPOLLIN = 1;
const CTL_ADD = 1;
const CTL_DEL = 2;
/** The most ready descriptors per call; further ones are returned by the next call. */
const EVENTS = 64;
/** Bytes of a struct epoll_event, and where its data begin: packed on x86-64 only. */
const EVENT = process.arch === 'x64' ? { SIZE: 12, DATA: 4 } : { SIZE: 16, DATA: 8 };

/**
 * A set of descriptors; finds those that are readable. Its own descriptor is readable while one of
 * them is.
 */
export class Epoll {
  readonly fd: number;
  readonly #events = new Memory(EVENTS * EVENT.SIZE);
  #open = true;

  /** @throws SystemError */
  constructor() {
    this.fd = libc().epollCreate(EPOLL_CLOEXEC);
    if (this.fd < 0) throw new SystemError('epoll_create1', libc().errno());
    noteDescriptor(this.fd);
  }

  /**
   * Watches a descriptor, reported as `number` while it is readable or has an error.
   * @throws SystemError
   */
  add(fd: number, number: number): void {
    const { words, address } = this.#events;
    words[0] = EPOLLIN;
    words[EVENT.DATA / 4] = number;
    words[EVENT.DATA / 4 + 1] = 0;
    if (libc().epollControl(this.fd, CTL_ADD, fd, address) < 0) {
      throw new SystemError('epoll_ctl', libc().errno());
    }
  }

  /** To be called before the descriptor is closed. */
  remove(fd: number): void {
    libc().epollControl(this.fd, CTL_DEL, fd, this.#events.address);
  }

  /**
   * Checks without waiting.
   * @returns how many are readable; `ready` has their numbers until the next call
   */
  look(): number {
    return libc().epollWait(this.fd, this.#events.address, EVENTS, 0);
  }

  ready(i: number): number {
    return this.#events.words[(i * EVENT.SIZE + EVENT.DATA) / 4]!;
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    forgetDescriptor(this.fd);
    libc().close(this.fd);
    this.#events.free();
  }
}
