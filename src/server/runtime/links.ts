/** Lists the interfaces of the network namespace that this thread is in (rtnetlink(7)). */
import { attributesIn, dumpNetlink } from './netlink.ts';

/** Message types in <linux/rtnetlink.h>. */
const KIND = { NEW_LINK: 16, GET_LINK: 18 };
/** `struct ifinfomsg` and link attributes (<linux/if_link.h>). */
const LINK = {
  SIZE: 16,
  HARDWARE: 2,
  INDEX: 4,
  FLAGS: 8,
  NAME: 3,
  ALIAS: 20,
  INFO: 18,
  INFO_KIND: 1,
};
const UP = 1;
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
  dumpNetlink(KIND.GET_LINK, KIND.NEW_LINK, LINK.SIZE, (bytes, view, attributes) => {
    const text = (place: readonly [number, number] | undefined): string =>
      place === undefined
        ? ''
        : Buffer.from(bytes.subarray(place[0], place[1])).toString().replace(/\0.*/s, '');
    const info = attributes.get(LINK.INFO);
    const whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const inner = info === undefined ? null : attributesIn(whole, info[0], info[1]);
    links.push({
      index: view.getInt32(LINK.INDEX, true),
      name: text(attributes.get(LINK.NAME)),
      kind: text(inner?.get(LINK.INFO_KIND)),
      alias: text(attributes.get(LINK.ALIAS)),
      up: (view.getUint32(LINK.FLAGS, true) & UP) !== 0,
      isLoopback: view.getUint16(LINK.HARDWARE, true) === LOOPBACK,
    });
  });
  return links;
}
