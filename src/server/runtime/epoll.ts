/** Wraps epoll(7), which reports the readable ones among many descriptors. */
import { Descriptor } from './descriptor.ts';
import { libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';

const EPOLL_CLOEXEC = 0o2000000;
const EPOLLIN = 1;
const CTL_ADD = 1;
const CTL_DEL = 2;
/** Maximum number of ready descriptors per call. The next call returns the rest. */
const EVENTS = 64;
/** Size of struct epoll_event and offset of its data, in bytes; it is packed only on x86-64. */
const EVENT = process.arch === 'x64' ? { SIZE: 12, DATA: 4 } : { SIZE: 16, DATA: 8 };

/** A set of descriptors to watch for readability. Its own descriptor is readable while any of them is. */
export class Epoll extends Descriptor {
  readonly #events = new Memory(EVENTS * EVENT.SIZE);

  /** @throws SystemError */
  constructor() {
    super(libc().epollCreate(EPOLL_CLOEXEC), 'epoll_create1');
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

  /** Call before closing the descriptor. */
  remove(fd: number): void {
    libc().epollControl(this.fd, CTL_DEL, fd, this.#events.address);
  }

  /**
   * Checks without waiting.
   * @returns the number of readable descriptors; `ready` holds their numbers until the next call
   */
  look(): number {
    return libc().epollWait(this.fd, this.#events.address, EVENTS, 0);
  }

  ready(i: number): number {
    return this.#events.words[(i * EVENT.SIZE + EVENT.DATA) / 4]!;
  }

  override close(): void {
    super.close();
    this.#events.free();
  }
}
