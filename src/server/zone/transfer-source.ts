import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';

/**
 * The result of a step: a record, nothing yet (it has worked long enough for one turn), or the end.
 */
export type StreamStep = 'record' | 'pause' | 'end';

/**
 * Gives records one after the other, to be written as answers. The first record comes without a
 * pause.
 */
export interface RecordStream {
  /** Continues with the next record; at first with the first one. */
  next(): StreamStep;
  /** The most bytes that the record takes. */
  readonly size: number;
  /** Writes the record. */
  write(to: MessageWriter): void;
}

/** One version of a zone, for transfer. It does not change when the zone does. */
export interface Transferable {
  /** As text, for the log: `example.org.` */
  readonly zone: string;
  readonly serial: number;
  /** All records; the SOA record comes first and is not repeated at the end. */
  records(): RecordStream;
  /** Changes that lead here from older versions, oldest first. */
  readonly history: readonly Difference[];
}

/**
 * A plugin that has zones to transfer: offered by `file`, `auto`, `secondary`, `kubernetes`,
 * `etcd`, asked by `transfer`.
 */
export interface TransferSource {
  /**
   * The zone of this name (wire form, lower case); null: it has no such zone, or nothing to give.
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
