/**
 * Marks names whose answers come from a wildcard (RFC 4592) or a DNAME (RFC 6672), because many other names get the
 * same answer.
 */
import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { Query } from '../transport/query.ts';
import { NODE } from './packed-zone.ts';
import type { ZoneDirectory } from './zone-directory.ts';
import type { ServedZone } from './zone-replica.ts';

/**
 * Returns the position in `query.folded` of the name whose wildcard (its closest encloser) or DNAME answers the query.
 * It may also be a name below which a plugin answers every name. Returns -1 if there is none. Plugins that answer from
 * zones or generate answers offer this, and `rrl` uses it, because it knows whether the reply is NODATA.
 */
export type WildcardOf = (query: Query, isNoData: boolean) => number;

/** The port where `rrl` finds the wildcards of served zones. */
export const wildcardNames: PluginPort<WildcardOf> = definePort<WildcardOf>('wildcard names');

/** Looks the name up in these zones without allocating anything. */
export function wildcardsOf(zones: ZoneDirectory<ServedZone>): WildcardOf {
  return ({ folded, nameLength }) => {
    const zone = zones.find(folded, nameLength)?.data ?? null;
    const found = zone?.walk(folded, nameLength);
    if (zone === null || (found !== 'nothing' && found !== 'dname')) return -1;
    if (found === 'dname') return zone.nodeAt;
    return (zone.flags(zone.node) & NODE.WILD) === 0 ? -1 : zone.nodeAt;
  };
}
