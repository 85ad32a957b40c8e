/**
 * Results of new sockets, without a reply so far, and of known ones, in short stretches of time.
 */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { NEAR_STRETCHES, SOCKET_STRETCH_MS } from '../thresholds/transport.ts';

/** Stretches counted separately: two hours. */
const STRETCHES_MAX = 28_800;

export interface Fates {
  asked: number;
  lost: number;
}

export interface Ages {
  readonly fresh: Fates;
  readonly known: Fates;
}

/** Compares new sockets with those that have been answered. */
export class NewSockets {
  readonly #stretches: BoundedMap<number, Ages> = new BoundedMap(STRETCHES_MAX);

  /** @param isKnown whether the socket had got a reply when the query was sent */
  add(exchange: SeenExchange, isKnown: boolean): void {
    const at = Math.floor(exchange.sentMs / SOCKET_STRETCH_MS);
    const stretch = this.#stretches.at(at, noAges);
    if (stretch === null) return;
    const fates = isKnown ? stretch.known : stretch.fresh;
    fates.asked++;
    if (isLost(exchange)) fates.lost++;
  }

  /**
   * The sum over the stretches in which queries of new sockets got lost, and in how many of these
   * all others were answered.
   */
  get meanwhile(): Ages & { readonly spared: number } {
    const lossy = this.#stretches.list.filter(({ fresh }) => fresh.lost > 0);
    const spared = lossy.filter(({ known }) => known.asked > 0 && known.lost === 0).length;
    return { ...sumOf(lossy), spared };
  }

  get all(): Ages {
    return sumOf(this.#stretches.list);
  }

  /**
   * The sum over the stretches in which no query of a new socket is answered, nor before or after:
   * within a silence.
   */
  get amid(): Ages {
    const asked = this.#stretches.entries
      .filter(([, { fresh }]) => fresh.asked > 0)
      .toSorted(([one], [other]) => one - other);
    const isSilent = (at: number, to: number): boolean => {
      const next = asked[at];
      return (
        next !== undefined &&
        Math.abs(next[0] - to) <= NEAR_STRETCHES &&
        next[1].fresh.lost === next[1].fresh.asked
      );
    };
    return sumOf(
      asked.flatMap(([stretch, ages], at) =>
        [at - 1, at, at + 1].every((each) => isSilent(each, stretch)) ? ages : [],
      ),
    );
  }

  /** The sum from the first to the last stretch in which queries of new sockets got lost. */
  get throughout(): Ages {
    const stretches = this.#stretches.entries.toSorted(([one], [other]) => one - other);
    const first = stretches.findIndex(([, { fresh }]) => fresh.lost > 0);
    const last = stretches.findLastIndex(([, { fresh }]) => fresh.lost > 0);
    return sumOf(first < 0 ? [] : stretches.slice(first, last + 1).map(([, ages]) => ages));
  }
}

function sumOf(stretches: readonly Ages[]): Ages {
  const sum = noAges();
  for (const stretch of stretches)
    for (const age of ['fresh', 'known'] as const) {
      sum[age].asked += stretch[age].asked;
      sum[age].lost += stretch[age].lost;
    }
  return sum;
}

function noAges(): Ages {
  return { fresh: { asked: 0, lost: 0 }, known: { asked: 0, lost: 0 } };
}
