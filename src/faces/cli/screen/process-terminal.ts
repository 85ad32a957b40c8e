/** The process's own terminal, as a `Terminal`. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import type { Terminal } from './full-screen.ts';

/** Signals that would end the process before it can restore the terminal. */
const DEADLY = ['SIGHUP', 'SIGQUIT', 'SIGABRT'] as const;

/**
 * Opens the process's terminal. Returns null if standard output is not a terminal or keys cannot be read.
 * @param keysElsewhere true if standard input is data, so that keys have to come from the controlling terminal
 */
export function processTerminal(keysElsewhere: boolean): Terminal | null {
  const { stdout } = process;
  if (stdout.isTTY !== true || process.env['TERM'] === 'dumb') return null;
  const keys = keysElsewhere || !process.stdin.isTTY ? controllingTerminal() : process.stdin;
  return keys === null ? null : new ProcessTerminal(stdout, keys);
}

function controllingTerminal(): ReadStream | null {
  let fd: number;
  try {
    fd = openSync('/dev/tty', 'r');
  } catch {
    // The process has no terminal, as under cron or in a container without -t.
    return null;
  }
  try {
    return new ReadStream(fd);
  } catch {
    closeSync(fd);
    return null;
  }
}

class ProcessTerminal implements Terminal {
  readonly #output: NodeJS.WriteStream;
  readonly #keys: ReadStream;
  #ending: () => void = () => undefined;
  readonly #end = (): void => this.#ending();
  readonly #die = (signal: NodeJS.Signals): void => {
    this.#ending();
    for (const each of DEADLY) process.removeListener(each, this.#die);
    process.kill(process.pid, signal);
  };

  constructor(output: NodeJS.WriteStream, keys: ReadStream) {
    this.#output = output;
    this.#keys = keys;
  }

  get columns(): number {
    return this.#output.columns || 80;
  }

  get rows(): number {
    return this.#output.rows || 24;
  }

  write(text: string): boolean {
    return this.#output.write(text);
  }

  writeNow(text: string): void {
    const bytes = Buffer.from(text, 'utf8');
    // Limits the number of attempts, because a paused terminal (Ctrl-S) could block the exit.
    for (let at = 0, tries = 0; at < bytes.length && tries < 100; tries++)
      try {
        at += writeSync(1, bytes, at);
      } catch {
        // EAGAIN: retry. EIO: the terminal is gone.
      }
  }

  raw(on: boolean): void {
    try {
      this.#keys.setRawMode(on);
    } catch {
      // EIO means that the terminal is gone, so there is nothing to restore.
    }
    if (on) this.#keys.resume();
    else this.#keys.pause();
  }

  listen(listeners: Parameters<Terminal['listen']>[0]): void {
    this.#ending = listeners.ending;
    this.#keys.on('data', (bytes: Buffer | string) =>
      listeners.input(typeof bytes === 'string' ? Buffer.from(bytes) : bytes),
    );
    this.#keys.on('error', () => undefined);
    this.#output.on('resize', listeners.resized);
    this.#output.on('drain', listeners.drained);
    process.on('SIGCONT', listeners.resumed);
    // The monitor runs before the runtime prints the error, which therefore appears on the normal screen.
    process.on('uncaughtExceptionMonitor', this.#end);
    process.on('exit', this.#end);
    for (const signal of DEADLY) process.on(signal, this.#die);
    process.on('SIGTSTP', () => listeners.suspended());
  }

  suspend(): void {
    // Stops the whole job as the shell expects, including npx and any scripts waiting for this process.
    const listening = process.listeners('SIGTSTP');
    process.removeAllListeners('SIGTSTP');
    process.kill(0, 'SIGTSTP');
    for (const each of listening) process.on('SIGTSTP', each as () => void);
  }

  close(): void {
    this.#ending = () => undefined;
    this.#keys.pause();
  }
}
