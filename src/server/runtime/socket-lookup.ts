/**
 * The socket that sends from an address and port to another one (sock_diag(7)), in the network
 * namespace where the lookup was opened.
 */
import { parseAddress } from '../base/ip.ts';
import { SystemError } from './libc.ts';
import { NETLINK, NetlinkSocket, type NetlinkObject } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** <linux/sock_diag.h>: requests sockets of a family. */
const BY_FAMILY = 20;
/** Numbers of protocols (IANA). */
const PROTOCOL = { tcp: 6, udp: 17 } as const;
/**
 * struct inet_diag_req_v2: its size, and where its parts are, in bytes. The cookie of all ones means
 * any socket.
 */
const ASK = {
  ...{ SIZE: 56, PROTOCOL: 1, STATES: 4, SOURCE_PORT: 8, DESTINATION_PORT: 10 },
  ...{ SOURCE: 12, DESTINATION: 28, COOKIE: 48 },
};
/** struct inet_diag_msg. */
const TOLD = { SIZE: 72, STATE: 1, COOKIE: 44, UID: 64, INODE: 68 };
/** Attribute INET_DIAG_CGROUP_ID (Linux 5.8). */
const CGROUP_ID = 21;
const ENOENT = 2;
/** TCP_LISTEN of <net/tcp_states.h>. */
const LISTEN = 10;

/** A socket as the kernel describes it. */
export interface FoundSocket {
  /** Number of the file `socket:[inode]`; 0: no process holds it (TIME_WAIT, or not accepted yet). */
  readonly inode: number;
  /** Never used again by another socket while the machine runs. */
  readonly cookie: bigint;
  /** User that made it. */
  readonly uid: number;
  /** Its cgroup v2 (`stat` of the directory shows the same number); null: the kernel does not say. */
  readonly cgroup: bigint | null;
  /** It waits for connections: none with that remote address exists. */
  readonly listens: boolean;
}

/** Finds sockets of one network namespace. Its owner closes it. */
export class SocketLookup {
  readonly #socket = new NetlinkSocket(NETLINK.SOCK_DIAG);
  readonly #ask = new Uint8Array(ASK.SIZE);
  readonly #view = new DataView(this.#ask.buffer);

  /**
   * The socket that has these two ends; null: there is none (any more).
   * @throws SystemError
   */
  find(
    protocol: 'udp' | 'tcp',
    local: { readonly address: string; readonly port: number },
    remote: { readonly address: string; readonly port: number },
  ): FoundSocket | null {
    const [here, there] = [parseAddress(local.address), parseAddress(remote.address)];
    if (here === null || there === null || here.length !== there.length) return null;
    // For UDP the kernel takes the source for the remote end, for TCP for the local one.
    const isUdp = protocol === 'udp';
    const [source, target] = isUdp ? [there, here] : [here, there];
    this.#ask.fill(0);
    this.#ask[0] = here.length === 4 ? AF_INET : AF_INET6;
    this.#ask[ASK.PROTOCOL] = PROTOCOL[protocol];
    this.#view.setUint32(ASK.STATES, 0xffff_ffff, true);
    this.#view.setUint16(ASK.SOURCE_PORT, isUdp ? remote.port : local.port);
    this.#view.setUint16(ASK.DESTINATION_PORT, isUdp ? local.port : remote.port);
    this.#ask.set(source, ASK.SOURCE);
    this.#ask.set(target, ASK.DESTINATION);
    this.#ask.fill(0xff, ASK.COOKIE, ASK.COOKIE + 8);
    const found = this.#socket.ask(BY_FAMILY, this.#ask, TOLD.SIZE);
    if (typeof found !== 'number') return readSocket(found);
    if (found === ENOENT) return null;
    throw new SystemError('sock_diag', found);
  }

  close(): void {
    this.#socket.close();
  }
}

function readSocket({ view, at, attributes }: NetlinkObject): FoundSocket {
  const cgroup = attributes.get(CGROUP_ID);
  return {
    inode: view.getUint32(at + TOLD.INODE, true),
    cookie: view.getBigUint64(at + TOLD.COOKIE, true),
    uid: view.getUint32(at + TOLD.UID, true),
    cgroup: cgroup === undefined ? null : view.getBigUint64(cgroup[0], true),
    listens: view.getUint8(at + TOLD.STATE) === LISTEN,
  };
}
