import { parseBase64, parseHex, printBase64, printHex } from '../encoding.ts';
import { TYPE } from '../iana.ts';
import { fullName, u8 } from './field.ts';
import type { RecordKind } from './kind.ts';

/** A host's identity, and the rendezvous servers through which the host can be reached. */
export interface HostIdentity {
  /** The key's algorithm as in IPSECKEY: 1 is DSA, 2 is RSA and 3 is ECDSA (RFC 8005 section 5.2). */
  readonly algorithm: number;
  /** Host identity tag. */
  readonly tag: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly servers: readonly string[];
}

/** Host identity protocol (RFC 8005 section 5). */
export const hip: RecordKind<HostIdentity> = {
  name: 'HIP',
  type: TYPE.HIP,
  read(from) {
    const tagLength = from.u8();
    const algorithm = from.u8();
    const keyLength = from.u16();
    if (tagLength === 0 || keyLength === 0) from.fail('HIP has an empty tag or key');
    const tag = from.bytes(tagLength);
    const publicKey = from.bytes(keyLength);
    const servers: string[] = [];
    while (from.left > 0) servers.push(from.fullName());
    return { algorithm, tag, publicKey, servers };
  },
  write(data, to) {
    to.u8(data.tag.length);
    to.u8(data.algorithm);
    to.u16(data.publicKey.length);
    to.bytes(data.tag);
    to.bytes(data.publicKey);
    for (const server of data.servers) fullName.write(server, to);
  },
  print({ algorithm, tag, publicKey, servers }) {
    return [algorithm, printHex(tag).toUpperCase(), printBase64(publicKey), ...servers].join(' ');
  },
  parse(from) {
    const algorithm = u8.parse(from, 'HIP algorithm');
    const tag = parseHex(from.next('HIP tag'));
    if (tag === null || tag.length === 0 || tag.length > 255) {
      return from.fail('HIP tag must be 1 to 255 bytes of hex');
    }
    const publicKey = parseBase64(from.next('HIP key')) ?? from.fail('HIP key must be base64');
    const servers: string[] = [];
    while (from.left > 0) servers.push(from.domain('HIP server'));
    return { algorithm, tag, publicKey, servers };
  },
};
