/**
 * The SOA records of negative replies by zone and server: servers with other versions of a zone
 * have another primary server or serial number in them.
 */
import { readUint32 } from '../../../server/base/big-endian.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { type SeenExchange, finalServer } from '../../capture/pair/seen-exchange.ts';
import { zoneIn, type ReplyShape } from './reply-shape.ts';

const ZONES_MAX = 500;
/** Versions stored of one zone; a zone with more changes all the time. */
const COPIES_MAX = 24;
/** The numbers at the end of the data of an SOA record, of which the serial is the first. Bytes; RFC 1035 section 3.3.13. */
const NUMBERS_BYTES = 20;

/** One version of a zone, as one server gave it. */
export interface ZoneCopy {
  readonly zone: string;
  readonly server: string;
  readonly primary: string;
  readonly serial: number;
  count: number;
  firstMs: number;
  lastMs: number;
  /** The number of times that another version of the same server came before it, and this one before that. */
  returned: number;
}

export class ZoneCopies {
  readonly #zones = new Map<string, ZoneCopy[]>();
  /** By server: the last version. */
  readonly #last = new Map<string, ZoneCopy>();

  add(exchange: SeenExchange, shape: ReplyShape): void {
    const { name, reply, sentMs, repliedMs } = exchange;
    const server = finalServer(exchange).address;
    const serial = readUint32(reply!, shape.soaEnd - NUMBERS_BYTES);
    const last = this.#last.get(server);
    const atMs = repliedMs ?? sentMs;
    // Nearly all replies are of the version before, and need not be read.
    const copy =
      last?.serial === serial && isBelow(name, last.zone)
        ? last
        : this.#copy(server, serial, reply!, shape, atMs);
    if (copy === null) return;
    copy.count++;
    copy.firstMs = Math.min(copy.firstMs, atMs);
    copy.lastMs = Math.max(copy.lastMs, atMs);
    this.#last.set(server, copy);
  }

  clear(): void {
    this.#zones.clear();
    this.#last.clear();
  }

  /** Zones with more than one version, each with its versions. */
  get differing(): readonly (readonly ZoneCopy[])[] {
    return [...this.#zones.values()].filter(
      ([first, ...others]) =>
        others.length < COPIES_MAX - 1 && others.some((other) => isOther(first!, other)),
    );
  }

  #copy(
    server: string,
    serial: number,
    reply: Uint8Array,
    shape: ReplyShape,
    atMs: number,
  ): ZoneCopy | null {
    const found = zoneIn(reply, shape);
    if (found === null) return null;
    const { zone, primary } = found;
    let copies = this.#zones.get(zone);
    if (copies === undefined) {
      if (this.#zones.size >= ZONES_MAX) return null;
      copies = [];
      this.#zones.set(zone, copies);
    }
    const own = copies.filter((each) => each.server === server);
    let copy = own.find((each) => each.serial === serial && each.primary === primary);
    if (copy === undefined) {
      if (copies.length >= COPIES_MAX) return null;
      copy = {
        ...{ zone, server, primary, serial },
        count: 0,
        firstMs: atMs,
        lastMs: atMs,
        returned: 0,
      };
      copies.push(copy);
    } else {
      const { lastMs } = copy;
      if (own.some((each) => each.lastMs > lastMs)) copy.returned++;
    }
    return copy;
  }
}

/** True if both are versions of one zone, and not the same one. */
export function isOther(one: ZoneCopy, other: ZoneCopy): boolean {
  return one.primary !== other.primary || one.serial !== other.serial;
}
