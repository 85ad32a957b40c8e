/** The algorithms for DNSSEC signing, and the wire form of their keys (RFC 3110, 5702, 6605, 8080). */
import { createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto';

type JsonWebKey = JsonWebKeyInput['key'];

export interface Algorithm {
  readonly number: number;
  /** The name as used by `dnssec-keygen -a` and in key files. */
  readonly name: string;
  /** The digest to pass to `node:crypto`, or null if the algorithm has its own. */
  readonly digest: string | null;
  /** True if a signature takes tens of microseconds rather than hundreds. */
  readonly quick: boolean;
  /** The fields in a private key file that make up the key. */
  readonly fields: readonly string[];
  /**
   * Converts the public key in DNSKEY data, which follows the first four bytes. Returns null if it does not fit the
   * algorithm.
   */
  publicJwk(bytes: Uint8Array): JsonWebKey | null;
  /** Converts the private parts, given by field name. */
  privateJwk(fields: ReadonlyMap<string, Uint8Array>): JsonWebKey;
}

/** The parts of an RSA key, by their names in JSON and in key files. */
const rsaFields = {
  n: 'Modulus',
  e: 'PublicExponent',
  d: 'PrivateExponent',
  p: 'Prime1',
  q: 'Prime2',
  dp: 'Exponent1',
  dq: 'Exponent2',
  qi: 'Coefficient',
} as const;

/** The algorithms for signing records, by number. */
export const algorithms: ReadonlyMap<number, Algorithm> = new Map(
  [
    rsa(8, 'RSASHA256', 'sha256'),
    rsa(10, 'RSASHA512', 'sha512'),
    curve(13, 'ECDSAP256SHA256', 'sha256', 'P-256', 32),
    curve(14, 'ECDSAP384SHA384', 'sha384', 'P-384', 48),
    edwards(15, 'ED25519', 'Ed25519', 32),
  ].map((algorithm) => [algorithm.number, algorithm]),
);

/**
 * Creates a key object for verification from the public key in DNSKEY data. Returns null if the bytes are not a valid
 * key.
 */
export function publicKeyOf(algorithm: Algorithm, bytes: Uint8Array): KeyObject | null {
  const jwk = algorithm.publicJwk(bytes);
  if (jwk === null) return null;
  try {
    return createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    return null;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64url');
}

/**
 * The exponent's length in one byte, or in two after a zero, followed by the exponent and the modulus (RFC 3110 section
 * 2).
 */
function rsa(number: number, name: string, digest: string): Algorithm {
  return {
    number,
    name,
    digest,
    quick: false,
    fields: Object.values(rsaFields),
    publicJwk(bytes) {
      const wide = bytes[0] === 0;
      const size = wide ? ((bytes[1] ?? 0) << 8) | (bytes[2] ?? 0) : (bytes[0] ?? 0);
      const at = wide ? 3 : 1;
      if (size === 0 || at + size >= bytes.length) return null;
      return {
        kty: 'RSA',
        e: base64(bytes.subarray(at, at + size)),
        n: base64(bytes.subarray(at + size)),
      };
    },
    privateJwk: (fields) => ({
      kty: 'RSA',
      ...Object.fromEntries(
        Object.entries(rsaFields).map(([key, field]) => [key, base64(fields.get(field)!)]),
      ),
    }),
  };
}

function curve(number: number, name: string, digest: string, crv: string, size: number): Algorithm {
  return {
    number,
    name,
    digest,
    quick: number === 13,
    fields: ['PrivateKey'],
    publicJwk: (bytes) =>
      bytes.length === 2 * size
        ? { kty: 'EC', crv, x: base64(bytes.subarray(0, size)), y: base64(bytes.subarray(size)) }
        : null,
    privateJwk: (fields) => ({ d: base64(fields.get('PrivateKey')!) }),
  };
}

function edwards(number: number, name: string, crv: string, size: number): Algorithm {
  return {
    number,
    name,
    digest: null,
    quick: true,
    fields: ['PrivateKey'],
    publicJwk: (bytes) => (bytes.length === size ? { kty: 'OKP', crv, x: base64(bytes) } : null),
    privateJwk: (fields) => ({ d: base64(fields.get('PrivateKey')!) }),
  };
}
