/** Prints a zone transfer one record at a time, as they arrive (RFC 5936, RFC 1995). */
import { Problem } from '../../../server/base/problem.ts';
import { SignedExchange } from '../../../server/transport/tsig-keys.ts';
import { TYPE, rcodeName } from '../../../server/wire/iana.ts';
import type { DnsRecord, Message } from '../../../server/wire/message.ts';
import { printData, printRecord } from '../../../server/wire/print.ts';
import { EXIT, type Io } from '../command.ts';
import type { QueryOptions } from './query-draft.ts';
import { readReply } from './query-message.ts';
import type { QueryServer } from './query-server.ts';
import { exchangeStream } from './query-transport.ts';
import { replyDocument, serverLines, wallSeconds } from './query-words.ts';

/**
 * True if the message is signed, which is optional in the middle of a transfer.
 * @throws Problem if the signature is wrong
 */
function proved(
  signed: SignedExchange,
  bytes: Uint8Array,
  { rcode }: Message,
  server: QueryServer,
): boolean {
  try {
    return signed.prove(bytes, wallSeconds());
  } catch (error) {
    const said = rcode === 0 ? '' : ` (${rcodeName(rcode)})`;
    throw unproved(server, `${(error as Error).message}${said}`);
  }
}

function unproved({ name }: QueryServer, why: string): Problem {
  return new Problem({
    code: 'bad-reply',
    text: `the transfer of ${name} is not authenticated: ${why}`,
  });
}

function endless({ name }: QueryServer, records: number): Problem {
  return new Problem({
    code: 'bad-reply',
    text: `the transfer of ${name} has not ended after ${records} records`,
    remedy: 'If the zone is that large, raise the limit: --max-records COUNT.',
  });
}

/** Prints a JSON array one element at a time, in the format of `JSON.stringify` with an indent of two. */
class StreamedArray {
  readonly #io: Io;
  #isEmpty = true;

  constructor(io: Io) {
    this.#io = io;
  }

  add(element: object): void {
    const text = JSON.stringify(element, null, 2).replace(/^/gm, '  ');
    this.#io.out(`${this.#isEmpty ? '[' : ','}\n${text}`);
    this.#isEmpty = false;
  }

  end(): void {
    if (!this.#isEmpty) this.#io.out('\n]\n');
  }
}

/**
 * Prints each message in a transfer as it arrives, reading only as fast as standard output accepts data.
 * @returns the exit code
 */
export async function transfer(
  message: Uint8Array,
  options: QueryOptions,
  server: QueryServer,
  io: Io,
): Promise<number> {
  const start = performance.now();
  const document = new StreamedArray(io);
  let end: string | null = null;
  let serial: number | null = null;
  let records = 0;
  let size = 0;
  let messages = 0;
  const tookMs = (): number => performance.now() - start;
  const signed = options.key === null ? null : new SignedExchange(options.key);
  const sent = signed?.sign(message, wallSeconds()) ?? message;
  const take = async (bytes: Uint8Array<ArrayBuffer>): Promise<boolean> => {
    const reply = readReply(bytes, server.name);
    const isProved = signed === null || proved(signed, bytes, reply, server);
    messages++;
    size += bytes.length;
    const serialOf = (record: DnsRecord | undefined): number | null =>
      record?.type === TYPE.SOA ? (record.data as { serial: number }).serial : null;
    if (reply.rcode !== 0) end = rcodeName(reply.rcode);
    else if (messages === 1 && serialOf(reply.answer[0]) === null) end = 'no SOA record';
    // Each message must contain a record (RFC 5936, section 2.2.1). Otherwise, a transfer could go on forever.
    else if (reply.answer.length === 0) end = 'a message without records';
    serial ??= serialOf(reply.answer[0]);
    records += reply.answer.length;
    if (options.output === 'json')
      document.add(replyDocument(bytes, options, server, options.transport, tookMs()));
    else
      for (const record of reply.answer)
        io.out(
          options.output === 'short'
            ? `${printData(record.type, record.data)}\n`
            : `${printRecord(record)}\n`,
        );
    const last = serialOf(reply.answer.at(-1)) === serial;
    // An IXFR reply with a single SOA record means that the zone is unchanged.
    const isLast = end !== null || (last && (records > 1 || options.type === TYPE.IXFR));
    if (isLast && !isProved) throw unproved(server, 'its last message is not signed');
    if (!isLast && records >= options.maxRecords) throw endless(server, options.maxRecords);
    await io.taken?.(io.signal);
    return isLast;
  };
  try {
    await exchangeStream(sent, options, server.address, take);
  } finally {
    document.end();
  }
  if (options.output !== 'json' && end !== null) io.out(`; Transfer failed: ${String(end)}.\n`);
  if (options.output === 'dig' && options.show.stats)
    io.out(
      `${serverLines(options, server, options.transport, tookMs())};; XFR size: ${records} records (messages ${messages}, bytes ${size})\n`,
    );
  return end === null ? EXIT.ok : EXIT.no;
}
