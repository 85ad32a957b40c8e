/** `ndots query`: one plain DNS query. */
import { FLAG, TYPE } from '../wire/iana.ts';
import type { Message } from '../wire/message.ts';
import { printData } from '../wire/print.ts';
import { EXIT, failure, wantsColour, type Command, type Io } from './command.ts';
import { paintFor, type Paint } from './page.ts';
import type { QueryOptions } from './query-draft.ts';
import { buildQuery, readReply } from './query-message.ts';
import { parseQueryOptions } from './query-options.ts';
import { printReply } from './query-print.ts';
import { searchNames, serverFor, type QueryServer } from './query-server.ts';
import { traceFromRoot } from './query-trace.ts';
import { transfer } from './query-transfer.ts';
import { exchange, type AnsweredExchange } from './query-transport.ts';
import { replyDocument, serverLines } from './query-words.ts';

/** The verb `query`. */
export const query: Command = { name: 'query', run };

async function run(words: readonly string[], io: Io): Promise<number> {
  let worst: number = EXIT.ok;
  for (const options of parseQueryOptions(words)) {
    const code = await ask(options, io).catch((error: unknown) => failure('query', error, io));
    worst = Math.max(worst, code);
  }
  return worst;
}

async function ask(options: QueryOptions, io: Io): Promise<number> {
  const paint = paintFor(wantsColour(options, io));
  const server = await serverFor(options);
  if (options.trace) return traceFromRoot(options, server, io, paint);
  const names = searchNames(options);
  let code: number = EXIT.no;
  for (const [index, name] of names.entries()) {
    const named = { ...options, name };
    const message = buildQuery(named);
    if (options.showQuery && options.output === 'dig')
      io.out(printReply(readReply(message, name), options.show, paint));
    if (options.type === TYPE.AXFR || (options.type === TYPE.IXFR && options.transport !== 'udp'))
      return transfer(message, named, server, io);
    const { reply, ...done } = await askServer(message, named, server, (text) => io.out(text));
    // NXDOMAIN leads to the next name of a search, and nothing else does.
    const last = reply.rcode !== nxdomain || index === names.length - 1;
    if (last || options.showSearch) print(reply, done.exchange, named, server, io, paint);
    code = reply.rcode === 0 ? EXIT.ok : EXIT.no;
    if (last) break;
  }
  return code;
}

const nxdomain = 3;

/** One query and its reply, over TCP if it does not fit into a datagram. Throws a `Problem` if none comes. */
async function askServer(
  message: Uint8Array,
  options: QueryOptions,
  server: QueryServer,
  tell: (text: string) => void,
): Promise<{ readonly exchange: AnsweredExchange; readonly reply: Message }> {
  const done = await exchange(message, options, server.address);
  const reply = readReply(done.reply, server.name);
  const cut = (reply.flags & FLAG.TC) !== 0 && options.transport === 'udp';
  if (!cut || options.ignoreTruncation) return { exchange: done, reply };
  if (options.output === 'dig' && options.show.comments) tell(';; Truncated, retrying over TCP.\n');
  const again = await exchange(message, { ...options, transport: 'tcp' }, server.address);
  return { exchange: again, reply: readReply(again.reply, server.name) };
}

function print(
  reply: Message,
  { reply: bytes, protocol, sentMs, repliedMs }: AnsweredExchange,
  options: QueryOptions,
  server: QueryServer,
  io: Io,
  paint: Paint,
): void {
  const tookMs = repliedMs - sentMs;
  if (options.output === 'json') {
    const document = replyDocument(bytes, options, server, protocol, tookMs);
    io.out(`${JSON.stringify(document, null, 2)}\n`);
  } else if (options.output === 'short') {
    for (const record of reply.answer) io.out(`${printData(record.type, record.data)}\n`);
  } else {
    io.out(printReply(reply, options.show, paint));
    const stats = `${serverLines(options, server, protocol, tookMs)};; MSG SIZE  rcvd: ${bytes.length}\n`;
    if (options.show.stats) io.out(stats.replace(/^.+$/gm, (line) => paint.dim(line)));
  }
}
