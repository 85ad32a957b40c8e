/** Looks up a connection's translated addresses in netfilter's connection tracking. */
import { parseAddress, printAddress } from '../base/ip.ts';
import { ERRNO, SystemError } from './libc.ts';
import { attribute, attributesIn, NETLINK, NetlinkSocket, type Attributes } from './netlink.ts';
import { AF_INET, AF_INET6, PROTOCOL } from './socket-address.ts';

/** IPCTNL_MSG_CT_GET in <linux/netfilter/nfnetlink_conntrack.h>, subsystem 1. */
const GET = (1 << 8) | 1;
/** Size of struct nfgenmsg: family, version, resource. */
const HEAD = 4;
/** Attributes in <linux/netfilter/nfnetlink_conntrack.h>. */
const ORIGINAL = 1;
const REPLY = 2;
const OF_TUPLE = { ADDRESSES: 1, PROTOCOL: 2 };
const OF_ADDRESSES = { SOURCE: { 4: 1, 6: 3 }, DESTINATION: { 4: 2, 6: 4 } } as const;
const OF_PROTOCOL = { NUMBER: 1, SOURCE_PORT: 2, DESTINATION_PORT: 3 };
/** NLA_F_NESTED. */
const NESTED = 0x8000;

interface End {
  readonly address: string;
  readonly port: number;
}

/** Both ends of a tracked connection after translation: the client as the server sees it, and the real server. */
export interface TranslatedEnds {
  readonly client: End;
  readonly server: End;
}

/** Queries the connection tracking of one network namespace. The owner must close it. */
export class TranslationLookup {
  readonly #socket = new NetlinkSocket(NETLINK.NETFILTER);

  /**
   * Returns the connection after translation, which equals the input if there is none, or null if it is not tracked.
   * @throws SystemError (EPERM without CAP_NET_ADMIN)
   */
  find(protocol: 'udp' | 'tcp', client: End, server: End): TranslatedEnds | null {
    const [from, to] = [parseAddress(client.address), parseAddress(server.address)];
    if (from === null || to === null || from.length !== to.length) return null;
    const family = from.length === 4 ? 4 : 6;
    const tuple = attribute(
      ORIGINAL | NESTED,
      Buffer.concat([
        attribute(
          OF_TUPLE.ADDRESSES | NESTED,
          Buffer.concat([
            attribute(OF_ADDRESSES.SOURCE[family], from),
            attribute(OF_ADDRESSES.DESTINATION[family], to),
          ]),
        ),
        attribute(
          OF_TUPLE.PROTOCOL | NESTED,
          Buffer.concat([
            attribute(OF_PROTOCOL.NUMBER, Uint8Array.of(PROTOCOL[protocol])),
            attribute(OF_PROTOCOL.SOURCE_PORT, port(client.port)),
            attribute(OF_PROTOCOL.DESTINATION_PORT, port(server.port)),
          ]),
        ),
      ]),
    );
    const head = Uint8Array.of(family === 4 ? AF_INET : AF_INET6, 0, 0, 0);
    const found = this.#socket.ask(GET, Buffer.concat([head, tuple]), HEAD);
    if (found === ERRNO.ENOENT) return null;
    if (typeof found === 'number') throw new SystemError('conntrack', found);
    return readReply(found.view, found.attributes, family);
  }

  close(): void {
    this.#socket.close();
  }
}

/** Reads the reply direction: from the real server to the address that it sees as the client. */
function readReply(view: DataView, attributes: Attributes, family: 4 | 6): TranslatedEnds | null {
  const inner = (place: readonly [number, number] | undefined): Attributes =>
    place === undefined ? new Map() : attributesIn(view, place[0], place[1]);
  const tuple = inner(attributes.get(REPLY));
  const addresses = inner(tuple.get(OF_TUPLE.ADDRESSES));
  const ports = inner(tuple.get(OF_TUPLE.PROTOCOL));
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const end = (address: number, portType: number): End | null => {
    const [at] = addresses.get(address) ?? [];
    const [portAt] = ports.get(portType) ?? [];
    if (at === undefined || portAt === undefined) return null;
    return {
      address: printAddress(bytes, at, family === 4 ? 4 : 16),
      port: view.getUint16(portAt),
    };
  };
  const server = end(OF_ADDRESSES.SOURCE[family], OF_PROTOCOL.SOURCE_PORT);
  const client = end(OF_ADDRESSES.DESTINATION[family], OF_PROTOCOL.DESTINATION_PORT);
  return server === null || client === null ? null : { client, server };
}

function port(number: number): Uint8Array {
  return Uint8Array.of(number >> 8, number & 0xff);
}
