/** Zone keys in files, as `dnssec-keygen` writes them. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyTag } from '../../src/server/dnssec/key-pair.ts';
import { algorithms } from '../../src/server/dnssec/algorithm.ts';

export interface ZoneKey {
  /** `Kexample.org.+013+12345`. */
  readonly name: string;
  readonly tag: number;
  /** The DNSKEY record's data: `257 3 13 …`. */
  readonly data: string;
  readonly key: string;
  readonly secret: string;
}

function base64(text = ''): Buffer {
  return Buffer.from(text, 'base64url');
}

function generate(algorithm: number): KeyObject {
  switch (algorithm) {
    case 13:
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    case 14:
      return generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    case 15:
      return generateKeyPairSync('ed25519').privateKey;
    default:
      return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  }
}

/** Generates a key pair for the zone `owner`, an absolute name. */
export function zoneKey(owner: string, algorithm = 13, flags = 257): ZoneKey {
  const jwk = generate(algorithm).export({ format: 'jwk' });
  const isRsa = jwk.kty === 'RSA';
  const exponent = base64(jwk.e);
  const bytes = isRsa
    ? Buffer.concat([Buffer.of(exponent.length), exponent, base64(jwk.n)])
    : Buffer.concat([base64(jwk.x), base64(jwk.y)]);
  const data = `${flags} 3 ${algorithm} ${bytes.toString('base64')}`;
  const tag = keyTag(Buffer.concat([Buffer.of(flags >> 8, flags & 0xff, 3, algorithm), bytes]));
  const parts = isRsa ? [jwk.n, jwk.e, jwk.d, jwk.p, jwk.q, jwk.dp, jwk.dq, jwk.qi] : [jwk.d];
  const { name, fields } = algorithms.get(algorithm)!;
  const lines = fields.map((field, i) => `${field}: ${base64(parts[i]).toString('base64')}`);
  return {
    name: `K${owner}+${String(algorithm).padStart(3, '0')}+${String(tag).padStart(5, '0')}`,
    tag,
    data,
    key: `; This is a key, keyid ${tag}, for ${owner}\n; Created: 20260101000000\n${owner} IN DNSKEY ${data}\n`,
    secret: `Private-key-format: v1.3\nAlgorithm: ${algorithm} (${name})\n${lines.join('\n')}\nCreated: 20260101000000\n`,
  };
}

/** @returns the path of both files, without suffix */
export function writeZoneKey(directory: string, key: ZoneKey, name: string = key.name): string {
  writeFileSync(join(directory, `${name}.key`), key.key);
  writeFileSync(join(directory, `${name}.private`), key.secret);
  return join(directory, name);
}
