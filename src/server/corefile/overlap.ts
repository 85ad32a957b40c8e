import { Problem } from '../base/problem.ts';
import type { Key } from './corefile-tree.ts';

/** A server block in the form that the overlap check needs. */
export interface ListenClaim {
  readonly keys: readonly Key[];
  /** The addresses given to `bind`, or an empty list for all addresses of the machine. */
  readonly binds: readonly string[];
  /** Blocks that have a view may share a zone, and are tried from top to bottom. */
  readonly hasView: boolean;
}

/**
 * Reports blocks that listen for the same zone on the same port and address with the same scheme. Also reports zones
 * that appear both with and without `bind`.
 */
export function overlapProblems(blocks: readonly ListenClaim[]): Problem[] {
  const problems: Problem[] = [];
  const claimed = new Map<string, Key>();
  /** The last one seen, by claim without address. */
  const anywhere = new Map<string, { name: string; key: Key }>();
  for (const { keys, binds, hasView } of blocks) {
    for (const key of keys) {
      const unbound = claimName(key, '');
      for (const bind of binds.length === 0 ? [''] : binds) {
        const name = claimName(key, bind);
        const same = claimed.get(name);
        const near = anywhere.get(unbound);
        if (same !== undefined) {
          if (!hasView) problems.push(alreadyDefined(name, key, same));
        } else if (near !== undefined && (bind === '' || claimed.has(unbound))) {
          const other = bind === '' ? near : { name: unbound, key: claimed.get(unbound)! };
          problems.push(overlaps(name, key, other));
        } else if (!hasView) {
          claimed.set(name, key);
          anywhere.set(unbound, { name, key });
        }
      }
    }
  }
  return problems;
}

/** `dns://example.org.:53 on 127.0.0.1`. */
function claimName({ scheme, zone, port }: Key, bind: string): string {
  return `${scheme}://${zone}:${port}${bind === '' ? '' : ` on ${bind}`}`;
}

function alreadyDefined(name: string, { place }: Key, first: Key): Problem {
  return new Problem({
    code: 'zone-repeated',
    text: `cannot serve ${name} - it is already defined`,
    place,
    hint: `The first one is at ${first.place.file}:${first.place.line}.`,
    remedy: 'Merge the two blocks, or give one of them another port, a bind or a view.',
  });
}

function overlaps(name: string, { place }: Key, other: { name: string; key: Key }): Problem {
  const { file, line } = other.key.place;
  return new Problem({
    code: 'zone-overlap',
    text: `cannot serve ${name} - zone overlap listener capacity with ${other.name}`,
    place,
    hint: `The other one is at ${file}:${line}. A block without bind listens on all addresses.`,
    remedy: 'Give both blocks a bind, or neither.',
  });
}
