import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** Longest time that CoreDNS may take to start or to refuse, ms. */
const PATIENCE_MS = 20_000;

interface Said {
  readonly error: string;
  readonly ended: boolean;
}

/** Builds the program that starts CoreDNS with one Corefile after another, in a copy of the module. */
export async function buildStarter(copy: string): Promise<string> {
  const folder = join(copy, 'starter');
  mkdirSync(folder);
  cpSync(join(import.meta.dirname, 'starter/main.go'), join(folder, 'main.go'));
  const program = join(copy, 'starter.bin');
  await promisify(execFile)('go', ['build', '-o', program, './starter'], { cwd: copy });
  return program;
}

/** CoreDNS, which starts with one Corefile after another; processes come and go as they must. */
export class Starter implements AsyncDisposable {
  readonly #program: string;
  readonly #folder: string;
  #process: StarterProcess | null = null;

  /** @param folder what relative paths are relative to */
  constructor(program: string, folder: string) {
    this.#program = program;
    this.#folder = folder;
  }

  /** Why CoreDNS refuses it; null: it takes it. */
  async refusal(text: string): Promise<string | null> {
    const fresh = this.#process === null;
    const process = (this.#process ??= new StarterProcess(this.#program, this.#folder));
    const said = await process.ask(text);
    if (said === null || !said.ended) {
      this.#process = null;
      await process.exited;
    }
    if (said !== null) return said.error === '' ? null : said.error;
    // Some plugins end the process: those of this Corefile, or what one before left behind.
    return fresh ? process.lastWords : this.refusal(text);
  }

  /** Whatever runs ends; the next Corefile begins another process. */
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

  constructor(program: string, folder: string) {
    this.#child = spawn(program, [], { cwd: folder, stdio: 'pipe' });
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
