/** One input of the live model. */
import type { Reading } from '../capture/read/reading.ts';

/** What gives packets, messages and lines to the model. */
export interface LiveInput {
  readonly name: string;
  /** Takes what comes: `takeNetwork`, `takeMessage`, or `read` for a file or a log. */
  readonly reading: Reading;
  /** Notes packets that the kernel has dropped: all since the input began. */
  lostByKernel(packets: number): void;
  /** Nothing more comes. @param why for people, if it failed */
  close(why?: string): void;
}
