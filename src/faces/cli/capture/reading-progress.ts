/** Shows the progress of a command that reads a capture, dnstap stream or log. */
import type { Input } from '../../../tools/capture/read/recognised-input.ts';
import type { Reading } from '../../../tools/capture/read/reading.ts';
import type { Io } from '../command.ts';
import { openGiven } from '../named-capture.ts';
import { count } from '../../../server/base/counted.ts';

/** Interval between updates, milliseconds. */
const EVERY_MS = 500;

/**
 * Reads a whole file while showing the progress.
 * @param stopped returns true once no more data is needed
 * @throws Problem
 */
export async function readGiven(
  reading: Reading,
  path: string,
  io: Pick<Io, 'progress'>,
  stopped?: () => boolean,
): Promise<Input> {
  const input = await openGiven(path, reading.remarks);
  const progress = readingProgress(io, input, reading);
  try {
    await reading.readWhole(input, stopped);
  } finally {
    clearInterval(progress);
  }
  return input;
}

/** Shows the progress until the caller clears the returned timer. */
export function readingProgress(
  io: Pick<Io, 'progress'>,
  input: Input,
  reading: Pick<Reading, 'totals'>,
): NodeJS.Timeout {
  return regularProgress(io, () => {
    const { name, size } = input;
    // A log has no messages, because each line is a query with its reply. A list has neither.
    const { messages, exchanges } = reading.totals;
    const read = Math.max(messages, exchanges);
    return progressText(name, [
      size === null ? '' : `${Math.floor((100 * input.taken()) / size)} %`,
      read === 0 ? '' : count(read, 'message', 'messages'),
    ]);
  });
}

/** Shows the text regularly until the caller clears the returned timer. */
export function regularProgress(io: Pick<Io, 'progress'>, text: () => string): NodeJS.Timeout {
  return setInterval(() => io.progress(text), EVERY_MS);
}

/** `25 %, 12 messages of a.pcap`, or `reading a.pcap` if nothing is known. Omits empty parts. */
export function progressText(name: string, parts: readonly string[]): string {
  const known = parts.filter((part) => part !== '');
  return known.length === 0 ? `reading ${name}` : `${known.join(', ')} of ${name}`;
}
