import { nameLength, printName } from '../wire/name.ts';
import { SECTION, type MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';
import type { PackedZone } from './packed-zone.ts';
import { writeData } from './record-data.ts';
import { RecordCursor } from './record-cursor.ts';
import type { RecordStream, StreamStep, Transferable, TransferSource } from './transfer-source.ts';
import { ZoneData } from './zone-data.ts';
import type { ServedZone, ZoneReplica } from './zone-replica.ts';

/** Offers a replica's zones for transfer. */
export function zoneTransfers(replica: ZoneReplica): TransferSource {
  const transferable = (zone: ServedZone | null): Transferable | null => {
    if (zone === null || zone.data === null || zone.expired) return null;
    return recordsOf(zone.data.packed, zone.history);
  };
  return {
    find(name, length) {
      const zone = replica.zones.find(name, length);
      return zone !== null && zone.origin.length === length ? transferable(zone) : null;
    },
    watch(tell) {
      const changed = (zone: ServedZone): void => {
        const found = transferable(zone);
        if (found !== null) tell(found);
      };
      for (const zone of replica.zones.all()) changed(zone);
      return replica.watch(changed);
    },
  };
}

function recordsOf(packed: PackedZone, history: readonly Difference[]): Transferable {
  return {
    zone: printName(packed.origin),
    serial: packed.serial,
    history,
    records: () => new ZoneStream(packed),
  };
}

class ZoneStream implements RecordStream {
  readonly #zone: ZoneData;
  readonly #cursor: RecordCursor;

  constructor(packed: PackedZone) {
    this.#zone = new ZoneData(packed);
    this.#cursor = new RecordCursor(this.#zone);
  }

  next(): StreamStep {
    return this.#cursor.next() ? 'record' : 'end';
  }

  get size(): number {
    const { owner, length } = this.#cursor;
    return nameLength(owner) + 10 + length;
  }

  write(to: MessageWriter): void {
    const cursor = this.#cursor;
    to.open(SECTION.answer, cursor.owner, cursor.type, cursor.ttl);
    writeData(to, cursor.type, this.#zone.data, cursor.at, cursor.length);
    to.close();
  }
}
