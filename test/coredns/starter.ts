import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** The longest CoreDNS may take to start or to refuse a Corefile, in milliseconds. */
const PATIENCE_MS = 20_000;

interface Said {
  readonly error: string;
  readonly ended: boolean;
}

/** Builds, in a copy of the module, the program that starts CoreDNS with one Corefile after another. */
export async function buildStarter(copy: string): Promise<string> {
  const directory = join(copy, 'starter');
  mkdirSync(directory);
  cpSync(join(import.meta.dirname, 'starter/main.go'), join(directory, 'main.go'));
  const program = join(copy, 'starter.bin');
  await promisify(execFile)('go', ['build', '-o', program, './starter'], { cwd: copy });
  return program;
}

/** A CoreDNS that starts with one Corefile after another. Processes are restarted as needed. */
export class Starter implements AsyncDisposable {
  readonly #program: string;
  readonly #directory: string;
  #process: StarterProcess | null = null;

  /** @param directory the base for relative paths */
  constructor(program: string, directory: string) {
    this.#program = program;
    this.#directory = directory;
  }

  /** CoreDNS's problem with the text, or null if it accepts the text. */
  async refusal(text: string): Promise<string | null> {
    const fresh = this.#process === null;
    const process = (this.#process ??= new StarterProcess(this.#program, this.#directory));
    const said = await process.ask(text);
    if (said === null || !said.ended) {
      this.#process = null;
      await process.exited;
    }
    if (said !== null) return said.error === '' ? null : said.error;
    // Some plugins exit the process, because of either this Corefile or leftovers from an earlier one.
    return fresh ? process.lastWords : this.refusal(text);
  }

  /** Kills the process. The next Corefile starts a new one. */
  async end(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    process?.kill();
    await process?.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }
}

class StarterProcess {
  readonly exited: Promise<void>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string, undefined>;
  #errors = '';

  constructor(program: string, directory: string) {
    this.#child = spawn(program, [], { cwd: directory, stdio: 'pipe' });
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#errors = `${this.#errors}${chunk.toString()}`.slice(-4000);
    });
    this.#child.stdin.on('error', () => undefined);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.exited = new Promise((resolve) => this.#child.on('exit', () => resolve()));
  }

  async ask(text: string): Promise<Said | null> {
    this.#child.stdin.write(`${JSON.stringify({ text })}\n`);
    const timer = setTimeout(() => this.kill(), PATIENCE_MS);
    const { value } = await this.#lines.next();
    clearTimeout(timer);
    return value === undefined ? null : (JSON.parse(value) as Said);
  }

  get lastWords(): string {
    return this.#errors.trim().split('\n').at(-1) ?? '';
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
