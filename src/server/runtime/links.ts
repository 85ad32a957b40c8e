/** Lists the interfaces of the network namespace that this thread is in (rtnetlink(7)). */
import { attributesIn, dumpNetlink } from './netlink.ts';

/** Message types in <linux/rtnetlink.h>. */
export const LINKS = { NEW: 16, DELETE: 17, GET: 18 } as const;
/** `struct ifinfomsg` (<linux/if_link.h>). */
export const LINK = { SIZE: 16, HARDWARE: 2, INDEX: 4, FLAGS: 8, CHANGED: 12 } as const;
/** Link attributes. */
export const OF_LINK = { NAME: 3, ALIAS: 20, INFO: 18, INFO_KIND: 1 } as const;
export const UP = 1;
/** ARPHRD_LOOPBACK. */
const LOOPBACK = 772;

/** Current state of an interface. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** `dummy`, `bridge`, `veth` …; empty for a hardware device and for `lo`. */
  readonly kind: string;
  /** The alias set by its creator. */
  readonly alias: string;
  readonly up: boolean;
  readonly isLoopback: boolean;
}

/**
 * Returns all interfaces, including those that are down.
 * @throws LibcMissing, SystemError
 */
export function listLinks(): readonly Link[] {
  const links: Link[] = [];
  dumpNetlink(LINKS.GET, LINKS.NEW, LINK.SIZE, (bytes, view, attributes) => {
    const text = (place: readonly [number, number] | undefined): string =>
      place === undefined
        ? ''
        : Buffer.from(bytes.subarray(place[0], place[1])).toString().replace(/\0.*/s, '');
    const info = attributes.get(OF_LINK.INFO);
    const whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const inner = info === undefined ? null : attributesIn(whole, info[0], info[1]);
    links.push({
      index: view.getInt32(LINK.INDEX, true),
      name: text(attributes.get(OF_LINK.NAME)),
      kind: text(inner?.get(OF_LINK.INFO_KIND)),
      alias: text(attributes.get(OF_LINK.ALIAS)),
      up: (view.getUint32(LINK.FLAGS, true) & UP) !== 0,
      isLoopback: view.getUint16(LINK.HARDWARE, true) === LOOPBACK,
    });
  });
  return links;
}
