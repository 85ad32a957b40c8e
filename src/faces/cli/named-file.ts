/** Reads files named on the command line, or standard input. */
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { errorCode } from '../../server/base/error-code.ts';
import { printBytes } from '../../server/base/limits.ts';
import { Problem } from '../../server/base/problem.ts';
import { FILE_MAX, readGivenBytes, readStandardInput } from '../../server/base/read-file.ts';
import { whyFailed } from '../../server/base/why-failed.ts';
import { noText } from '../../tools/capture/read/foreign-file.ts';
import type { Io } from './command.ts';

/**
 * Returns a file's text, in which invalid UTF-8 becomes U+FFFD.
 * @param path `-` for standard input
 * @param what the file is, for messages: `list of names`
 * @param most limit in bytes
 * @throws Problem (`unreadable-file`, also for binary files; `file-too-large`)
 */
export function readText(path: string, what: string, most: number = FILE_MAX.manifest): string {
  try {
    return path === '-' ? readStandardInput(most) : textOf(readGivenBytes(path, most), path, what);
  } catch (error) {
    if (error instanceof Problem) throw error;
    if (errorCode(error) === 'EFBIG') throw tooLarge(path, what, most);
    throw new Problem({
      code: 'unreadable-file',
      text: `${path}: cannot read the ${what}: ${whyFailed(error)}`,
      cause: error,
    });
  }
}

/** Like `readText`, for commands that handle Ctrl-C while reading standard input. */
export async function givenText(
  path: string,
  what: string,
  io: Io,
  most: number = FILE_MAX.manifest,
): Promise<string> {
  return path === '-' ? io.stdin(what, most) : readText(path, what, most);
}

/** True for a pipe, which may be slow and cannot be read twice. */
export function comesOnce(file: string): boolean {
  try {
    return file === '-' || !statSync(file).isFile();
  } catch {
    // The command that opens the file reports why it cannot be read.
    return false;
  }
}

/**
 * Reads a whole stream as text, for `Io.stdin`.
 * @throws Problem (`file-too-large`)
 */
export async function readStream(stream: Readable, what: string, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > most) throw tooLarge('standard input', what, most);
    chunks.push(chunk);
  }
  return textOf(Buffer.concat(chunks), 'standard input', what);
}

function textOf(bytes: Buffer, name: string, what: string): string {
  const foreign = noText(bytes);
  if (foreign === null) return bytes.toString('utf8');
  throw new Problem({
    code: 'unreadable-file',
    text: `${name}: cannot read the ${what}: it is ${foreign.what}`,
    remedy: foreign.remedy ?? undefined,
  });
}

function tooLarge(path: string, what: string, most: number): Problem {
  return new Problem({
    code: 'file-too-large',
    text: `${path === '-' ? 'standard input' : path}: the ${what} is larger than ${printBytes(most)}`,
  });
}
