/** `ndots query`: sends a single DNS query and prints the reply. */
import { Problem, problemsIn } from '../../../server/base/problem.ts';
import { SignedExchange } from '../../../server/transport/tsig-keys.ts';
import { FLAG, TYPE } from '../../../server/wire/iana.ts';
import type { Message } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { EXIT, failure, wantsColour, type Command, type Io } from '../command.ts';
import { paintFor, type Paint } from '../page.ts';
import type { Draft, QueryOptions } from './query-draft.ts';
import { buildQuery, readReply } from './query-message.ts';
import { givenText } from '../named-file.ts';
import { usage } from '../option-values.ts';
import { tellProblems } from '../problem-text.ts';
import { parseQueryLine } from './query-options.ts';
import { printReply } from './query-print.ts';
import { searchNames, serverFor, type QueryServer } from './query-server.ts';
import { traceFromRoot } from './query-trace.ts';
import { transfer } from './query-transfer.ts';
import { exchange, type AnsweredExchange } from './query-transport.ts';
import { replyDocument, serverLines, wallSeconds } from './query-words.ts';

export const query: Command = { name: 'query', run };

async function run(words: readonly string[], io: Io): Promise<number> {
  const { queries, batch, common } = parseQueryLine(words);
  const each = (options: readonly QueryOptions[]): Promise<number> => askAll(options, io);
  return batch === null ? each(queries) : askLines(batch, common, each, io);
}

async function askAll(queries: readonly QueryOptions[], io: Io): Promise<number> {
  let worst: number = EXIT.ok;
  for (const options of queries) {
    const { overridden, typeWord } = options;
    // dig prints the same warning.
    if (overridden !== null)
      io.err(
        `ndots query: only the last of the types ${overridden} and ${typeWord} is queried; NAME ${overridden} NAME ${typeWord} queries both\n`,
      );
    const code = await ask(options, io).catch((error: unknown) => failure('query', error, io));
    worst = Math.max(worst, code);
  }
  return worst;
}

/** `-f`: parses each line like a command line. An invalid line does not affect the others. */
async function askLines(
  file: string,
  common: Draft,
  each: (queries: readonly QueryOptions[]) => Promise<number>,
  io: Io,
): Promise<number> {
  const lines = (await givenText(file, 'list of queries', io)).split('\n');
  let worst: number = EXIT.ok;
  let asked = 0;
  for (const [index, text] of lines.entries()) {
    const words = text.trim().split(/\s+/);
    if (words[0] === '' || /^[;#]/.test(words[0] ?? '')) continue;
    asked++;
    io.progress(() => `line ${index + 1} of ${lines.length}`);
    try {
      const { queries, batch } = parseQueryLine(words, common);
      if (batch !== null) throw usage('a -f file cannot contain -f');
      worst = Math.max(worst, await each(queries));
    } catch (error) {
      const problems = problemsIn(error);
      if (problems === null) throw error;
      const place = { file: file === '-' ? 'standard input' : file, line: index + 1, column: 0 };
      tellProblems(
        'query',
        problems.map((problem) => problem.with({ place })),
        io,
      );
      worst = Math.max(worst, EXIT.usage);
    }
  }
  if (asked > 0) return worst;
  throw new Problem({ code: 'no-queries', text: `${file} contains no query` });
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
    const { reply, doubt, ...done } = await askServer(message, named, server, (text) =>
      io.out(text),
    );
    // Only NXDOMAIN continues the search.
    const last = reply.rcode !== nxdomain || index === names.length - 1;
    if (last || options.showSearch) print(reply, done.exchange, named, server, io, paint);
    code = reply.rcode === 0 ? EXIT.ok : EXIT.no;
    if (doubt !== null) {
      // Printed anyway, as in dig, because it may reveal the cause.
      io.err(`ndots query: the reply from ${server.name} is not authenticated: ${doubt}\n`);
      return EXIT.failed;
    }
    if (last) break;
  }
  return code;
}

const nxdomain = 3;

/**
 * Sends a query, and retries over TCP if the reply was truncated.
 * @throws Problem if there is no reply
 */
async function askServer(
  message: Uint8Array,
  options: QueryOptions,
  server: QueryServer,
  tell: (text: string) => void,
): Promise<PrintedReply> {
  const first = await askSigned(message, options, server);
  const cut = (first.reply.flags & FLAG.TC) !== 0 && options.transport === 'udp';
  if (!cut || options.ignoreTruncation) return first;
  if (options.output === 'dig' && options.show.comments) tell(';; Truncated, retrying over TCP.\n');
  return askSigned(message, { ...options, transport: 'tcp' }, server);
}

interface PrintedReply {
  readonly exchange: AnsweredExchange;
  readonly reply: Message;
  /** Why the reply's signature cannot be trusted, or null if it is valid or not required. */
  readonly doubt: string | null;
}

async function askSigned(
  message: Uint8Array,
  options: QueryOptions,
  server: QueryServer,
): Promise<PrintedReply> {
  const { key } = options;
  const signed = key === null ? null : new SignedExchange(key);
  const sent = signed?.sign(message, wallSeconds()) ?? message;
  const done = await exchange(sent, options, server.address);
  const reply = readReply(done.reply, server.name);
  let doubt: string | null = null;
  try {
    signed?.prove(done.reply, wallSeconds());
  } catch (error) {
    doubt = (error as Error).message;
  }
  return { exchange: done, reply, doubt };
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
