/**
 * Lookups in the block lists of mail filters (RFC 5782): an address in reverse, or a domain, before
 * the name of the list. NXDOMAIN means "not listed", and 127.0.0.2 or higher is a code.
 */
import { commonZone, isBelow } from '../../../server/wire/within-zone.ts';
import { MIN_LIST_CODES } from '../thresholds/answers.ts';
import type { NameView } from './name-view.ts';

/** `4.3.2.1.list.example.`, and the digits of an IPv6 address. */
const OF_ADDRESS = /^(?:(?:\d{1,3}\.){4}|(?:[0-9a-f]\.){32})(?!in-addr\.arpa\.|ip6\.arpa\.)[^.]+\./;
/** Loopback addresses, without those that names of the own host may have. */
const CODE = /^127\.0\.(?:0\.(?!1$|53$)\d+|[1-9]\d*\.(?!1$)\d+)$/;

/** True if the name asks a list for an address. */
export function isBlockListName(name: string): boolean {
  return OF_ADDRESS.test(name);
}

/**
 * Decides whether a name is asked from a list: by its form, or because several names of the same
 * zone have codes.
 */
export function blockListTest(list: readonly NameView[]): (name: string) => boolean {
  const listed = list.flatMap(({ name, addresses }) =>
    addresses.length > 0 && addresses.every((address) => CODE.test(address)) ? name : [],
  );
  const zones = [...Map.groupBy(new Set(listed), lastLabels).values()].flatMap((names) => {
    const zone = names.reduce(commonZone);
    // A zone of a whole top-level domain is not a list.
    return names.length >= MIN_LIST_CODES && zone.split('.').length > 2 ? zone : [];
  });
  return (name) => isBlockListName(name) || zones.some((zone) => isBelow(name, zone));
}

/** The last two labels: the owner of a list. */
function lastLabels(name: string): string {
  return name.split('.').slice(-3).join('.');
}
