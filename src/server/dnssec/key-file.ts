/**
 * Reads key pairs written by BIND's `dnssec-keygen`. `K….key` contains the DNSKEY record, and `K….private` the private
 * key.
 */
import { createPrivateKey, sign, verify, type KeyObject } from 'node:crypto';
import { Problem, type Place } from '../base/problem.ts';
import { whyFailed } from '../base/why-failed.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { parseBase64 } from '../wire/encoding.ts';
import { dataOf } from '../wire/message.ts';
import { foldName, parseName } from '../wire/name.ts';
import { dnskey, type PublicKey } from '../wire/record/table.ts';
import { parseZone } from '../wire/zone-text.ts';
import { algorithms, publicKeyOf, type Algorithm } from './algorithm.ts';
import { dnskeyData, keyTag, type KeyPair } from './key-pair.ts';

/** TTL in seconds for a DNSKEY record that has none. */
const DEFAULT_TTL = 3600;

/** Returns the file's name without `.key` or `.private`. */
function keyBase(file: string): string {
  return file.replace(/\.(?:key|private)$/, '');
}

/**
 * Reads `BASE.key` and `BASE.private`.
 * @param name as configured, with or without an extension
 * @throws Problem with file and line if a file is unreadable or malformed, its algorithm cannot sign here, or the two
 * do not match
 */
export function readKeyPair(name: string): KeyPair {
  const base = keyBase(name);
  const { record, owner, ttl, place } = readPublic(`${base}.key`);
  const algorithm = algorithms.get(record.algorithm);
  if (algorithm === undefined) {
    const known = [...algorithms.values()].map(({ name: one }) => one).join(', ');
    throw broken(
      place,
      `algorithm ${record.algorithm} cannot sign records`,
      `These are: ${known}.`,
    );
  }
  if (record.protocol !== 3 || (record.flags & ZONE_KEY) === 0)
    throw broken(
      place,
      'this is not a zone key',
      'Its flags must be 256 or 257, and its protocol 3 (RFC 4034 section 2.1). dnssec-keygen creates such keys.',
    );
  const publicKey = publicKeyOf(algorithm, record.publicKey);
  if (publicKey === null) throw broken(place, `the public key does not fit ${algorithm.name}`);
  const secret = readPrivate(`${base}.private`, algorithm, record);
  if (!isPair(algorithm, secret, publicKey)) {
    const hint = `${base}.key and ${base}.private do not belong together; copy both of them again.`;
    throw broken(
      { file: `${base}.private`, line: 1, column: 0 },
      'the private key does not belong to the public one',
      hint,
    );
  }
  const data = dnskeyData(record);
  return {
    owner: foldName(parseName(owner)),
    ttl,
    data,
    flags: record.flags,
    algorithm: record.algorithm,
    tag: keyTag(data),
    secret: new Uint8Array(secret.export({ type: 'pkcs8', format: 'der' })),
    file: base,
  };
}

/** Flag for a key that signs a zone's records. */
const ZONE_KEY = 0x0100;

interface PublicRecord {
  readonly record: PublicKey;
  readonly owner: string;
  readonly ttl: number;
  readonly place: Place;
}

function readPublic(file: string): PublicRecord {
  let found: PublicRecord | null = null;
  for (const record of parseZone(read(file), { file, ttl: DEFAULT_TTL })) {
    const { name: owner, ttl, place } = record;
    const key = dataOf(record, dnskey);
    if (key === null) throw broken(place, 'no public key found: this is not a DNSKEY record');
    if (found !== null) throw broken(place, 'there is a second key in the file');
    found = { record: key, owner, ttl, place };
  }
  if (found !== null) return found;
  throw broken({ file, line: 1, column: 0 }, 'no public key found: the file has no record');
}

/** Reads one `Field: value` per line. Timing metadata and fields added by other programs are ignored. */
function readPrivate(file: string, algorithm: Algorithm, { publicKey }: PublicKey): KeyObject {
  const fields = new Map<string, Uint8Array>();
  const whole: Place = { file, line: 1, column: 0 };
  for (const [index, line] of read(file).split('\n').entries()) {
    const place = { file, line: index + 1, column: 1 };
    const colon = line.indexOf(':');
    if (line.trim() === '' || line.startsWith(';')) continue;
    if (colon < 0) throw broken(place, 'a line in a private key has the form FIELD: VALUE');
    const field = line.slice(0, colon).trim();
    const value = line.slice(colon + 1).trim();
    if (field === 'Private-key-format' && !/^v1\.\d+$/.test(value))
      throw broken(place, `private key format ${value} is not supported`, 'Format v1.3 is.');
    if (field === 'Algorithm' && Number.parseInt(value, 10) !== algorithm.number)
      throw broken(
        place,
        `the private key uses algorithm ${value}, but the public key uses ${algorithm.number} (${algorithm.name})`,
      );
    if (field === 'Label' || field === 'Engine')
      throw broken(
        place,
        'the private key is in a hardware module',
        'ndots can sign only with keys in files.',
      );
    if (!algorithm.fields.includes(field)) continue;
    const bytes = parseBase64(value);
    if (bytes === null || bytes.length === 0) throw broken(place, `${field} must be base64`);
    fields.set(field, bytes);
  }
  for (const field of algorithm.fields)
    if (!fields.has(field))
      throw broken(whole, `no private key found: ${algorithm.name} needs a field ${field}`);
  const jwk = { ...algorithm.publicJwk(publicKey), ...algorithm.privateJwk(fields) };
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' });
  } catch (error) {
    const hint = 'Either a line is malformed, or the other file has a different public key.';
    throw broken(whole, `the private key does not fit ${algorithm.name}`, hint, error);
  }
}

function isPair({ digest }: Algorithm, secret: KeyObject, publicKey: KeyObject): boolean {
  const probe = Buffer.from('one made with the other');
  try {
    return verify(digest, probe, publicKey, sign(digest, probe, secret));
  } catch {
    return false;
  }
}

function read(file: string): string {
  try {
    return readFileText(file, FILE_MAX.small);
  } catch (error) {
    throw new Problem({
      code: 'key-unreadable',
      text: `open ${file}: ${whyFailed(error)}`,
      hint: 'Specify a key as BASE, BASE.key or BASE.private; both files must be in the same directory.',
      remedy: `Check the path and its permissions: ls -l ${keyBase(file)}.*`,
      cause: error,
    });
  }
}

function broken(place: Place, text: string, hint?: string, cause?: unknown): Problem {
  const where = `${place.file}:${place.line}${place.column > 0 ? `:${place.column}` : ''}`;
  return new Problem({ code: 'bad-key', text: `${where}: ${text}`, place, hint, cause });
}
