/** Running programs of the machine. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What a program said, and how it ended. */
export interface Outcome {
  /** Its exit code; null: it was ended by a signal, or took too long. */
  readonly code: number | null;
  readonly out: string;
  /** Without line ends at its end. */
  readonly error: string;
}

/** A program that has not ended by then is ended, milliseconds: it waits for a lock for 5 s at most. */
const LIMIT_MS = 8000;
/** Characters of output: a node with 10 000 services has some 10 MiB of rules, but not in these tables. */
const OUTPUT_MAX = 16 * 1024 * 1024;

/** Runs a program to its end. Rejects if it cannot be started. */
export function runProgram(words: readonly string[], input = ''): Promise<Outcome> {
  const [program = '', ...rest] = words;
  return new Promise((resolve, reject) => {
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'pipe'] });
    const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    limit.unref();
    let out = '';
    let error = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (out.length < OUTPUT_MAX) out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (error.length < OUTPUT_MAX) error += text;
    });
    child.on('error', (cause) => {
      clearTimeout(limit);
      reject(cause);
    });
    child.on('close', (code) => {
      clearTimeout(limit);
      resolve({ code, out, error: error.trimEnd() });
    });
    // One that does not read its input ends as it likes.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** A PATH with the folders of programs for administrators, which that of a service may lack. */
export function wholePath(path: string): string {
  return [path, '/usr/sbin', '/sbin', '/usr/local/sbin', '/usr/bin', '/bin'].join(delimiter);
}

/** The path of a program in one of these folders, or null if it is not installed. */
export function findProgram(name: string, path: string): string | null {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}
