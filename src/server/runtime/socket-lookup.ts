/**
 * Finds the socket that sends between two endpoints (sock_diag(7)), in the network namespace where the lookup was
 * opened.
 */
import { parseAddress } from '../base/ip.ts';
import { ERRNO, SystemError } from './libc.ts';
import { NETLINK, NetlinkSocket, type NetlinkObject } from './netlink.ts';
import { AF_INET, AF_INET6, PROTOCOL } from './socket-address.ts';

/** <linux/sock_diag.h>: request for sockets of one family. */
const BY_FAMILY = 20;

/** struct inet_diag_req_v2: its size and field offsets, in bytes. A cookie of all ones matches any socket. */
const ASK = {
  ...{ SIZE: 56, PROTOCOL: 1, STATES: 4, SOURCE_PORT: 8, DESTINATION_PORT: 10 },
  ...{ SOURCE: 12, DESTINATION: 28, COOKIE: 48 },
};
/** struct inet_diag_msg. */
const TOLD = { SIZE: 72, STATE: 1, COOKIE: 44, UID: 64, INODE: 68 };
/** Attribute INET_DIAG_CGROUP_ID (Linux 5.8). */
const CGROUP_ID = 21;
/** TCP_LISTEN from <net/tcp_states.h>. */
const LISTEN = 10;

export interface FoundSocket {
  /** Inode of `socket:[inode]`; 0 if no process holds it (TIME_WAIT, or not accepted yet). */
  readonly inode: number;
  /** Not reused by another socket until the machine reboots. */
  readonly cookie: bigint;
  readonly uid: number;
  /** Its cgroup v2 (the inode number of the cgroup's directory), or null if the kernel does not report it. */
  readonly cgroup: bigint | null;
  /** True for a listening socket, which is found if no socket has that remote address. */
  readonly listens: boolean;
}

/** Finds sockets in one network namespace. The owner must close it. */
export class SocketLookup {
  readonly #socket = new NetlinkSocket(NETLINK.SOCK_DIAG);
  readonly #ask = new Uint8Array(ASK.SIZE);
  readonly #view = new DataView(this.#ask.buffer);

  /**
   * Returns the socket with these two endpoints, or null if there is none (any more).
   * @throws SystemError
   */
  find(
    protocol: 'udp' | 'tcp',
    local: { readonly address: string; readonly port: number },
    remote: { readonly address: string; readonly port: number },
  ): FoundSocket | null {
    const [here, there] = [parseAddress(local.address), parseAddress(remote.address)];
    if (here === null || there === null || here.length !== there.length) return null;
    // For UDP, the kernel treats the source as the remote end; for TCP, as the local end.
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
    if (found === ERRNO.ENOENT) return null;
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
