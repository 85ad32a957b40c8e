/** Opens captures given on the command line. */
import { openFile, openStream } from '../../tools/capture/read/input.ts';
import type { Input } from '../../tools/capture/read/recognised-input.ts';
import type { Remarks } from '../../tools/capture/read/packets/remarks.ts';

/**
 * Opens a capture, dnstap stream or log, where `-` is standard input.
 * @throws Problem
 */
export async function openGiven(
  path: string,
  remarks: Remarks,
  stopped?: AbortSignal,
): Promise<Input> {
  return path === '-'
    ? openStream('standard input', process.stdin, remarks, stopped)
    : openFile(path, remarks, stopped);
}
