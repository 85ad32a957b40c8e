/** The network for checks, based on the machine's sockets. Each call opens a socket and closes it again. */
import { systemClock } from '../../server/base/clock.ts';
import { errorCode } from '../../server/base/error-code.ts';
import { printHostPort } from '../../server/base/ip.ts';
import type { Random } from '../../server/base/random.ts';
import { matchReply } from '../../server/transport/upstream/match-reply.ts';
import { askDatagrams, askStream } from '../../server/transport/one-exchange.ts';
import { ExchangeError } from '../../server/transport/upstream/upstream-exchange.ts';
import { readMessage, writeQuery, type Message } from '../../server/wire/message.ts';
import { Query } from '../../server/transport/query.ts';
import { ReadError } from '../../server/wire/reader.ts';
import type { ProbeResult, AskTerms, ProbeNetwork, ProbeQuestion, ProbeServer } from './network.ts';

/**
 * Uses the machine's own sockets.
 * @param lookup runs the client models
 */
export function systemProbeNetwork(random: Random, lookup: ProbeNetwork['lookup']): ProbeNetwork {
  return {
    lookup,
    async ask(server, questions, terms) {
      const waiting = questions.map((question) => new WaitingProbe(question, random));
      const failure =
        terms.protocol === 'udp'
          ? await askUdp(server, waiting, terms)
          : await askTcp(server, waiting, terms);
      return waiting.map((one) => one.result(failure));
    },
  };
}

/** A question in flight. */
class WaitingProbe {
  readonly message: Uint8Array;
  readonly #query = new Query();
  #sentAt = 0;
  #sent = 0;
  #reply: Message | null = null;
  #garbled: string | null = null;
  #size = 0;
  #tookMs: number | null = null;

  constructor({ name, type, edns }: ProbeQuestion, random: Random) {
    this.message = writeQuery({
      id: random.integer(0x10000),
      name,
      type,
      edns: edns === null ? null : { udpSize: edns, version: 0, dnssecOk: false, options: [] },
    });
    this.#query.read(this.message, 0, this.message.length);
  }

  get isAnswered(): boolean {
    return this.#reply !== null;
  }

  readonly sending = (): void => {
    this.#sent++;
    this.#sentAt = systemClock.now();
  };

  /** True if these bytes are a reply to this question. */
  matches(bytes: Uint8Array): boolean {
    return matchReply(this.#query, this.#query.id, bytes, 0, bytes.length) !== 'stray';
  }

  /**
   * Accepts a reply. An unreadable one does not count, because a valid reply may follow. If none does, it becomes the
   * reason for the failure.
   */
  readonly take = (bytes: Uint8Array): boolean => {
    try {
      this.#reply = readMessage(bytes);
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      this.#garbled = `received a reply of ${bytes.length} bytes that cannot be read: ${error.message}`;
      return false;
    }
    this.#size = bytes.length;
    this.#tookMs = systemClock.now() - this.#sentAt;
    return true;
  };

  result(failure: string | null): ProbeResult {
    const isAnswered = this.#reply !== null;
    return {
      reply: this.#reply,
      size: this.#size,
      tookMs: this.#tookMs,
      sent: this.#sent,
      lost: isAnswered ? this.#sent - 1 : this.#sent,
      failure: isAnswered ? null : (this.#garbled ?? failure ?? 'no reply'),
    };
  }
}

/** @returns why some questions were not answered, or null if all were */
async function askUdp(
  server: ProbeServer,
  waiting: readonly WaitingProbe[],
  terms: AskTerms,
): Promise<string | null> {
  try {
    await askDatagrams(waiting, server, { ...terms, source: '' });
    return null;
  } catch (error) {
    const { timeoutMs, tries } = terms;
    return error instanceof ExchangeError && error.failure === 'timeout'
      ? silence(tries, timeoutMs)
      : told(error as Error, server, terms.sourcePort);
  }
}

/** Limit on unrelated messages that are ignored on a connection. */
const STRAYS_MAX = 64;

/** @returns why some questions were not answered, or null if all were */
async function askTcp(
  server: ProbeServer,
  all: readonly WaitingProbe[],
  { timeoutMs, tries }: AskTerms,
): Promise<string | null> {
  let failure: string | null = null;
  for (let left = tries; left > 0; left--) {
    const waiting = all.filter(({ isAnswered }) => !isAnswered);
    // Includes the time to connect, because clients have to wait for that as well.
    for (const { sending } of waiting) sending();
    const messages = waiting.map(({ message }) => message);
    const terms = { idleMs: timeoutMs, totalMs: timeoutMs, signal: new AbortController().signal };
    let strays = 0;
    try {
      await askStream(messages, server, terms, (bytes) => {
        const own = waiting.find((one) => !one.isAnswered && one.matches(bytes));
        if (own?.take(bytes) !== true && ++strays > STRAYS_MAX)
          throw new Error(
            `${printHostPort(server.host, server.port)} sent ${strays} messages that match no query`,
          );
        return waiting.every(({ isAnswered }) => isAnswered);
      });
      return null;
    } catch (error) {
      failure = told(error as Error, server, 0);
    }
  }
  return failure;
}

function silence(tries: number, timeoutMs: number): string {
  return tries === 1
    ? `no reply in ${timeoutMs} ms`
    : `no reply after ${tries} tries of ${timeoutMs} ms`;
}

/** Describes system errors in plain words. */
function told(error: Error, { host, port }: ProbeServer, sourcePort: number): string {
  const code = errorCode(error.cause);
  if (code === 'ECONNREFUSED') return `no server listens at ${printHostPort(host, port)}`;
  if (code === 'EADDRINUSE')
    return `source port ${sourcePort} is in use on this machine; set sourcePort to another one`;
  if (code === 'ENETUNREACH' || code === 'EHOSTUNREACH') return `no route to ${host}`;
  if (code === 'EACCES' || code === 'EPERM')
    return `this machine blocks outgoing queries to ${host} (network policy or firewall): ${code}`;
  return error.message;
}
