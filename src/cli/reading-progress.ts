/** How far a verb is that reads a capture, dnstap stream or log. */
import type { Input } from '../capture/input.ts';
import type { Reading } from '../capture/reading.ts';
import type { Io } from './command.ts';
import { count } from './page.ts';

/** How often it is looked, milliseconds. */
const EVERY_MS = 500;

/** Tells it until the timer is cleared. */
export function readingProgress(
  io: Pick<Io, 'progress'>,
  input: Input,
  { totals }: Pick<Reading, 'totals'>,
): NodeJS.Timeout {
  return setInterval(
    () =>
      io.progress(() => {
        const { name, size } = input;
        const share = size === null ? '' : `${Math.floor((100 * input.taken()) / size)} %, `;
        // A log has no messages: each of its lines is a query and its reply.
        const read = Math.max(totals.messages, totals.exchanges);
        return `${share}${count(read, 'message', 'messages')} of ${name}`;
      }),
    EVERY_MS,
  );
}
