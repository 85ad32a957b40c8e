/** `+trace`: follows delegations from the root to the name, as dig does. */
import { parseAddress } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FLAG, TYPE, rcodeName } from '../../../server/wire/iana.ts';
import type { DnsRecord, Message } from '../../../server/wire/message.ts';
import { printData, printRecord } from '../../../server/wire/print.ts';
import { EXIT, type Io } from '../command.ts';
import type { Paint } from '../page.ts';
import type { QueryOptions } from './query-draft.ts';
import { buildQuery, readReply } from './query-message.ts';
import type { QueryServer } from './query-server.ts';
import { exchange, type AnsweredExchange } from './query-transport.ts';
import { replyDocument } from './query-words.ts';
import { isBelow, isWithin } from '../../../server/wire/within-zone.ts';

/** Limit on delegations, because no name is that many zones deep. */
const mostSteps = 30;
/** Limit of servers tried per zone. */
const mostTries = 6;

interface DelegationStep {
  readonly server: QueryServer;
  readonly done: AnsweredExchange;
  readonly reply: Message;
}

/**
 * Queries `start` for the root servers, then follows the delegations.
 * @returns the exit code
 */
export async function traceFromRoot(
  options: QueryOptions,
  start: QueryServer,
  io: Io,
  paint: Paint,
): Promise<number> {
  const steps: DelegationStep[] = [];
  const tell = (text: string): void => {
    if (options.output === 'dig') io.out(paint.dim(text));
  };
  const next = async (step: DelegationStep): Promise<void> => {
    steps.push(step);
    if (options.output === 'dig') io.out(printStep(step, options, paint));
  };
  const question = { ...options, recursion: false, transport: options.transport };
  const root = { ...options, name: '.', type: TYPE.NS, class: 1, recursion: true };
  await next(await askOne(root, start));
  let zone = '.';
  let code: number | null = null;
  while (code === null) {
    const { reply } = steps.at(-1)!;
    const names = delegation(reply, zone);
    const step = await askAny(question, names, steps.at(-1)!, start, options, tell);
    await next(step);
    const below = delegated(step.reply, options.name);
    if (step.reply.rcode !== 0) code = EXIT.no;
    else if (step.reply.answer.length > 0 || below === null) code = EXIT.ok;
    else if (!isBelow(below.toLowerCase(), zone.toLowerCase()) || steps.length > mostSteps) {
      tell(`;; ${step.server.name} refers to ${below}, which is not under ${zone}\n`);
      code = EXIT.no;
    } else zone = below;
  }
  if (options.output === 'json') {
    const items = steps.map(({ done, server }) =>
      replyDocument(done.reply, options, server, done.protocol, done.repliedMs - done.sentMs),
    );
    io.out(`${JSON.stringify(items, null, 2)}\n`);
  } else if (options.output === 'short') {
    for (const { type, data } of steps.at(-1)?.reply.answer ?? [])
      io.out(`${printData(type, data)}\n`);
  } else if (options.show.comments)
    tell(
      ";; +trace begins at the Internet's root servers and uses neither the cluster's server nor the search list.\n;; For a program's result: ndots trace NAME\n",
    );
  return code;
}

function printStep(
  { reply, server, done }: DelegationStep,
  { show, port }: QueryOptions,
  paint: Paint,
): string {
  const { answer, authority, rcode } = reply;
  const records = answer.length > 0 ? answer : authority;
  const lines = records.map((record) => printRecord(record));
  if (rcode !== 0) lines.push(paint.bad(`;; status: ${rcodeName(rcode)}`));
  const ms = Math.round(done.repliedMs - done.sentMs);
  const where = `${done.server.address}#${port}(${server.name})`;
  if (show.stats)
    lines.push(paint.dim(`;; Received ${done.reply.length} bytes from ${where} in ${ms} ms`));
  return `${lines.join('\n')}\n\n`;
}

/** Server names for `zone`, from a delegation or, in the case of the root, from the answer section. */
function delegation({ answer, authority }: Message, zone: string): readonly string[] {
  const servers = [...answer, ...authority].filter(
    ({ type, name }) => type === TYPE.NS && name.toLowerCase() === zone.toLowerCase(),
  );
  return servers.map(({ data }) => (data as { target: string }).target);
}

/** The zone on the path to `name` that a reply delegates to, or null if it is not a delegation. */
function delegated({ authority, flags }: Message, name: string): string | null {
  if ((flags & FLAG.AA) !== 0) return null;
  const full = (name.endsWith('.') ? name : `${name}.`).toLowerCase();
  const zone = authority.find(
    ({ type, name: owner }) => type === TYPE.NS && isWithin(full, owner.toLowerCase()),
  );
  return zone?.name ?? null;
}

/**
 * Tries the servers in order until one of them replies.
 * @throws Problem if none does
 */
async function askAny(
  question: QueryOptions,
  names: readonly string[],
  last: DelegationStep,
  start: QueryServer,
  options: QueryOptions,
  tell: (text: string) => void,
): Promise<DelegationStep> {
  let tries = 0;
  for (const name of names) {
    for (const address of await addressesOf(name, last.reply, start, options)) {
      if (++tries > mostTries) break;
      try {
        return await askOne(
          { ...question, tries: 1 },
          { address, name: name.replace(/(.)\.$/, '$1') },
        );
      } catch (error) {
        if (!(error instanceof Problem) || error.code === 'usage') throw error;
        tell(`;; ${error.message}\n`);
      }
    }
  }
  throw new Problem({
    code: 'no-answer',
    text:
      names.length === 0
        ? `${last.server.name} does not name a server to continue with`
        : `no server on the path answers: ${names.join(' ')}`,
    hint: 'The root servers often cannot be reached from inside a cluster.',
    remedy: 'For the cluster’s answer: ndots query NAME',
  });
}

/** Server addresses, from the glue in the delegating reply or else resolved by the first server. */
async function addressesOf(
  name: string,
  { additional }: Message,
  start: QueryServer,
  options: QueryOptions,
): Promise<readonly string[]> {
  const wanted =
    options.family === 6 ? [TYPE.AAAA] : options.family === 4 ? [TYPE.A] : [TYPE.A, TYPE.AAAA];
  const within = (records: readonly DnsRecord[]): string[] =>
    wanted.flatMap((type) =>
      records
        .filter((record) => record.type === type && same(record.name, name))
        .map(({ data }) => (data as { address: string }).address),
    );
  const glue = within(additional);
  if (glue.length > 0) return glue;
  const found: string[] = [];
  for (const type of wanted) {
    const asked = { ...options, name, type, class: 1, recursion: true };
    const { reply } = await askOne(asked, start);
    found.push(
      ...reply.answer
        .filter((record) => record.type === type)
        .map(({ data }) => (data as { address: string }).address),
    );
    if (found.length > 0) break;
  }
  return found.filter((address) => parseAddress(address) !== null);
}

/** Retries over TCP if the reply is truncated. */
async function askOne(options: QueryOptions, server: QueryServer): Promise<DelegationStep> {
  const message = buildQuery(options);
  const done = await exchange(message, options, server.address);
  const reply = readReply(done.reply, server.name);
  if ((reply.flags & FLAG.TC) === 0 || options.transport !== 'udp') return { server, done, reply };
  const whole = await exchange(message, { ...options, transport: 'tcp' }, server.address);
  return { server, done: whole, reply: readReply(whole.reply, server.name) };
}

function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
