/**
 * Which names have their answers from a wildcard (RFC 4592) or a DNAME (RFC 6672): any number of
 * others get the same.
 */
import { definePort, type PluginPort } from '../engine/contract/plugin.ts';
import type { Query } from '../transport/query.ts';
import { NODE } from './packed-zone.ts';
import type { ZoneDirectory } from './zone-directory.ts';
import type { ServedZone } from './zone-replica.ts';

/**
 * Where in `query.folded` the name begins whose wildcard answers for the query's (its closest
 * encloser), or whose DNAME, or below which a plugin makes an answer for any name; -1: none does.
 * Offered by plugins that answer from zones or make answers, asked by `rrl`, which says whether the
 * reply is that there are no records of the type.
 */
export type WildcardOf = (query: Query, isNoData: boolean) => number;

/** Where `rrl` finds the wildcards of the zones that are served beside it. */
export const wildcardNames: PluginPort<WildcardOf> = definePort<WildcardOf>('wildcard names');

/** Looks it up in these zones; allocates nothing. */
export function wildcardsOf(zones: ZoneDirectory<ServedZone>): WildcardOf {
  return ({ folded, nameLength }) => {
    const zone = zones.find(folded, nameLength)?.data ?? null;
    const found = zone?.walk(folded, nameLength);
    if (zone === null || (found !== 'nothing' && found !== 'dname')) return -1;
    if (found === 'dname') return zone.nodeAt;
    return (zone.flags(zone.node) & NODE.WILD) === 0 ? -1 : zone.nodeAt;
  };
}
