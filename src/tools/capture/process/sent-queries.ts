/**
 * Notes about queries and connections from kernel programs, which include the sending process. A note arrives before
 * the capture sees the packet.
 */
import { printAddress } from '../../../server/base/ip.ts';
import type { Peer } from '../../../server/wire/exchange.ts';

/** A query or a TCP connection at the time it is sent. */
export interface SentNote {
  readonly protocol: 'udp' | 'tcp';
  /** 4 or 16 bytes each, valid during the call. */
  readonly source: Uint8Array;
  readonly target: Uint8Array;
  readonly sourcePort: number;
  readonly targetPort: number;
  /** The DNS message's ID; 0: a connection. */
  readonly id: number;
  readonly cookie: bigint;
  /** The process that opened the socket or last connected it, or 0 if unknown. */
  readonly pid: number;
  /** The process that sent the packet, or 0 if unknown. */
  readonly senderPid: number;
  readonly cgroup: bigint;
  /** The name of the thread that opened or connected the socket. */
  readonly command: string;
}

export interface NoteSource {
  drain(take: (note: SentNote) => void): void;
  close(): void;
}

export interface QuerySender {
  readonly cookie: bigint;
  /** Two processes if one opened the socket and another used it. */
  readonly pids: readonly number[];
  readonly cgroup: bigint;
  readonly command: string;
}

/** The oldest are dropped first. */
const NOTES_MAX = 100_000;

/** Stores notes until the capture has seen their packets. */
export class SentQueries {
  readonly #source: NoteSource;
  readonly #senders = new Map<string, QuerySender | 'several'>();
  #taken = 0;

  constructor(source: NoteSource) {
    this.#source = source;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Call before reading packets. */
  drain(): void {
    this.#source.drain((note) => this.#take(note));
  }

  /**
   * The sender, or null if there is no note. There are several if namespaces that cannot be distinguished have sockets
   * with the same addresses.
   * @param id the message's ID, or 0 for a connection
   */
  find(
    protocol: 'udp' | 'tcp',
    client: Peer,
    server: Peer,
    id: number,
  ): QuerySender | 'several' | null {
    const tail = protocol === 'udp' ? id : 0;
    return (
      this.#senders.get(
        `${protocol} ${client.address} ${client.port} ${server.address} ${server.port} ${tail}`,
      ) ?? null
    );
  }

  close(): void {
    this.#source.close();
  }

  #take(note: SentNote): void {
    const { protocol, source, target, sourcePort, targetPort, cookie, pid, senderPid } = note;
    this.#taken++;
    const from = printAddress(source, 0, source.length);
    const to = printAddress(target, 0, target.length);
    const key = `${protocol} ${from} ${sourcePort} ${to} ${targetPort} ${protocol === 'udp' ? note.id : 0}`;
    const pids = [...new Set([senderPid, pid])].filter((each) => each > 0);
    if (pids.length === 0) return;
    const before = this.#senders.get(key);
    const isAmbiguous =
      before === 'several' ||
      (before !== undefined && protocol === 'udp' && before.cookie !== cookie);
    this.#senders.delete(key);
    this.#senders.set(
      key,
      isAmbiguous ? 'several' : { cookie, pids, cgroup: note.cgroup, command: note.command },
    );
    if (this.#senders.size > NOTES_MAX) this.#senders.delete(this.#senders.keys().next().value!);
  }
}
