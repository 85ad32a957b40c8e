/** A shell that waits for the end of this process and then takes away what it has set up. */
import { startProgram, type StartedProgram } from '../linux/programs.ts';

/** What it is called in lists of processes. */
const NAME = 'ndots-node-cache-teardown';

/**
 * A child of one MiB that reads from a pipe of which only this process has the other end. Whatever
 * ends this process (SIGKILL, the out-of-memory killer), the kernel closes the pipe, and the shell
 * runs its lines. Whatever ends the shell, this process notices and starts another. Where both end
 * at once, or this process hangs, addresses and rules lapse by their leases.
 */
export class TeardownShell {
  readonly #shell: string;
  readonly #lines: () => readonly string[];
  #child: StartedProgram | null = null;

  /** @param lines what is run at the end of this process; asked when the shell is started */
  constructor(shell: string, lines: () => readonly string[]) {
    this.#shell = shell;
    this.#lines = lines;
  }

  /** Its process, or null. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Starts it, unless it runs. */
  ensure(): void {
    if (this.#child !== null) return;
    const script = [
      // A signal to the process group is meant for the node cache: the shell has to outlive it to
      // clean up.
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

  /** It ends without doing anything. */
  release(): void {
    const child = this.#child;
    this.#child = null;
    child?.stdin?.end('release\n');
  }
}
