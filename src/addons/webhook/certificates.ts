/** Issues certificates (P-256, RFC 5280) for servers whose clients can be given the CA certificate. */
import {
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { parseAddress } from '../../server/base/ip.ts';

/** Key and certificate in PEM form. */
export interface PemIdentity {
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 24 * 3600_000;
/** Backdates certificates for clients whose clocks are behind. */
const EARLIER_MS = 3600_000;

interface CertificateValidity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** @param now milliseconds since 1970 */
function validFor(ms: number, now: number): CertificateValidity {
  return { notBefore: new Date(now - EARLIER_MS), notAfter: new Date(now + ms) };
}

export class Authority {
  readonly identity: PemIdentity;
  readonly #name: string;
  readonly #key: KeyObject;

  private constructor(identity: PemIdentity) {
    this.identity = identity;
    this.#key = createPrivateKey(identity.key);
    this.#name = commonNameOf(identity.cert);
  }

  /**
   * Creates an authority.
   * @param lastsMs period of validity in milliseconds
   * @param now milliseconds since 1970
   */
  static make(name: string, lastsMs: number = DAY_MS, now: number = Date.now()): Authority {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const validity = validFor(lastsMs, now);
    const parts = { subject: name, issuer: name, publicKey, signer: privateKey, validity };
    return new Authority({
      cert: pem('CERTIFICATE', certificate({ ...parts, authority: true })),
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    });
  }

  /**
   * Restores an authority from its stored identity.
   * @throws if the identity is invalid
   */
  static of(identity: PemIdentity): Authority {
    return new Authority(identity);
  }

  /** The CA certificate, PEM. */
  get cert(): string {
    return this.identity.cert;
  }

  /**
   * Issues a certificate for a server (whose names and addresses are `hosts`) or a client (no hosts).
   * @param until end of validity; the default is one day from now
   */
  issue(
    subject: string,
    hosts: readonly string[] = [],
    until?: Date,
    now: number = Date.now(),
  ): PemIdentity {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const notAfter = until ?? new Date(now + DAY_MS);
    const notBefore = new Date(Math.min(now, notAfter.getTime()) - EARLIER_MS);
    const validity = { notBefore, notAfter };
    const issuer = this.#name;
    const der = certificate({ subject, issuer, publicKey, signer: this.#key, hosts, validity });
    const cert = pem('CERTIFICATE', der);
    // Parse it once, so that an encoding bug shows up here rather than in a handshake.
    new X509Certificate(cert);
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }
}

function commonNameOf(cert: string): string {
  const told = /^CN=(.*)$/m.exec(new X509Certificate(cert).subject)?.[1] ?? '';
  // Unescape the text, in which commas and some other characters are preceded by a backslash.
  return told.replaceAll(/\\(.)/g, '$1');
}

function certificate(parts: {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signer: KeyObject;
  hosts?: readonly string[];
  authority?: boolean;
  validity: CertificateValidity;
}): Buffer {
  const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
  const { notBefore, notAfter } = parts.validity;
  // Always positive and nonzero (RFC 5280 section 4.1.2.2).
  const serial = Buffer.concat([Buffer.of(1), randomBytes(15)]);
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
    sequence(time(notBefore), time(notAfter)),
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
  // Positive, without redundant leading zeros (DER).
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

/** Encodes a GeneralizedTime, which can express any year. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return tagged(0x18, Buffer.from(`${digits}Z`));
}
