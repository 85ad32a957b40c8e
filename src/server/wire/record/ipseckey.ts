import { TYPE } from '../iana.ts';
import type { Reader } from '../reader.ts';
import type { Words } from '../record-words.ts';
import type { MessageWriter } from '../writer.ts';
import { restBase64, typedHosts, u8 } from './field.ts';
import type { RecordKind } from './kind.ts';

/** A key, and the gateway through which the host can be reached. */
export interface IpsecKey {
  readonly precedence: number;
  /** 0: none, 1: IPv4 address, 2: IPv6 address, 3: name. */
  readonly gatewayType: number;
  readonly algorithm: number;
  /** In the form given by `gatewayType`; `.` for none. */
  readonly gateway: string;
  readonly publicKey: Uint8Array;
}

/** IPsec keying material (RFC 4025 section 2). */
export const ipseckey: RecordKind<IpsecKey> = {
  name: 'IPSECKEY',
  type: TYPE.IPSECKEY,
  read(from: Reader) {
    const precedence = from.u8();
    const gatewayType = from.u8();
    const algorithm = from.u8();
    const gateway =
      typedHosts[gatewayType] ?? from.fail(`IPSECKEY has the unknown gateway type ${gatewayType}`);
    return {
      precedence,
      gatewayType,
      algorithm,
      gateway: gateway.read(from),
      publicKey: from.rest(),
    };
  },
  write(data: IpsecKey, to: MessageWriter) {
    const gateway = typedHosts[data.gatewayType];
    if (gateway === undefined) throw new RangeError(`gateway type ${data.gatewayType} is unknown`);
    to.u8(data.precedence);
    to.u8(data.gatewayType);
    to.u8(data.algorithm);
    gateway.write(data.gateway, to);
    to.bytes(data.publicKey);
  },
  print(data: IpsecKey, split = 0) {
    const { precedence, gatewayType, algorithm, gateway } = data;
    return `${precedence} ${gatewayType} ${algorithm} ${gateway} ${restBase64.print(data.publicKey, split)}`.trimEnd();
  },
  parse(from: Words) {
    const precedence = u8.parse(from, 'IPSECKEY precedence');
    const gatewayType = from.number('IPSECKEY gateway type', typedHosts.length - 1);
    const algorithm = u8.parse(from, 'IPSECKEY algorithm');
    const gateway = typedHosts[gatewayType]!.parse(from, 'IPSECKEY gateway');
    return {
      precedence,
      gatewayType,
      algorithm,
      gateway,
      publicKey: restBase64.parse(from, 'IPSECKEY key'),
    };
  },
};
