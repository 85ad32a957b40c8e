/**
 * Replaces names and addresses with consistent pseudonyms, so that a capture can be shared and still be diagnosed. It
 * preserves the number of labels, their lengths, common suffixes, and words used in clusters (svc, cluster.local).
 */
import { createHmac } from 'node:crypto';
import { netHolds, parseAddress, parseNet, printAddress } from '../../server/base/ip.ts';
import type { Peer } from '../../server/wire/exchange.ts';
import { isAddressType, TYPE } from '../../server/wire/iana.ts';
import { readMessage, writeMessage, type DnsRecord } from '../../server/wire/message.ts';
import { Opaque } from '../../server/wire/record/kind.ts';
import { readable } from '../../server/wire/reader.ts';
import { addressOf, type SeenExchange, type ServerPeer } from './pair/seen-exchange.ts';

/** Labels that show how names are built but do not identify anyone. */
const kept: ReadonlySet<string> = new Set(
  'svc pod cluster local arpa in-addr ip6 localhost _tcp _udp _http _https _grpc com org net io internal'.split(
    ' ',
  ),
);
/** A label as printed in names, where an escape stands for one byte (RFC 1035, section 5.1). */
const LABEL = /(?:\\(?:\d{3}|\D)|[^.\\])+/gu;
const ESCAPE = /\\(?:\d{3}|\D)/gu;
/** The number of pseudonyms to remember so that no two labels share one. Beyond this, short labels may share one. */
const LABELS_MAX = 250_000;
/**
 * The maximum number of characters in a name without escapes and the trailing dot. This is 255 bytes on the wire (RFC
 * 1035, section 2.3.4).
 */
const TEXT_MAX = 253;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
/** Addresses that mean the same everywhere are left unchanged. */
const plainPrefixes = ['127.0.0.0/8', '169.254.0.0/16', '0.0.0.0/32', '::1/128', 'fe80::/10'].map(
  (text) => parseNet(text)!,
);

/** Pseudonyms depend only on the key, except after collisions, which depend on earlier labels. */
export class Redaction {
  readonly #key: string;
  readonly #labels = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** Pseudonyms for labels in names that are too long for longer ones. */
  readonly #tight = new Map<string, string>();
  readonly #addresses = new Map<string, string>();

  /** @param key produces the same pseudonyms in another run */
  constructor(key: string) {
    this.#key = key;
  }

  name(text: string): string {
    const made = text.replace(LABEL, (label) => this.#label(label));
    // Longer pseudonyms could make the longest names too long.
    return made.length - (made.endsWith('.') ? 1 : 0) <= TEXT_MAX
      ? made
      : text.replace(LABEL, (label) => (isKept(label) ? label : this.#tightLabel(label)));
  }

  /**
   * Text that is not an address is also replaced, because logs may contain anything there and it may identify someone.
   */
  address(text: string): string {
    const known = this.#addresses.get(text);
    if (known !== undefined) return known;
    const bytes = parseAddress(text);
    if (text === '' || (bytes !== null && plainPrefixes.some((net) => netHolds(net, bytes))))
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

  /** Unreadable messages are reduced to their header, because their contents are unknown. */
  message(bytes: Uint8Array): Uint8Array {
    const message = readable(() => readMessage(bytes));
    if (message === null) return bytes.slice(0, 12).fill(0, 4);
    const records = (list: readonly DnsRecord[]): DnsRecord[] =>
      list.map((record) => this.#record(record));
    const { edns } = message;
    return writeMessage({
      ...message,
      question: message.question.map((each) => ({ ...each, name: this.name(each.name) })),
      answer: records(message.answer),
      authority: records(message.authority),
      additional: records(message.additional),
      // Options may contain client addresses.
      edns: edns === null ? null : { ...edns, options: [] },
    });
  }

  #record(record: DnsRecord): DnsRecord {
    return { ...record, name: this.name(record.name), data: this.#data(record) };
  }

  #data({ type, data }: DnsRecord): object {
    if (data instanceof Opaque) return new Opaque(new Uint8Array(data.bytes.length));
    const fields = data as Readonly<Record<string, unknown>>;
    if (isAddressType(type)) return { ...fields, address: this.address(String(fields['address'])) };
    const named = [TYPE.CNAME, TYPE.NS, TYPE.PTR, TYPE.MX, TYPE.SRV, TYPE.SOA, TYPE.DNAME] as const;
    // Other types may contain anything.
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
    // Once short labels run out of pseudonyms of the same length, they get longer ones.
    for (let turn = 0; ; turn++) {
      const made = this.#pseudonym(lower, turn);
      if (this.#labels.size >= LABELS_MAX) return made;
      if (this.#taken.has(made) || kept.has(made)) continue;
      this.#taken.add(made);
      this.#labels.set(lower, made);
      return made;
    }
  }

  /** Has the same length as the label, and may be shared with another one. */
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
