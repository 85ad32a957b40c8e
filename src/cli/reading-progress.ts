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
        return `${share}${count(totals.messages, 'message', 'messages')} of ${name}`;
      }),
    EVERY_MS,
  );
}
