/**
 * Names of pods that exist for any address (`pods insecure`): there are endless ones, so `rrl`
 * counts those of a namespace together.
 */
import { suffixAt } from '../../../wire/name.ts';
import type { WildcardOf } from '../../../zone/wildcard-names.ts';
import type { ClusterZone } from './lookup.ts';

const POD = Buffer.from('\x03pod');

/** For an answer with addresses: where in `A-B-C-D.NAMESPACE.pod.ZONE` the namespace begins. */
export function podNames(zones: readonly ClusterZone[]): WildcardOf {
  return ({ folded, nameLength }, isNoData) => {
    // Clients query A and AAAA, and a pod's name has only one of them: this is not a flood.
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
