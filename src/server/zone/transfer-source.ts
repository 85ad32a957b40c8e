import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';

/** The result of a step: a record, a pause (it has worked long enough for one turn), or the end. */
export type StreamStep = 'record' | 'pause' | 'end';

/** Yields records to be written as answers, one at a time. The first record comes without a pause. */
export interface RecordStream {
  /** Moves to the next record, initially to the first one. */
  next(): StreamStep;
  /** Maximum size of the record in bytes. */
  readonly size: number;
  /** Writes the record. */
  write(to: MessageWriter): void;
}

/** One version of a zone, for transfer. It does not change when the zone does. */
export interface Transferable {
  /** As text, for the log: `example.org.` */
  readonly zone: string;
  readonly serial: number;
  /** All records. The SOA record comes first and is not repeated at the end. */
  records(): RecordStream;
  /** Changes that lead to this version from older ones, oldest first. */
  readonly history: readonly Difference[];
}

/**
 * A plugin with zones to transfer; offered by `file`, `auto`, `secondary`, `kubernetes`, `etcd`, used by `transfer`.
 */
export interface TransferSource {
  /**
   * Returns the zone with this name (wire form, lower case), or null if there is no such zone or nothing to transfer.
   */
  find(name: Uint8Array, length: number): Transferable | null;
  /**
   * Reports all zones, and then each zone that changes.
   * @returns a function that ends it
   */
  watch(tell: (zone: Transferable) => void): () => void;
}

/** The port at which plugins offer their zones to `transfer`. */
export const transferSources: PluginPort<TransferSource> =
  definePort<TransferSource>('transfer sources');
