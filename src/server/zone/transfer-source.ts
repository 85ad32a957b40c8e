import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { MessageWriter, WriteRecord } from '../wire/writer.ts';
import type { Difference } from './difference.ts';

/** The result of a step, which is a record, a pause (after enough work for one turn), or the end. */
export type StreamStep = 'record' | 'pause' | 'end';

/** Yields the records to write as answers, one at a time. There is no pause before the first record. */
export interface RecordStream {
  /** Moves to the next record, or to the first one initially. */
  next(): StreamStep;
  /** Maximum size of the record in bytes. */
  readonly size: number;
  write(to: MessageWriter): void;
}

/** Yields functions that write one record each. Null is a pause. */
export type TransferRecords = Generator<WriteRecord | null, void, undefined>;

/** @param size maximum size of any record in bytes */
export function streamOf(records: TransferRecords, size: number): RecordStream {
  let write: WriteRecord | null = null;
  return {
    next() {
      const { done, value } = records.next();
      if (done === true) return 'end';
      write = value;
      return value === null ? 'pause' : 'record';
    },
    size,
    write: (to) => write!(to),
  };
}

/** One version of a zone, to be transferred. It does not change when the zone does. */
export interface Transferable {
  /** As text, for the log: `example.org.` */
  readonly zone: string;
  readonly serial: number;
  /** All records. The SOA record comes first, and is not repeated at the end. */
  records(): RecordStream;
  /** Changes that lead from older versions to this one, oldest first. */
  readonly history: readonly Difference[];
}

/**
 * A plugin that has zones to transfer. `file`, `auto`, `secondary`, `kubernetes` and `etcd` offer one, and `transfer`
 * uses it.
 */
export interface TransferSource {
  /**
   * Returns the zone with this name (wire form, lower case), or null if there is no such zone or it has nothing to
   * transfer.
   */
  find(name: Uint8Array, length: number): Transferable | null;
  /**
   * Reports all zones at first, and then each zone that changes.
   * @returns a function that stops the reports
   */
  watch(tell: (zone: Transferable) => void): () => void;
}

/** The port where plugins offer their zones to `transfer`. */
export const transferSources: PluginPort<TransferSource> =
  definePort<TransferSource>('transfer sources');
