/** Signs messages and verifies TSIG signatures (RFC 8945), both as a server and as a client of other servers. */
import { builtins } from '../base/builtins.ts';
import { FLAG, RCODE, rcodeName } from '../wire/iana.ts';
import { printName, type WireName } from '../wire/name.ts';
import { ReadError } from '../wire/reader.ts';
import {
  priorMac,
  readTsig,
  tsigAlgorithms,
  tsigAt,
  tsigRoom,
  tsigTime,
  tsigTimers,
  tsigVariables,
  unsignedMessage,
  writeTsig,
  type QuerySignature,
  type Seal,
  type TsigAlgorithm,
  type TsigFields,
  type TsigKey,
} from '../wire/tsig.ts';

/** The clock difference that our signatures permit (RFC 8945 section 10). */
const FUDGE_SECONDS = 300;
/** The shortest truncated MAC accepted (RFC 8945 section 5.2.2.1). */
const MAC_MIN = 10;
/** Maximum size of the "other data" in a query, which holds a time. */
const OTHER_MAX = 6;
/** Maximum number of consecutive messages without a signature on a stream (RFC 8945 section 5.3.1). */
const UNSIGNED_MAX = 99;

const none = new Uint8Array(0);

/** TSIG's code for an invalid signature. In EDNS, the same number means BADVERS. */
const BADSIG = 16;

/**
 * The result of verifying a query's signature, named after the error in the reply. `signed` means that the signature is
 * valid.
 */
export type TsigVerdict = 'signed' | 'BADKEY' | 'BADSIG' | 'BADTIME' | 'BADTRUNC' | 'FORMERR';

export interface TsigProof {
  readonly verdict: TsigVerdict;
  /** Result code for the reply if the signature is invalid. */
  readonly rcode: number;
  /** Signs the reply, or null if there is no key to sign it with. */
  readonly seal: ReplySeal | null;
  /** The key's name for the log, or empty if it could not be read. */
  readonly key: string;
}

export class TsigKeys {
  readonly #byName: ReadonlyMap<string, TsigKey>;

  constructor(keys: Iterable<TsigKey>) {
    this.#byName = new Map([...keys].map((key) => [textOf(key.name), key]));
  }

  /**
   * Verifies a query's signature: first the key and algorithm, then the MAC, then the time (RFC 8945 section 5.2).
   * @param seconds the current time since 1970
   */
  prove({ message, at }: QuerySignature, seconds: number): TsigProof {
    const fields = readOrNull(message, at);
    // "Other data" holds at most a time (RFC 8945 section 5.2.3). Hashing more would only be a waste of time.
    if (fields === null || fields.other.length > OTHER_MAX) return malformed('');
    const name = printName(fields.key);
    const key = this.#byName.get(textOf(fields.key));
    const known = algorithmOf(fields.algorithm);
    if (key === undefined || known === undefined) return refusedBy('BADKEY', RCODE.BADKEY, fields);
    const given = fields.mac.length;
    if (given > known.size || given < Math.max(MAC_MIN, known.size / 2)) return malformed(name);
    const mac = macOf(known, key, [
      unsignedMessage(message, at, fields.originalId),
      tsigVariables(fields),
    ]);
    if (!areEqual(mac.subarray(0, given), fields.mac)) return refusedBy('BADSIG', BADSIG, fields);
    const parts = { key, algorithm: known, prior: fields.mac, isFirst: true, fields, seconds };
    const seal = (error: number): ReplySeal => new ReplySeal({ ...parts, error });
    // If a truncated MAC is shorter than required, it is refused with a reply signed with a full MAC (RFC 8945 section
    // 5.2.4).
    if (given < known.size)
      return { verdict: 'BADTRUNC', rcode: RCODE.NOTAUTH, seal: seal(RCODE.BADTRUNC), key: name };
    if (Math.abs(seconds - fields.signedAt) > fields.fudge)
      return { verdict: 'BADTIME', rcode: RCODE.NOTAUTH, seal: seal(RCODE.BADTIME), key: name };
    return { verdict: 'signed', rcode: RCODE.NOERROR, seal: seal(0), key: name };
  }
}

function malformed(key: string): TsigProof {
  return { verdict: 'FORMERR', rcode: RCODE.FORMERR, seal: null, key };
}

/** Replies to unverifiable queries are unsigned, but carry a TSIG record without a MAC (RFC 8945 section 5.3.2). */
function refusedBy(verdict: TsigVerdict, error: number, fields: TsigFields): TsigProof {
  // The record is not signed, so there is no signing time.
  const parts = { key: null, algorithm: null, prior: none, isFirst: true, fields, seconds: 0 };
  const seal = new ReplySeal({ ...parts, error });
  return { verdict, rcode: RCODE.NOTAUTH, seal, key: printName(fields.key) };
}

interface SealParts {
  /** Null if the record only carries the error. */
  readonly key: TsigKey | null;
  readonly algorithm: TsigAlgorithm | null;
  /** The MAC of the query or of the previous message. */
  readonly prior: Uint8Array;
  readonly isFirst: boolean;
  readonly error: number;
  /** The query's TSIG fields. */
  readonly fields: TsigFields;
  /** The current time since 1970. */
  readonly seconds: number;
}

/** Signs one message of a reply. Signing it twice gives the same result. */
export class ReplySeal implements Seal {
  readonly room: number;
  readonly #parts: SealParts;
  #mac: Uint8Array = none;

  constructor(parts: SealParts) {
    this.#parts = parts;
    this.room = tsigRoom(parts.fields.key, parts.fields.algorithm, parts.algorithm?.size ?? 0);
  }

  write(out: Uint8Array, at: number, length: number): number {
    const { key, algorithm, prior, isFirst, error, fields, seconds } = this.#parts;
    const isLate = error === RCODE.BADTIME;
    const record: TsigFields = {
      ...fields,
      // A client whose clock is wrong gets our time in "other data" (RFC 8945, section 5.2.3).
      signedAt: isLate ? fields.signedAt : seconds,
      fudge: FUDGE_SECONDS,
      mac: none,
      originalId: (out[at]! << 8) | out[at + 1]!,
      error,
      other: isLate ? Uint8Array.from(tsigTime(seconds)) : none,
    };
    if (key !== null && algorithm !== null)
      this.#mac = macOf(algorithm, key, [
        priorMac(prior),
        out.subarray(at, at + length),
        isFirst ? tsigVariables(record) : tsigTimers(record),
      ]);
    return writeTsig({ ...record, mac: this.#mac }, out, at, length);
  }

  /** Returns the seal for the next message. Call it after this message has been written (RFC 8945 section 5.3.1). */
  next(seconds: number): ReplySeal {
    return new ReplySeal({ ...this.#parts, prior: this.#mac, isFirst: false, seconds });
  }
}

/** A key, and the algorithm for signing queries. */
export interface TsigSigningKey extends TsigKey {
  readonly algorithm: TsigAlgorithm;
}

/** A signed query, and the messages that make up its reply. */
export class SignedExchange {
  readonly #key: TsigSigningKey;
  #prior: Uint8Array = none;
  /** The digest of everything received since the last signature, beginning with that signature's MAC. */
  #digest: ReturnType<ReturnType<typeof builtins.crypto>['createHmac']> | null = null;
  #unsigned = 0;
  #isFirst = true;

  constructor(key: TsigSigningKey) {
    this.#key = key;
  }

  /**
   * Signs the query.
   * @param seconds the current time since 1970
   */
  sign(message: Uint8Array, seconds: number): Uint8Array {
    const { name: key, algorithm } = this.#key;
    const originalId = (message[0]! << 8) | message[1]!;
    const unsigned = {
      key,
      algorithm: algorithm.wire,
      signedAt: seconds,
      fudge: FUDGE_SECONDS,
      error: 0,
      other: none,
    };
    const mac = macOf(algorithm, this.#key, [message, tsigVariables(unsigned)]);
    this.#prior = mac;
    const out = new Uint8Array(message.length + tsigRoom(key, algorithm.wire, algorithm.size));
    out.set(message);
    return out.slice(0, writeTsig({ ...unsigned, mac, originalId }, out, 0, message.length));
  }

  /**
   * Verifies the next message of the reply.
   * @param seconds the current time since 1970
   * @returns true if it is signed; messages in the middle may be unsigned, but not the last one
   * @throws Error worded for the log
   */
  prove(message: Uint8Array, seconds: number): boolean {
    const { algorithm, secret } = this.#key;
    const at = tsigAt(message);
    this.#digest ??= builtins
      .crypto()
      .createHmac(algorithm.hash, secret)
      .update(priorMac(this.#prior));
    if (at < 0) {
      if (this.#isFirst) throw new Error(unsignedReason(message));
      if (++this.#unsigned > UNSIGNED_MAX)
        throw new Error(`more than ${UNSIGNED_MAX} messages in a row are not signed`);
      this.#digest.update(message);
      return false;
    }
    const fields = readTsig(message, at);
    this.#proveFields(fields, seconds);
    const variables = this.#isFirst ? tsigVariables(fields) : tsigTimers(fields);
    const mac = this.#digest
      .update(unsignedMessage(message, at, fields.originalId))
      .update(variables)
      .digest();
    if (!areEqual(mac, fields.mac)) throw new Error('the signature of a message is wrong');
    if (fields.error === RCODE.BADTIME)
      throw new Error(
        "the server reports BADTIME: its clock and ours differ by more than the query's fudge",
      );
    if (Math.abs(seconds - fields.signedAt) > fields.fudge)
      throw new Error(
        `a message was signed ${seconds - fields.signedAt} s before our current time`,
      );
    this.#prior = fields.mac;
    this.#digest = null;
    this.#isFirst = false;
    this.#unsigned = 0;
    return true;
  }

  #proveFields({ key, algorithm, error, mac }: TsigFields, seconds: number): void {
    const own = this.#key;
    const name = printName(own.name);
    if (error === RCODE.BADKEY)
      throw new Error(
        `the server reports BADKEY: it does not know the key "${name}" or does not use it with ${own.algorithm.name}`,
      );
    if (error === BADSIG)
      throw new Error(`the server reports BADSIG: its secret for the key "${name}" is different`);
    if (error !== 0 && mac.length === 0)
      throw new Error(`the server rejects the signature: ${rcodeName(error)} at ${seconds}`);
    if (textOf(key) !== textOf(own.name) || textOf(algorithm) !== textOf(own.algorithm.wire))
      throw new Error(`a message is signed with a different key or algorithm than "${name}"`);
  }
}

function unsignedReason(message: Uint8Array): string {
  const rcode = message[3]! & FLAG.RCODE;
  return rcode === 0
    ? 'the reply is not signed'
    : `the reply is not signed and has the result code ${rcodeName(rcode)}`;
}

/** Returns the algorithm with this name, which may or may not end with a dot. */
export function algorithmNamed(text: string): TsigAlgorithm | undefined {
  const name = text.toLowerCase().replace(/\.$/, '');
  return tsigAlgorithms.find((one) => one.name === name);
}

function algorithmOf(name: WireName): TsigAlgorithm | undefined {
  const text = textOf(name);
  return tsigAlgorithms.find(({ wire }) => textOf(wire) === text);
}

function readOrNull(message: Uint8Array, at: number): TsigFields | null {
  try {
    return readTsig(message, at);
  } catch (error) {
    if (error instanceof ReadError) return null;
    throw error;
  }
}

function macOf(
  { hash }: TsigAlgorithm,
  { secret }: TsigKey,
  parts: readonly Uint8Array[],
): Uint8Array {
  const hmac = builtins.crypto().createHmac(hash, secret);
  for (const part of parts) hmac.update(part);
  return new Uint8Array(hmac.digest());
}

/** Compares in constant time. */
function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && builtins.crypto().timingSafeEqual(a, b);
}

function textOf(name: WireName): string {
  return Buffer.from(name.buffer, name.byteOffset, name.length).toString('latin1');
}
