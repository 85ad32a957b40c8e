/** Writes messages with uncompressed names. */
import type { WireName } from '../../src/server/wire/name.ts';
import { MessageWriter } from '../../src/server/wire/writer.ts';

/** Writes all names in full, as CoreDNS does for replies that fit. */
export class LooseWriter extends MessageWriter {
  override name(name: WireName): void {
    super.name(name, false);
  }
}
