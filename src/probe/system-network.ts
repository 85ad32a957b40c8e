/** The network of checks with the machine's own sockets. Each call opens one socket and closes it. */
import { createSocket } from 'node:dgram';
import { connect, isIP } from 'node:net';
import { systemClock } from '../base/clock.ts';
import { printHostPort } from '../base/ip.ts';
import type { Random } from '../base/random.ts';
import { matchReply } from '../net/match-reply.ts';
import { FLAG } from '../wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../wire/message.ts';
import { Query } from '../wire/query.ts';
import type { Asked, AskTerms, ProbeNetwork, ProbeQuestion, ProbeServer } from './network.ts';

/** The longest reply over TCP, with its length. */
const FRAME_MAX = 65_537;

/**
 * The machine's sockets.
 * @param lookup runs the models of clients
 */
export function systemProbeNetwork(random: Random, lookup: ProbeNetwork['lookup']): ProbeNetwork {
  return {
    lookup,
    async ask(server, questions, terms) {
      const waiting = questions.map((question) => new Waiting(question, random));
      const failure =
        terms.protocol === 'udp'
          ? await askUdp(server, waiting, terms)
          : await askTcp(server, waiting, terms);
      return waiting.map((one) => one.result(failure));
    },
  };
}

/** One question on its way. */
class Waiting {
  readonly bytes: Uint8Array;
  readonly #query = new Query();
  #sentAt = 0;
  sent = 0;
  #reply: Message | null = null;
  #size = 0;
  #tookMs: number | null = null;

  constructor({ name, type, edns }: ProbeQuestion, random: Random) {
    this.bytes = writeMessage({
      id: random.integer(0x10000),
      flags: FLAG.RD,
      rcode: 0,
      question: [{ name, type, class: 1 }],
      answer: [],
      authority: [],
      additional: [],
      edns: edns === null ? null : { udpSize: edns, version: 0, dnssecOk: false, options: [] },
    });
    this.#query.read(this.bytes, 0, this.bytes.length);
  }

  get isAnswered(): boolean {
    return this.#reply !== null;
  }

  sending(): void {
    this.sent++;
    this.#sentAt = systemClock.now();
  }

  /** Whether these bytes were its reply. */
  take(bytes: Uint8Array): boolean {
    if (this.isAnswered) return false;
    if (matchReply(this.#query, this.#query.id, bytes, 0, bytes.length) !== 'reply') return false;
    try {
      this.#reply = readMessage(bytes);
    } catch {
      return false;
    }
    this.#size = bytes.length;
    this.#tookMs = systemClock.now() - this.#sentAt;
    return true;
  }

  result(failure: string | null): Asked {
    const { sent, isAnswered } = this;
    return {
      reply: this.#reply,
      size: this.#size,
      tookMs: this.#tookMs,
      sent,
      lost: isAnswered ? sent - 1 : sent,
      failure: isAnswered ? null : (failure ?? 'no reply'),
    };
  }
}

/** @returns why some are without a reply; null if none is */
function askUdp(
  { host, port }: ProbeServer,
  waiting: readonly Waiting[],
  { sourcePort, timeoutMs, tries }: AskTerms,
): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
    let left = tries;
    let timer: NodeJS.Timeout | undefined;
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.close();
      resolve(failure);
    };
    const failed = (error: Error): void => end(told(error, host, port, sourcePort));
    const send = (): void => {
      if (left-- === 0) return end(silence(tries, timeoutMs));
      for (const one of waiting) {
        if (one.isAnswered) continue;
        one.sending();
        socket.send(one.bytes);
      }
      timer = setTimeout(send, timeoutMs);
    };
    socket.on('error', failed);
    socket.on('message', (bytes) => {
      waiting.some((one) => one.take(bytes));
      if (waiting.every((one) => one.isAnswered)) end(null);
    });
    socket.bind({ port: sourcePort, exclusive: true }, () =>
      socket.connect(port, host, (error?: Error | null) => (error ? failed(error) : send())),
    );
  });
}

/** @returns why some are without a reply; null if none is */
async function askTcp(
  server: ProbeServer,
  waiting: readonly Waiting[],
  { timeoutMs, tries }: AskTerms,
): Promise<string | null> {
  let failure: string | null = null;
  for (let left = tries; left > 0; left--) {
    failure = await askStream(
      server,
      waiting.filter((one) => !one.isAnswered),
      timeoutMs,
    );
    if (failure === null) return null;
  }
  return failure;
}

function askStream(
  { host, port }: ProbeServer,
  waiting: readonly Waiting[],
  timeoutMs: number,
): Promise<string | null> {
  return new Promise((resolve) => {
    const stream = connect({ host, port });
    let pending: Buffer = Buffer.alloc(0);
    let isConnected = false;
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      stream.removeAllListeners();
      stream.on('error', () => undefined);
      stream.destroy();
      resolve(failure);
    };
    const timer = setTimeout(
      () =>
        end(
          isConnected
            ? `connected, but no reply over TCP in ${timeoutMs} ms`
            : `no TCP connection in ${timeoutMs} ms`,
        ),
      timeoutMs,
    );
    // The clock of a question starts with the dialling: that is what its client waits for.
    for (const one of waiting) one.sending();
    stream.once('connect', () => {
      isConnected = true;
      for (const { bytes } of waiting) {
        const framed = Buffer.alloc(2 + bytes.length);
        framed.writeUInt16BE(bytes.length);
        framed.set(bytes, 2);
        stream.write(framed);
      }
    });
    stream.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const frame = pending.subarray(2, 2 + pending.readUInt16BE(0));
        pending = pending.subarray(2 + frame.length);
        waiting.some((one) => one.take(frame));
      }
      if (waiting.every((one) => one.isAnswered)) end(null);
      else if (pending.length > FRAME_MAX) end('more than a message came over TCP');
    });
    stream.on('end', () => end('the server closed the TCP connection without a reply'));
    stream.on('error', (error) => end(told(error, host, port, 0)));
  });
}

function silence(tries: number, timeoutMs: number): string {
  return tries === 1
    ? `no reply in ${timeoutMs} ms`
    : `no reply to ${tries} tries of ${timeoutMs} ms`;
}

/** Errors of the system for a person. */
function told(error: Error, host: string, port: number, sourcePort: number): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return `nobody listens at ${printHostPort(host, port)}`;
  if (code === 'EADDRINUSE')
    return `the source port ${sourcePort} is in use on this machine (sourcePort: another)`;
  if (code === 'ENETUNREACH' || code === 'EHOSTUNREACH') return `no route to ${host}`;
  if (code === 'EACCES' || code === 'EPERM')
    return `this machine does not let queries to ${host} out (network policy, firewall): ${code}`;
  return error.message;
}
