/** Capture output: text and JSON on standard output, packets in a file or on standard output. */
import { whyFailed } from '../../../server/base/why-failed.ts';
import { closeSync, openSync, writeSync } from 'node:fs';
import { Problem } from '../../../server/base/problem.ts';
import type { ListedClients } from '../../../tools/doctor/observe/client-list.ts';
import type { SeenExchange, SeenLookup } from '../../../tools/capture/pair/seen-exchange.ts';
import type { Frame } from '../../../tools/capture/read/packets/frame.ts';
import { PcapngWriter } from '../../../tools/capture/read/packets/pcapng.ts';
import type { OpenedConnection } from '../../../tools/capture/process/opened-connections.ts';
import type { Redaction } from '../../../tools/capture/redaction.ts';
import { frameBytes, TimeOrder } from '../../../tools/capture/read/packet-order.ts';
import { packetsOf } from '../../../tools/capture/written-packet.ts';
import { askerComment, connectionRow } from './asker-rows.ts';
import type { AddressNaming, PeerNaming } from './capture-names.ts';
import type { CaptureOptions } from './capture-options.ts';
import { clientDocuments, clientRows } from './client-rows.ts';
import {
  exchangeDocument,
  exchangeRow,
  lookupRows,
  type ExchangeDocument,
} from './capture-rows.ts';
import type { Io } from '../command.ts';
import { ONE_LINE_COLUMNS, wrap, type Paint } from '../page.ts';
import { coreVersion } from '../version/version.ts';

/** Approximate size of each write, in characters. */
const PIECE = 64 * 1024;
const INDENT = ' '.repeat(6);

/** Output handlers for matching exchanges, lookups and frames. */
export interface CaptureOutputs {
  exchange(exchange: SeenExchange): void;
  /** @param next connections that the client process opened afterwards to addresses in the answer */
  lookup(lookup: SeenLookup, next?: readonly OpenedConnection[]): void;
  /** Null if original frames are not needed because packets are built from exchanges. */
  readonly frame: ((frame: Frame) => void) | null;
  /** Called at the end if clients belong to the output rather than the summary. */
  clients(clients: ListedClients): void;
  flush(): void;
  close(): void;
}

/** @param asPassed true if original packets can be written, because the input has them and they need no redaction */
export function captureOutputs(
  options: CaptureOptions,
  parts: {
    readonly io: Io;
    readonly paint: Paint;
    readonly naming: PeerNaming;
    readonly addressNaming: AddressNaming;
    readonly redaction: Redaction | null;
    readonly asPassed: boolean;
    /** True to print lines in time order, false to print each as soon as it is known. */
    readonly inOrder: boolean;
  },
): CaptureOutputs {
  const { io, paint, naming, addressNaming, redaction, asPassed, inOrder } = parts;
  const { output, write } = options;
  let text = '';
  const say = (line: string): void => {
    text += `${line}\n`;
    if (text.length > PIECE) flush();
  };
  const lines = new TimeOrder(
    ({ line }: TimedLine) => say(line),
    // Several captures of the same period are read one after another.
    options.files.length > 1 ? Infinity : LATEST_MS,
    ({ line }) => 2 * line.length,
  );
  const sayAt = (timeMs: number, line: string): void =>
    inOrder ? lines.add({ timeMs, line }) : say(line);
  const flush = (): void => {
    if (text !== '') io.out(text);
    text = '';
    packets?.flush();
  };
  const packets = packetOutput(output === 'pcapng', write);
  const order = exchangeOrder((frame) => packets?.packet(frame));
  const { hidden, row, document } = exchangeTexts(parts);
  return {
    exchange(exchange) {
      if (packets !== null && !asPassed) order.exchange(hidden(exchange));
      if (output === 'json') sayAt(exchange.sentMs, JSON.stringify(document(exchange)));
      if (output === 'text') sayAt(exchange.sentMs, fitted(row(exchange), io.columns));
    },
    lookup(lookup, next = []) {
      if (output !== 'flow') return;
      const { name, candidates, exchanges } = lookup;
      const shown =
        redaction === null
          ? lookup
          : {
              ...lookup,
              name: redaction.name(name),
              candidates: candidates.map((each) => redaction.name(each)),
              exchanges: exchanges.map((each) => ({ ...hidden(each), client: each.client })),
            };
      const rows = [
        lookupRows(shown, naming, paint),
        ...next.map((each) => connectionRow(each, lookup.startMs, naming, paint)),
      ];
      sayAt(lookup.startMs, fitted(rows.join('\n'), io.columns));
    },
    frame: packets !== null && asPassed ? (frame) => packets.packet(frame) : null,
    clients(clients) {
      lines.end();
      if (output === 'json')
        for (const each of clientDocuments(clients, addressNaming)) say(JSON.stringify(each));
      if (output === 'clients')
        for (const row of clientRows(clients, addressNaming, { columns: io.columns, paint }))
          say(row);
    },
    flush,
    close() {
      lines.end();
      order.end();
      flush();
      packets?.close();
    },
  };
}

/** Formats exchanges with pod names, leaving out anything that is redacted. */
export interface ExchangeTexts {
  hidden(exchange: SeenExchange): SeenExchange;
  row(exchange: SeenExchange): string;
  document(exchange: SeenExchange): ExchangeDocument;
}

/** @param parts `naming` takes care of redacting names itself */
export function exchangeTexts(parts: {
  readonly naming: PeerNaming;
  readonly redaction: Redaction | null;
  readonly paint: Paint;
}): ExchangeTexts {
  const { naming, redaction, paint } = parts;
  const hidden = (exchange: SeenExchange): SeenExchange =>
    redaction === null ? exchange : redaction.exchange(exchange);
  // Names are looked up by original address, and everything else is redacted.
  const shown = (exchange: SeenExchange): SeenExchange =>
    redaction === null
      ? exchange
      : { ...hidden(exchange), client: exchange.client, server: exchange.server };
  const named = (peer: SeenExchange['client']): SeenExchange['client'] & { name?: string } => {
    const name = naming(peer);
    const plain = redaction === null ? peer : redaction.peer(peer);
    return /^[^:]*\//.test(name) || name.startsWith('node ') ? { ...plain, name } : plain;
  };
  return {
    hidden,
    row(exchange) {
      const plain = shown(exchange);
      const printed = plain === exchange ? exchange : { ...plain, hops: exchange.hops };
      return exchangeRow(printed, naming, paint);
    },
    document: (exchange) => exchangeDocument(shown(exchange), named),
  };
}

interface TimedLine {
  readonly timeMs: number;
  readonly line: string;
}

/** Wraps and indents lines that are wider than the terminal. */
function fitted(rows: string, columns: number): string {
  if (columns >= ONE_LINE_COLUMNS) return rows;
  return rows
    .split('\n')
    .flatMap((row) => {
      const [first = '', ...more] = wrap(row, '', { columns });
      const rest = more.length === 0 ? [] : wrap(more.join(' '), INDENT, { columns });
      return [first, ...rest];
    })
    .join('\n');
}

/** Maximum duration of an exchange, milliseconds. */
const LATEST_MS = 16_000;

/** Sorts packets by time, because exchanges are reported when they end. */
function exchangeOrder(give: (frame: Frame) => void): {
  exchange(exchange: SeenExchange): void;
  end(): void;
} {
  const order = new TimeOrder(give, LATEST_MS, frameBytes);
  return {
    exchange(exchange) {
      const comment = askerComment(exchange);
      for (const frame of packetsOf(exchange))
        order.add(comment === '' ? frame : { ...frame, comment });
    },
    end: () => order.end(),
  };
}

/**
 * Creates a file with packets that are built from exchanges.
 * @throws Problem
 */
export function packetsFile(path: string): {
  exchange(exchange: SeenExchange): void;
  close(): void;
} {
  const packets = openPackets(path);
  const order = exchangeOrder((frame) => packets.packet(frame));
  return {
    exchange: (exchange) => order.exchange(exchange),
    close() {
      order.end();
      packets.close();
    },
  };
}

interface PacketOutput {
  packet(frame: Frame): void;
  flush(): void;
  close(): void;
}

/** @param path a file to write, with or without standard output */
function packetOutput(toStdout: boolean, path: string | null): PacketOutput | null {
  const all: PacketOutput[] = [];
  if (path !== null) all.push(openPackets(path));
  if (toStdout)
    all.push(
      packetFile(
        (bytes) => void process.stdout.write(bytes),
        () => undefined,
      ),
    );
  if (all.length === 0) return null;
  return {
    packet: (frame) => all.forEach((each) => each.packet(frame)),
    flush: () => all.forEach((each) => each.flush()),
    close: () => all.forEach((each) => each.close()),
  };
}

function openPackets(path: string): PacketOutput {
  const told = <T>(action: () => T): T => {
    try {
      return action();
    } catch (error) {
      throw new Problem({
        code: 'capture-unwritable',
        text: `cannot write ${path}: ${whyFailed(error)}`,
        cause: error,
      });
    }
  };
  const fd = told(() => openSync(path, 'w', 0o600));
  return packetFile(
    (bytes) => {
      for (let at = 0; at < bytes.length;) at += told(() => writeSync(fd, bytes, at));
    },
    () => closeSync(fd),
  );
}

function packetFile(write: (bytes: Uint8Array) => void, close: () => void): PacketOutput {
  let pieces: Uint8Array[] = [];
  let size = 0;
  const flush = (): void => {
    if (size > 0) write(Buffer.concat(pieces));
    pieces = [];
    size = 0;
  };
  const writer = new PcapngWriter((bytes) => {
    pieces.push(bytes);
    size += bytes.length;
    if (size > PIECE) flush();
  }, `ndots ${coreVersion}`);
  return {
    packet: (frame) => writer.packet(frame),
    flush,
    close() {
      flush();
      close();
    },
  };
}
