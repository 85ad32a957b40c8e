/** Pauses reading from a connection. */
import type { Socket } from 'node:net';

/** The undocumented object that Node reads from. */
interface Handle {
  /** True if the runtime believes that it is reading. */
  readonly reading?: boolean;
  readStart?(): number;
  readStop?(): number;
}

/**
 * Stops reading from the system immediately. `pause` would read another 64 KiB from each connection into memory that is
 * not counted. Node would also read 2 MiB from one connection before turning to the next.
 * @returns a function that resumes reading, or null if reading cannot be stopped
 */
export function haltReading(socket: Socket): (() => void) | null {
  const handle = handleOf(socket);
  if (handle?.readStart === undefined || handle.readStop === undefined) return null;
  handle.readStop();
  return () => {
    // By then, it may have been closed, or paused for another reason.
    const now = handleOf(socket);
    if (now?.reading === true) now.readStart!();
  };
}

function handleOf(socket: Socket): Handle | null {
  return (socket as { readonly _handle?: Handle | null })._handle ?? null;
}
