/**
 * Pod names that exist for any address (`pods insecure`). There is no limit to their number, so `rrl` counts all names
 * in a namespace together.
 */
import { suffixAt } from '../../../wire/name.ts';
import type { WildcardOf } from '../../../zone/wildcard-names.ts';
import type { ClusterZone } from './lookup.ts';

const POD = Buffer.from('\x03pod');

/** Returns the offset of the namespace in `A-B-C-D.NAMESPACE.pod.ZONE` for an answer with addresses. */
export function podNames(zones: readonly ClusterZone[]): WildcardOf {
  return ({ folded, nameLength }, isNoData) => {
    // Clients query both A and AAAA, but a pod name has only one of the two, so this is not a flood.
    if (isNoData) return -1;
    const namespace = 1 + folded[0]!;
    const pod = namespace + 1 + (folded[namespace] ?? 0);
    if (POD.some((byte, i) => folded[pod + i] !== byte)) return -1;
    const zone = pod + POD.length;
    const isOurs = zones.some(
      ({ wire }) =>
        nameLength - wire.length === zone && suffixAt(folded, wire, nameLength) === zone,
    );
    return isOurs ? namespace : -1;
  };
}
