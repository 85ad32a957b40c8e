import { forgetDescriptor, noteDescriptor } from './held-by-thread.ts';
import { ERRNO, libc, SOL_SOCKET, SystemError } from './libc.ts';
import { Memory } from './memory.ts';

/** A descriptor that Node does not know. The owner must close it; it is recorded in case the thread ends before. */
export class Descriptor {
  readonly fd: number;
  #open = true;

  /**
   * @param fd the result of `call`
   * @param isNoted true if it was already recorded
   * @throws SystemError if the call has failed
   */
  constructor(fd: number, call: string, isNoted = false) {
    if (fd < 0) throw new SystemError(call, libc().errno());
    this.fd = fd;
    if (!isNoted) noteDescriptor(fd);
  }

  get isOpen(): boolean {
    return this.#open;
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    forgetDescriptor(this.fd);
    libc().close(this.fd);
  }

  /** Sets a socket option. Returns false if the system refuses. */
  protected option(option: number, value: number, level: number = SOL_SOCKET): boolean {
    scratch().words[0] = value;
    return libc().setsockopt(this.fd, level, option, scratch().address, 4) >= 0;
  }

  /** @throws SystemError if the result of the call is negative, unless a signal interrupted it */
  protected check(call: string, result: number): void {
    if (result >= 0) return;
    const errno = libc().errno();
    if (errno !== ERRNO.EINTR) throw new SystemError(call, errno);
  }
}

let scratchMemory: Memory | null = null;

/** 256 bytes of memory for the arguments of single calls; one per thread, never freed. */
export function scratch(): Memory {
  return (scratchMemory ??= new Memory(256));
}
