/**
 * Names and addresses replaced by pseudonyms: the same one gets the same one, so that a capture can
 * be given away and still be diagnosed. The number of labels, their lengths, equal suffixes, and
 * the words of clusters (svc, cluster.local) stay.
 */
import { createHmac } from 'node:crypto';
import { netHolds, parseAddress, parseNet, printAddress } from '../../server/base/ip.ts';
import type { Peer } from '../../server/wire/exchange.ts';
import { TYPE } from '../../server/wire/iana.ts';
import {
  readMessage,
  writeMessage,
  type DnsRecord,
  type Message,
} from '../../server/wire/message.ts';
import { Opaque } from '../../server/wire/record/kind.ts';
import { ReadError } from '../../server/wire/reader.ts';
import { addressOf, type SeenExchange, type ServerPeer } from './pair/seen-exchange.ts';

/** Labels that say how names are built and nothing about anybody. */
const kept: ReadonlySet<string> = new Set(
  'svc pod cluster local arpa in-addr ip6 localhost _tcp _udp _http _https _grpc com org net io internal'.split(
    ' ',
  ),
);
/** A label as names print it: an escape stands for one byte (RFC 1035 section 5.1). */
const LABEL = /(?:\\(?:\d{3}|\D)|[^.\\])+/gu;
const ESCAPE = /\\(?:\d{3}|\D)/gu;
/**
 * Pseudonyms that are remembered, so that no two labels have the same; of more labels only short
 * ones may have.
 */
const LABELS_MAX = 250_000;
/**
 * Characters of a name without escapes and final dot: 255 bytes on the wire (RFC 1035 section
 * 2.3.4).
 */
const TEXT_MAX = 253;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
/** Addresses that are the same everywhere stay as they are. */
const plainNets = ['127.0.0.0/8', '169.254.0.0/16', '0.0.0.0/32', '::1/128', 'fe80::/10'].map(
  (text) => parseNet(text)!,
);

/**
 * Replaces names and addresses; pseudonyms depend on the key alone, and on what was met before
 * where two would be equal.
 */
export class Redaction {
  readonly #key: string;
  readonly #labels = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** Those of labels in names that have no room for others. */
  readonly #tight = new Map<string, string>();
  readonly #addresses = new Map<string, string>();

  /** @param key the same key gives the same pseudonyms in another run */
  constructor(key: string) {
    this.#key = key;
  }

  /** An absolute or relative name. */
  name(text: string): string {
    const made = text.replace(LABEL, (label) => this.#label(label));
    // Labels that ran out of pseudonyms of their length make a name that is as long as can be too
    // long.
    return made.length - (made.endsWith('.') ? 1 : 0) <= TEXT_MAX
      ? made
      : text.replace(LABEL, (label) => (isKept(label) ? label : this.#tightLabel(label)));
  }

  /**
   * What is no address (a log may say anything in its place) is taken for one nevertheless:
   * somebody may be known by it.
   */
  address(text: string): string {
    const known = this.#addresses.get(text);
    if (known !== undefined) return known;
    const bytes = parseAddress(text);
    if (text === '' || (bytes !== null && plainNets.some((net) => netHolds(net, bytes))))
      return text;
    const hash = this.#hash(`address ${text}`);
    const made =
      bytes?.length === 4
        ? Uint8Array.of(10, hash[0]!, hash[1]!, hash[2]!)
        : Uint8Array.of(0xfd, ...hash.subarray(0, 15));
    const printed = printAddress(made);
    if (this.#addresses.size < LABELS_MAX) this.#addresses.set(text, printed);
    return printed;
  }

  peer(peer: ServerPeer): Peer {
    return { address: this.address(addressOf(peer)), port: peer.port };
  }

  exchange(exchange: SeenExchange): SeenExchange {
    const { client, server, query, stray } = exchange;
    const reply = exchange.reply === null ? null : this.message(exchange.reply);
    return {
      ...exchange,
      client: this.peer(client),
      server: this.peer(server),
      name: this.name(exchange.name),
      query: this.message(query),
      reply,
      replyBytes: reply?.length ?? 0,
      stray: stray === null ? null : this.peer(stray),
      hops: exchange.hops.map((hop) => ({
        ...hop,
        client: this.peer(hop.client),
        server: this.peer(hop.server),
      })),
    };
  }

  /** A message that cannot be read becomes its header alone: nobody knows what is in it. */
  message(bytes: Uint8Array): Uint8Array {
    let message: Message;
    try {
      message = readMessage(bytes);
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      const header = bytes.slice(0, 12);
      return header.fill(0, 4);
    }
    const records = (list: readonly DnsRecord[]): DnsRecord[] =>
      list.map((record) => this.#record(record));
    const { edns } = message;
    return writeMessage({
      ...message,
      question: message.question.map((each) => ({ ...each, name: this.name(each.name) })),
      answer: records(message.answer),
      authority: records(message.authority),
      additional: records(message.additional),
      // Options may hold addresses of clients.
      edns: edns === null ? null : { ...edns, options: [] },
    });
  }

  #record(record: DnsRecord): DnsRecord {
    return { ...record, name: this.name(record.name), data: this.#data(record) };
  }

  #data({ type, data }: DnsRecord): object {
    if (data instanceof Opaque) return new Opaque(new Uint8Array(data.bytes.length));
    const fields = data as Readonly<Record<string, unknown>>;
    if (type === TYPE.A || type === TYPE.AAAA)
      return { ...fields, address: this.address(String(fields['address'])) };
    const named = [TYPE.CNAME, TYPE.NS, TYPE.PTR, TYPE.MX, TYPE.SRV, TYPE.SOA, TYPE.DNAME] as const;
    // Other types may hold anything.
    if (!(named as readonly number[]).includes(type)) return new Opaque(new Uint8Array(0));
    return Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [
        key,
        typeof value === 'string' ? this.name(value) : value,
      ]),
    );
  }

  #label(label: string): string {
    if (isKept(label)) return label;
    const lower = label.toLowerCase();
    const known = this.#labels.get(lower);
    if (known !== undefined) return known;
    // Short labels run out of pseudonyms of their length: then longer ones are taken.
    for (let turn = 0; ; turn++) {
      const made = this.#pseudonym(lower, turn);
      if (this.#labels.size >= LABELS_MAX) return made;
      if (this.#taken.has(made) || kept.has(made)) continue;
      this.#taken.add(made);
      this.#labels.set(lower, made);
      return made;
    }
  }

  /** As long as the label, and perhaps that of another one, too. */
  #tightLabel(label: string): string {
    const lower = label.toLowerCase();
    const known = this.#tight.get(lower);
    if (known !== undefined) return known;
    const made = this.#pseudonym(lower, 0);
    if (this.#tight.size < LABELS_MAX) this.#tight.set(lower, made);
    return made;
  }

  /** @param turn 0: as long as the label */
  #pseudonym(lower: string, turn: number): string {
    const hash = this.#hash(`label ${turn} ${lower}`);
    const length = Math.min(63, lower.replace(ESCAPE, 'x').length + (turn >> 5));
    let made = '';
    for (let i = 0; i < length; i++) made += LETTERS[hash[i % hash.length]! & 31];
    return made;
  }

  #hash(text: string): Uint8Array {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}

function isKept(label: string): boolean {
  return label === '' || kept.has(label.toLowerCase());
}
