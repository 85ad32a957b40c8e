/**
 * Exports the packets of selected lookups as recorded, with clients and findings as comments. The capture is read again
 * because the live model stores no packets.
 */
import { Problem } from '../../../server/base/problem.ts';
import { filterOf, type GivenFilter } from '../../../tools/capture/filter.ts';
import type { SeenExchange } from '../../../tools/capture/pair/seen-exchange.ts';
import { openFile } from '../../../tools/capture/read/input.ts';
import { PcapngWriter } from '../../../tools/capture/read/packets/pcapng.ts';
import { Remarks } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading, type ReadingEvents } from '../../../tools/capture/read/reading.ts';
import type { Parties } from '../../../tools/watch/parties.ts';
import type { FindingRow } from '../../../tools/watch/view.ts';
import { coreVersion } from '../version/version.ts';

/** Limit of packets per download. */
const PACKETS_MAX = 500_000;

/** The selection, and the capture that contains it. */
export interface SelectionParts {
  readonly file: string;
  readonly ports: readonly number[];
  readonly filters: readonly GivenFilter[];
  /** Start times of the selected lookups, milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly parties: Parties;
  readonly findings: readonly FindingRow[];
  readonly signal: AbortSignal;
}

/**
 * Why a file's packets are not available, as a message, or null if they are.
 * @throws Problem if it cannot be read
 */
export async function whyNoPackets(file: string): Promise<string | null> {
  const input = await openFile(file, new Remarks());
  input.close();
  if (input.format === 'pcap' || input.format === 'pcapng') return null;
  return input.format === 'dnstap'
    ? 'A dnstap stream contains messages but no packets.'
    : 'A query log contains no packets.';
}

/** @throws Problem if the selection is empty or too large */
export async function writeSelectedPackets(
  parts: SelectionParts,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const comments = await selectedFrames(parts);
  if (comments.size === 0)
    throw new Problem({ code: 'nothing-selected', text: 'no packet in the capture is selected' });
  let pieces: Uint8Array[] = [];
  const writer = new PcapngWriter((bytes) => void pieces.push(bytes), `ndots ${coreVersion}`);
  const events: ReadingEvents = {
    frame: (frame) => {
      const comment = comments.get(frame.number);
      if (comment !== undefined) writer.packet(comment === '' ? frame : { ...frame, comment });
    },
  };
  const flush = async (): Promise<void> => {
    if (pieces.length === 0) return;
    const bytes = Buffer.concat(pieces);
    pieces = [];
    await write(bytes);
  };
  await readFile(parts, events, flush);
  await flush();
}

/** Comments on the selected frames, by frame number. */
async function selectedFrames(parts: SelectionParts): Promise<ReadonlyMap<number, string>> {
  const { filters, fromMs, toMs, parties, findings } = parts;
  const isWanted = filterOf(filters, parties.owners);
  const found = findingsByQuery(findings);
  const comments = new Map<number, string>();
  const events: ReadingEvents = {
    lookup: ({ startMs, exchanges }) => {
      if (startMs < fromMs || startMs > toMs || !exchanges.some(isWanted)) return;
      for (const exchange of exchanges) {
        const comment = commentOf(exchange, parties, found);
        for (const frame of [exchange.queryFrame, exchange.replyFrame])
          if (frame > 0) comments.set(frame, comment);
      }
      if (comments.size > PACKETS_MAX)
        throw new Problem({
          code: 'too-many-packets',
          text: `more than ${PACKETS_MAX} packets are selected`,
          hint: 'Narrow the filter, or use the command shown.',
        });
    },
  };
  await readFile(parts, events);
  return comments;
}

async function readFile(
  { file, ports, signal }: SelectionParts,
  events: ReadingEvents,
  piece: () => Promise<void> = async () => undefined,
): Promise<void> {
  const reading = new Reading(events, ports);
  const input = await openFile(file, reading.remarks, signal);
  async function* chunks(): AsyncIterable<Uint8Array> {
    for await (const chunk of input.chunks) {
      yield chunk;
      await piece();
    }
  }
  await reading.readWhole({ ...input, chunks: chunks() }, () => signal.aborted);
}

function queryKey(client: string, sentMs: number, name: string): string {
  return `${client} ${Math.round(sentMs * 10)} ${name}`;
}

function findingsByQuery(findings: readonly FindingRow[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { code, title, examples } of findings)
    for (const { client, sentMs, name } of examples) {
      const key = queryKey(client.address, sentMs, name);
      found.set(key, [...(found.get(key) ?? []), `${code} ${title}`]);
    }
  return found;
}

function commentOf(
  { client, sentMs, name }: SeenExchange,
  parties: Parties,
  found: ReadonlyMap<string, readonly string[]>,
): string {
  const { kind, name: own, workload, node } = parties.at(client.address, sentMs);
  const details = [workload, node === '' ? '' : `on ${node}`].filter((part) => part !== '');
  const who =
    own === '' ? '' : `${kind} ${own}${details.length === 0 ? '' : ` (${details.join(', ')})`}`;
  const lines = [who, ...(found.get(queryKey(client.address, sentMs, name)) ?? [])];
  return lines.filter((line) => line !== '').join('\n');
}
