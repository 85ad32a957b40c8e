/** Removes what this process has set up, once the process has ended. */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { startProgram, type StartedProgram } from '../runtime/programs.ts';

/** Waits for this process to end, and then runs shell commands. */
export interface Teardown {
  /** Starts it, unless it is already waiting. */
  ensure(): void;
  /** Makes it end without doing anything. */
  release(): void;
}

/** Its name in process lists. */
const NAME = 'ndots-node-cache-teardown';

/**
 * A child process of one MiB that reads from a pipe whose other end only this process has. Whatever ends this process
 * (SIGKILL, the out-of-memory killer), the kernel closes the pipe, and the shell runs its commands. If anything ends
 * the shell, this process notices and starts another. If both end at once, or this process hangs, addresses and rules
 * expire with their leases.
 */
export class TeardownShell implements Teardown {
  readonly #shell: string;
  readonly #lines: () => readonly string[];
  #child: StartedProgram | null = null;

  /** @param lines returns the commands to run when this process ends; called when the shell starts */
  constructor(shell: string, lines: () => readonly string[]) {
    this.#shell = shell;
    this.#lines = lines;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  ensure(): void {
    if (this.#child !== null) return;
    const script = [
      // A signal to the process group is meant for the node cache. The shell must outlive it to clean up.
      `trap '' HUP INT TERM`,
      'while read -r line; do [ "$line" = release ] && exit 0; done',
      'exec 2>/dev/null',
      ...this.#lines(),
      'exit 0',
    ].join('\n');
    const child = startProgram([this.#shell, '-c', script, NAME], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
    });
    const gone = (): void => {
      if (this.#child === child) this.#child = null;
    };
    void child.ended.then(gone);
    child.unref();
    this.#child = child;
  }

  release(): void {
    const child = this.#child;
    this.#child = null;
    child?.stdin?.end('release\n');
  }
}

/**
 * A named pipe to a shell in another container, for a process that is the first in its PID namespace. The kernel ends
 * all other processes in the namespace along with it, so a child could do nothing. The reader collects lines, discards
 * them at `release`, and runs them when the pipe is closed (see deploy/node-cache). If there is no reader, addresses
 * and rules expire with their leases.
 */
export class TeardownPipe implements Teardown {
  readonly #file: string;
  readonly #lines: () => readonly string[];
  #pipe: number | null = null;

  /** @param lines returns the commands for the reader; called when a reader is found */
  constructor(file: string, lines: () => readonly string[]) {
    this.#file = file;
    this.#lines = lines;
  }

  /** True if a reader has the commands. */
  get isRead(): boolean {
    return this.#pipe !== null;
  }

  ensure(): void {
    // An empty line does nothing, and writing it fails if the reader has ended.
    if (this.#pipe !== null && this.#write('')) return;
    try {
      // Without a reader, this fails at once (ENXIO), as it does if the file is missing.
      this.#pipe = openSync(this.#file, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return;
    }
    this.#write(['release', ...this.#lines()].join('\n'));
  }

  release(): void {
    if (this.#pipe === null) return;
    if (this.#write('release')) this.#close();
  }

  #write(line: string): boolean {
    try {
      writeSync(this.#pipe!, `${line}\n`);
      return true;
    } catch (error) {
      // A busy reader has already received enough.
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true;
      this.#close();
      return false;
    }
  }

  #close(): void {
    const pipe = this.#pipe;
    this.#pipe = null;
    if (pipe !== null) closeSync(pipe);
  }
}
