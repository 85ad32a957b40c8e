import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';

/**
 * What a stream of records comes to: a record, nothing yet (it has worked long enough for one
 * turn), or its end.
 */
export type StreamStep = 'record' | 'pause' | 'end';

/**
 * Gives records one after the other, to be written as answers. The first record comes without a
 * pause.
 */
export interface RecordStream {
  /** Goes on to the next record, at first to the first one. */
  next(): StreamStep;
  /** The most bytes that the record takes. */
  readonly size: number;
  /** Writes the record. */
  write(to: MessageWriter): void;
}

/**
 * One version of a zone, for transfer. It does not change, whatever happens to the zone meanwhile.
 */
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
  /** Tells of zones that have changed, and of all that are there at first. @returns ends it */
  watch(tell: (zone: Transferable) => void): () => void;
}

/** Where plugins offer their zones, and `transfer` finds them. */
export const transferSources: PluginPort<TransferSource> =
  definePort<TransferSource>('transfer sources');
