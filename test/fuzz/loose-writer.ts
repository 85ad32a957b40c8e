/** Writes messages with uncompressed names. */
import type { WireName } from '../../src/server/wire/name.ts';
import { MessageWriter } from '../../src/server/wire/writer.ts';

/** Writes all names in full, as CoreDNS does in replies that fit without compression. */
export class LooseWriter extends MessageWriter {
  override name(name: WireName): void {
    super.name(name, false);
  }
}
