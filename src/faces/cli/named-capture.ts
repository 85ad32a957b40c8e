/** Captures that a person names on a command line, and standard input in the place of one. */
import { openFile, openStream } from '../../tools/capture/read/input.ts';
import type { Input } from '../../tools/capture/read/recognised-input.ts';
import type { Remarks } from '../../tools/capture/read/packets/remarks.ts';

/** A capture, dnstap stream or log that a person named; `-` is standard input. @throws Problem */
export async function openGiven(
  path: string,
  remarks: Remarks,
  stopped?: AbortSignal,
): Promise<Input> {
  return path === '-'
    ? openStream('standard input', process.stdin, remarks, stopped)
    : openFile(path, remarks, stopped);
}
