/** Finds, runs and starts other programs on this machine. */
import { spawn, spawnSync, type ChildProcess, type StdioOptions } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { errorCode } from '../base/error-code.ts';

/** Exit status and output of a finished program. */
export interface ProgramResult {
  /** Exit code; null if it was ended by a signal or the time limit. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
}

export interface RunSettings {
  readonly input?: string;
  /** Milliseconds after which it is killed with SIGKILL. */
  readonly limitMs?: number;
  /** Maximum number of characters stored per stream. */
  readonly outputMax?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const LIMIT_MS = 60_000;
const OUTPUT_MAX = 64 * 1024 * 1024;

/** Runs a program to completion without blocking this thread. Rejects if it cannot be started: ENOENT, EACCES. */
export async function runProgram(
  words: readonly string[],
  { input = '', limitMs = LIMIT_MS, outputMax = OUTPUT_MAX, env }: RunSettings = {},
): Promise<ProgramResult> {
  const began = performance.now();
  const program = startProgram(words, { stdio: ['pipe', 'pipe', 'pipe'], env });
  const [stdout, stderr] = [1, 2].map((stream) => program.text(stream, outputMax));
  const limit = setTimeout(() => program.signal('SIGKILL'), limitMs);
  limit.unref();
  program.stdin?.end(input);
  const { code, error } = await program.closed;
  clearTimeout(limit);
  if (error !== null) throw error;
  return { code, stdout: stdout!(), stderr: stderr!(), tookMs: performance.now() - began };
}

/** Does the same but blocks this thread. Throws if the program cannot be started. */
export function runProgramNow(
  words: readonly string[],
  { input = '', limitMs = LIMIT_MS, outputMax = OUTPUT_MAX, env }: RunSettings = {},
): ProgramResult {
  const [program = '', ...rest] = words;
  const began = performance.now();
  const { status, stdout, stderr, error } = spawnSync(program, rest, {
    ...{ input, encoding: 'utf8', timeout: limitMs, killSignal: 'SIGKILL', maxBuffer: outputMax },
    ...(env === undefined ? {} : { env }),
  });
  const cause = errorCode(error);
  if (error !== undefined && cause !== 'ETIMEDOUT' && cause !== 'ENOBUFS') throw error;
  return { code: status, stdout, stderr, tookMs: performance.now() - began };
}

export interface ProgramEnding {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The reason it could not be started, or null. */
  readonly error: Error | null;
}

export interface StartSettings {
  /** As in `node:child_process`; by default, nothing is inherited. */
  readonly stdio?: StdioOptions;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Starts it in a separate session, so that signals that end this process do not reach it. */
  readonly detached?: boolean;
  readonly cwd?: string;
}

/** Starts a program without waiting for it to end. If it cannot be started, it counts as ended with an `error`. */
export function startProgram(
  words: readonly string[],
  settings: StartSettings = {},
): StartedProgram {
  const [program = '', ...rest] = words;
  const { stdio = 'ignore', env, detached = false, cwd } = settings;
  return new StartedProgram(
    spawn(program, rest, {
      ...{ stdio, detached },
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
    }),
  );
}

export class StartedProgram {
  readonly ended: Promise<ProgramEnding>;
  /** Resolves when its streams have ended as well. */
  readonly closed: Promise<ProgramEnding>;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    const when = (event: 'exit' | 'close'): Promise<ProgramEnding> =>
      new Promise((resolve) => {
        child.once('error', (error) => {
          if (child.pid === undefined) resolve({ code: null, signal: null, error });
        });
        child.once(event, (code, signal) => resolve({ code, signal, error: null }));
      });
    this.ended = when('exit');
    this.closed = when('close');
    // A program that does not read its input may end while we write to it.
    child.stdin?.on('error', () => undefined);
  }

  /** The process id, or undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    const { pid, exitCode, signalCode } = this.#child;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  get stdin(): Writable | null {
    return this.#child.stdin;
  }

  /** Returns its output stream for a descriptor that is a pipe. */
  stream(descriptor: number): Readable {
    return this.#child.stdio[descriptor] as Readable;
  }

  /**
   * Collects its output: the first `most` characters, or with `last` the last ones. Call the result for the output so
   * far.
   */
  text(descriptor: number, most: number, last = false): () => string {
    let text = '';
    const stream = this.stream(descriptor);
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      if (last) text = `${text}${chunk}`.slice(-most);
      else if (text.length < most) text = `${text}${chunk}`.slice(0, most);
    });
    return () => text;
  }

  /** Sends a signal; does nothing if it has already ended. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it, and waits until it has exited. */
  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<ProgramEnding> {
    if (this.isRunning) this.signal(signal);
    return this.ended;
  }

  /** Lets this process end before it. */
  unref(): void {
    this.#child.unref();
  }
}

/** Returns PATH extended by the directories of administration programs, which a service's PATH may lack. */
export function wholePath(path: string): string {
  return [path, '/usr/sbin', '/sbin', '/usr/local/sbin', '/usr/bin', '/bin'].join(delimiter);
}

/** Returns the path of a program in one of these directories, or null if it is not installed. */
export function findProgram(name: string, path: string): string | null {
  for (const directory of path.split(delimiter)) {
    if (directory === '') continue;
    const file = join(directory, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}
