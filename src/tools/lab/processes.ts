/**
 * Programs that run in the machines of a lab: each in its machine's network, with its machine's
 * files.
 */
import {
  runProgram,
  startProgram,
  type StartedProgram,
  type ProgramResult,
} from '../../server/runtime/programs.ts';
import { call } from './commands.ts';
import { wordsBehind, type OwnFiles } from './files.ts';
import type { Environment } from '../../server/base/environment.ts';

/** Where a program runs. */
export interface ProgramPlace {
  /** The machine. */
  readonly name: string;
  readonly files: OwnFiles;
}

/** A program that keeps running in a machine. */
export interface MachineProgram {
  readonly program: StartedProgram;
  /** The end of its output, of both streams. */
  output(): string;
}

/** The most characters kept of each stream of such a program. */
const OUTPUT_MAX = 16_000;

/** All that runs in a lab. */
export class Processes {
  readonly #env: Environment;
  readonly #running = new Map<string, MachineProgram>();
  #count = 0;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Runs a program in a machine, to its end; nothing else goes on meanwhile. */
  call({ name, files }: ProgramPlace, words: readonly string[], limitMs?: number): ProgramResult {
    return call(wordsBehind(name, files, words), limitMs === undefined ? {} : { limitMs });
  }

  /** Runs a program in a machine while others go on. */
  run(
    { name, files }: ProgramPlace,
    words: readonly string[],
    limitMs = 60_000,
  ): Promise<ProgramResult> {
    return runProgram(wordsBehind(name, files, words), { limitMs });
  }

  /** Starts a program that goes on, under a key by which it is found again. */
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

  /** What runs under a key; null: nothing does. */
  find(key: string): MachineProgram | null {
    return this.#running.get(key) ?? null;
  }

  /** Another key for what runs under the first. */
  rename(from: string, to: string): void {
    const running = this.#running.get(from);
    this.#running.delete(from);
    if (running !== undefined) this.#running.set(to, running);
  }

  /** Ends what runs under a key, and waits until it is gone. */
  async stop(key: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const running = this.#running.get(key);
    this.#running.delete(key);
    await running?.program.stop(signal);
  }

  /** Ends all of it. */
  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ program }) => program.stop('SIGKILL')));
    this.#running.clear();
  }
}
