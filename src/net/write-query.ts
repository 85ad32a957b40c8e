import { copyBytes } from '../base/copy-bytes.ts';
import type { Query } from '../wire/query.ts';

/**
 * Writes the query as it is sent upstream: its bytes with its current flags, `upstreamFlags`, and
 * another id.
 * @returns the length
 */
export function writeQuery(query: Query, id: number, out: Uint8Array, at: number): number {
  const size = query.end - query.start;
  copyBytes(query.bytes, query.start, out, at, size);
  out[at] = id >> 8;
  out[at + 1] = id & 0xff;
  const flags = query.flags | query.upstreamFlags;
  out[at + 2] = flags >> 8;
  out[at + 3] = flags & 0xff;
  return size;
}
