/** RRSIG records: the input that is signed, and the resulting data (RFC 4034, section 3). */
import { copyBytes } from '../base/copy-bytes.ts';
import { Later } from '../base/maybe.ts';
import type { WireName } from '../wire/name.ts';
import { labelCount, type SignedSet } from './canonical.ts';
import type { Signer } from './signer.ts';

/** Start and end of the validity period, in seconds since 1970. */
export interface Validity {
  readonly inception: number;
  readonly expiration: number;
}

/**
 * Returns RRSIG data for an RRset, one per signer and in the same order. Other threads may do the work.
 * @param records the result of `signedRecords`
 * @param zone the signer's name, lower case
 */
export function signSet(
  set: SignedSet,
  records: Uint8Array,
  zone: WireName,
  signers: readonly Signer[],
  validity: Validity,
): Later<readonly Uint8Array[]> {
  const later = new Later<readonly Uint8Array[]>();
  const all: Uint8Array[] = [];
  let left = signers.length;
  if (left === 0) later.resolve(all);
  for (const [index, signer] of signers.entries()) {
    const head = signatureHead(set, zone, signer, validity);
    signer.sign(joined(head, records), (error, signature) => {
      if (left <= 0) return;
      if (error !== null) {
        left = 0;
        later.reject(error);
        return;
      }
      all[index] = joined(head, signature);
      if (--left === 0) later.resolve(all);
    });
  }
  return later;
}

/** Encodes RRSIG data up to the signature. */
function signatureHead(
  { owner, type, originalTtl }: SignedSet,
  zone: WireName,
  { pair }: Signer,
  { inception, expiration }: Validity,
): Uint8Array {
  const head = new Uint8Array(18 + zone.length);
  const view = new DataView(head.buffer);
  view.setUint16(0, type);
  view.setUint8(2, pair.algorithm);
  view.setUint8(3, labelCount(owner));
  view.setUint32(4, originalTtl);
  view.setUint32(8, expiration);
  view.setUint32(12, inception);
  view.setUint16(16, pair.tag);
  head.set(zone, 18);
  return head;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  copyBytes(first, 0, both, 0, first.length);
  copyBytes(second, 0, both, first.length, second.length);
  return both;
}
