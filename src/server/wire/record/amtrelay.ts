import { TYPE } from '../iana.ts';
import type { Reader } from '../reader.ts';
import type { Words } from '../record-words.ts';
import type { MessageWriter } from '../writer.ts';
import { typedHosts, u8 } from './field.ts';
import type { RecordKind } from './kind.ts';

/** A multicast relay. */
export interface Relay {
  readonly precedence: number;
  /** 1 if discovery is optional (D). */
  readonly optional: number;
  /** 0: none, 1: IPv4 address, 2: IPv6 address, 3: name. */
  readonly relayType: number;
  /** In the form given by `relayType`; `.` for none. */
  readonly relay: string;
}

/** Relay for automatic multicast tunneling (RFC 8777 section 4). */
export const amtrelay: RecordKind<Relay> = {
  name: 'AMTRELAY',
  type: TYPE.AMTRELAY,
  read(from: Reader) {
    const precedence = from.u8();
    const both = from.u8();
    const relayType = both & 127;
    const relay = typedHosts[relayType] ?? from.fail(`AMTRELAY has the unknown type ${relayType}`);
    return { precedence, optional: both >> 7, relayType, relay: relay.read(from) };
  },
  write({ precedence, optional, relayType, relay }: Relay, to: MessageWriter) {
    const field = typedHosts[relayType];
    if (field === undefined) throw new RangeError(`relay type ${relayType} is unknown`);
    to.u8(precedence);
    to.u8((optional << 7) | relayType);
    field.write(relay, to);
  },
  print: ({ precedence, optional, relayType, relay }: Relay) =>
    `${precedence} ${optional} ${relayType} ${relay}`,
  parse(from: Words) {
    const precedence = u8.parse(from, 'AMTRELAY precedence');
    const optional = from.number('AMTRELAY discovery', 1);
    const relayType = from.number('AMTRELAY type', typedHosts.length - 1);
    return {
      precedence,
      optional,
      relayType,
      relay: typedHosts[relayType]!.parse(from, 'AMTRELAY relay'),
    };
  },
};
