/**
 * Mail filters' block list lookups (RFC 5782): a reversed address or a domain, followed by the
 * list's name. NXDOMAIN means "not listed", and 127.0.0.2 or higher is a code.
 */
import { commonZone, isBelow } from '../../../server/wire/within-zone.ts';
import { MIN_LIST_CODES } from '../thresholds/answers.ts';
import type { NameView } from './name-view.ts';

/** `4.3.2.1.list.example.`, and the digits of an IPv6 address. */
const OF_ADDRESS = /^(?:(?:\d{1,3}\.){4}|(?:[0-9a-f]\.){32})(?!in-addr\.arpa\.|ip6\.arpa\.)[^.]+\./;
/** Loopback addresses, except those that a host’s own names may have. */
const CODE = /^127\.0\.(?:0\.(?!1$|53$)\d+|[1-9]\d*\.(?!1$)\d+)$/;

/** True if the name looks up an address in a list. */
export function isBlockListName(name: string): boolean {
  return OF_ADDRESS.test(name);
}

/**
 * Returns a test for block list lookups. They are recognised by their form, or because several
 * names in the same zone have codes.
 */
export function blockListTest(list: readonly NameView[]): (name: string) => boolean {
  const listed = list.flatMap(({ name, addresses }) =>
    addresses.length > 0 && addresses.every((address) => CODE.test(address)) ? name : [],
  );
  const zones = [...Map.groupBy(new Set(listed), lastLabels).values()].flatMap((names) => {
    const zone = names.reduce(commonZone);
    // A whole top-level domain is not a list.
    return names.length >= MIN_LIST_CODES && zone.split('.').length > 2 ? zone : [];
  });
  return (name) => isBlockListName(name) || zones.some((zone) => isBelow(name, zone));
}

/** The last two labels, which identify a list’s owner. */
function lastLabels(name: string): string {
  return name.split('.').slice(-3).join('.');
}
