/** Certificates of the stand-in API server and its clients. */
import {
  createPrivateKey,
  generateKeyPairSync,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { parseAddress } from '../../../src/base/ip.ts';

/** Key and certificate as PEM texts. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/**
 * A certificate authority made on the spot (P-256, RFC 5280), so that no keys lie in the tree. Valid for a day, or
 * for the days of `notAfter`.
 */
export class Authority {
  readonly cert: string;
  readonly #name: string;
  readonly #key: KeyObject;

  constructor(name = 'ndots test CA') {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#name = name;
    this.#key = privateKey;
    this.cert = pem(
      'CERTIFICATE',
      certificate({ subject: name, issuer: name, publicKey, signer: privateKey, authority: true }),
    );
  }

  /** For a server (`hosts`: names and addresses) or a client (no hosts). */
  issue(subject: string, hosts: readonly string[] = [], notAfter?: Date): Identity {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const der = certificate({
      subject,
      issuer: this.#name,
      publicKey,
      signer: this.#key,
      hosts,
      ...(notAfter === undefined ? {} : { notAfter }),
    });
    const cert = pem('CERTIFICATE', der);
    // A mistake in the encoding shows here and not in some handshake.
    new X509Certificate(cert);
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }

  /** Whether a PEM key belongs to this authority; for tests of its own. */
  owns(key: string): boolean {
    return createPrivateKey(key).equals(this.#key);
  }
}

function certificate(parts: {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signer: KeyObject;
  hosts?: readonly string[];
  authority?: boolean;
  notAfter?: Date;
}): Buffer {
  const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
  const start = new Date(Date.now() - 3600_000);
  const end = parts.notAfter ?? new Date(Date.now() + 24 * 3600_000);
  const serial = Buffer.alloc(8);
  serial.writeBigUInt64BE(process.hrtime.bigint() & 0x7fff_ffff_ffff_ffffn);
  const names = (parts.hosts ?? []).map((host) => {
    const address = parseAddress(host);
    return address === null ? tagged(0x82, Buffer.from(host)) : tagged(0x87, Buffer.from(address));
  });
  const extensions = [
    extension(
      '2.5.29.19',
      sequence(...(parts.authority ? [tagged(0x01, Buffer.from([0xff]))] : [])),
    ),
    ...(names.length > 0 ? [extension('2.5.29.17', sequence(...names))] : []),
  ];
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    commonName(parts.issuer),
    sequence(time(start < end ? start : new Date(end.getTime() - 3600_000)), time(end)),
    commonName(parts.subject),
    parts.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, parts.signer);
  return sequence(
    body,
    ecdsaWithSha256,
    tagged(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines.trimEnd()}\n-----END ${label}-----\n`;
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function integer(bytes: Buffer): Buffer {
  // Positive, and without needless leading zeros (DER).
  let at = 0;
  while (at < bytes.length - 1 && bytes[at] === 0 && bytes[at + 1]! < 0x80) at++;
  return tagged(0x02, bytes.subarray(at));
}

function oid(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number);
  const bytes = [40 * first! + second!];
  for (const part of rest) {
    const digits = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return tagged(0x06, Buffer.from(bytes));
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(name)))));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

/** GeneralizedTime, good for every year. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return tagged(0x18, Buffer.from(`${digits}Z`));
}
