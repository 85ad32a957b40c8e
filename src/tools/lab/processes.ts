/** Programs that run on a lab's machines, each using its machine's network and files. */
import {
  runProgram,
  startProgram,
  type StartedProgram,
  type ProgramResult,
} from '../../server/runtime/programs.ts';
import { wordsBehind, type OwnFiles } from './files.ts';
import type { Environment } from '../../server/base/environment.ts';

export interface ProgramPlace {
  readonly name: string;
  readonly files: OwnFiles;
}

/** A program that keeps running in a machine. */
export interface MachineProgram {
  readonly program: StartedProgram;
  /** The tail of both output streams. */
  output(): string;
}

/** The number of characters kept per stream. */
const OUTPUT_MAX = 16_000;

export class Processes {
  readonly #env: Environment;
  readonly #running = new Map<string, MachineProgram>();
  #count = 0;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Runs a program on a machine until it ends. */
  run(
    { name, files }: ProgramPlace,
    words: readonly string[],
    limitMs = 60_000,
  ): Promise<ProgramResult> {
    return runProgram(wordsBehind(name, files, words), { limitMs });
  }

  /** Starts a long-running program under a key. */
  start(
    { name, files }: ProgramPlace,
    words: readonly string[],
    key = `program ${++this.#count}`,
    env: Readonly<Record<string, string>> = {},
  ): MachineProgram {
    const program = startProgram(wordsBehind(name, files, words), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...this.#env, ...env },
    });
    const [out, error] = [program.text(1, OUTPUT_MAX, true), program.text(2, OUTPUT_MAX, true)];
    const running = { program, output: () => `${out()}${error()}` };
    this.#running.set(key, running);
    return running;
  }

  /** Null if nothing runs under the key. */
  find(key: string): MachineProgram | null {
    return this.#running.get(key) ?? null;
  }

  rename(from: string, to: string): void {
    const running = this.#running.get(from);
    this.#running.delete(from);
    if (running !== undefined) this.#running.set(to, running);
  }

  /** Waits until it has exited. */
  async stop(key: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const running = this.#running.get(key);
    this.#running.delete(key);
    await running?.program.stop(signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ program }) => program.stop('SIGKILL')));
    this.#running.clear();
  }
}
