/** The times of the signatures (RRSIG) that a zone's own servers send to resolvers. */
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { readable } from '../../../server/wire/reader.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { type SeenExchange, finalServer } from '../../capture/pair/seen-exchange.ts';
import { RRSIG } from '../thresholds/errors.ts';
import { BoundedMap } from './bounded-map.ts';
import { isIterative } from './delegations.ts';
import { nameAt } from './reply-shape.ts';
import { UncheckedAnswers } from './unchecked-answers.ts';
import { UnsignedAnswers } from './unsigned-answers.ts';

const ZONES_MAX = 500;
const NAMES_MAX = 2000;
const SAMPLES_MAX = 200;

export interface ZoneSignatures {
  readonly zone: string;
  readonly servers: Set<string>;
  readonly names: Set<string>;
  /** Answers with a signature that was valid, not yet valid, or no longer valid at that time. */
  valid: number;
  early: number;
  expired: number;
  /** Of the last answer, milliseconds since 1970. */
  atMs: number;
  inceptionMs: number;
  expirationMs: number;
}

const records = new Records();

/** A name and the servers whose answers for it have the AD bit, so they validated it. */
export interface ValidatedName {
  readonly name: string;
  readonly servers: Set<string>;
}

export class SeenSignatures {
  readonly zones: BoundedMap<string, ZoneSignatures> = new BoundedMap(ZONES_MAX);
  readonly unchecked: UncheckedAnswers = new UncheckedAnswers();
  readonly unsigned: UnsignedAnswers = new UnsignedAnswers();
  readonly validated: BoundedMap<string, ValidatedName> = new BoundedMap(NAMES_MAX);

  add(exchange: SeenExchange): void {
    this.unchecked.add(exchange);
    this.unsigned.add(exchange);
    const { replyFlags, rcode, answers, reply, udpSize, server, name } = exchange;
    if (reply === null || rcode !== RCODE.NOERROR || answers === 0) return;
    if ((replyFlags & FLAG.AD) !== 0) {
      const servers = this.validated.at(name, () => ({ name, servers: new Set() }))?.servers;
      if (servers !== undefined && servers.size < SAMPLES_MAX)
        servers.add(finalServer(exchange).address);
    }
    if (udpSize === 0) return;
    // Resolvers query the zone's own servers without RD.
    if ((replyFlags & FLAG.AA) === 0 || !isIterative(exchange)) return;
    const atMs = exchange.repliedMs ?? exchange.sentMs;
    const view = new DataView(reply.buffer, reply.byteOffset, reply.byteLength);
    let entry: ZoneSignatures | null = null;
    let [isValid, isEarly] = [false, false];
    for (records.over(reply); records.next() && records.section === SECTION.answer;) {
      if (records.type !== TYPE.RRSIG || records.dataLength < RRSIG.leastBytes) continue;
      entry ??= this.#zone(reply, records.dataAt + RRSIG.leastBytes);
      if (entry === null) return;
      const inceptionMs = 1000 * view.getUint32(records.dataAt + RRSIG.inceptionAt);
      const expirationMs = 1000 * view.getUint32(records.dataAt + RRSIG.expirationAt);
      if (inceptionMs <= atMs && atMs <= expirationMs) isValid = true;
      if (inceptionMs > atMs) isEarly = true;
      entry.inceptionMs = inceptionMs;
      entry.expirationMs = expirationMs;
    }
    if (entry === null) return;
    entry.atMs = atMs;
    entry[isValid ? 'valid' : isEarly ? 'early' : 'expired']++;
    if (entry.servers.size < SAMPLES_MAX) entry.servers.add(server.address);
    if (entry.names.size < SAMPLES_MAX) entry.names.add(name);
  }

  #zone(reply: Uint8Array, signerAt: number): ZoneSignatures | null {
    const zone = readable(() => nameAt(reply, signerAt));
    return zone === null ? null : this.zones.at(zone, newZone);
  }
}

const newZone = (zone: string): ZoneSignatures => ({
  ...{ zone, servers: new Set(), names: new Set(), valid: 0, early: 0, expired: 0 },
  ...{ atMs: 0, inceptionMs: 0, expirationMs: 0 },
});
