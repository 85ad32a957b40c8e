/** Losses in waves: for some seconds no query is answered, then all are, and this repeats. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { MAX_CHANCE } from '../thresholds/evidence.ts';
import { LOSS_WAVE } from '../thresholds/transport.ts';
import type { Observations } from './observations.ts';

/** A period in which every query was lost. */
export interface LossWave {
  /** Milliseconds since 1970, in whole seconds. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly lost: number;
}

/**
 * The waves that contain most losses at these servers; empty if there are fewer than two. Repeats of
 * one lost query are not a wave.
 */
export function lossWaves(
  { servers }: Observations,
  addresses: readonly string[],
  losses: readonly SeenExchange[],
): readonly LossWave[] {
  const seconds = new Map<number, { asked: number; lost: number }>();
  for (const address of addresses)
    for (const [second, { asked, lost }] of servers.get(address)?.history ?? []) {
      const sum = seconds.get(second) ?? { asked: 0, lost: 0 };
      seconds.set(second, { asked: sum.asked + asked, lost: sum.lost + lost });
    }
  const all = { asked: 0, lost: 0 };
  const runs: { fromS: number; toS: number; lost: number }[] = [];
  let run: (typeof runs)[number] | null = null;
  for (const [second, { asked, lost }] of [...seconds].toSorted(([one], [other]) => one - other)) {
    if (asked === 0) continue;
    all.asked += asked;
    all.lost += lost;
    if (lost < asked) run = null;
    else if (run === null) runs.push((run = { fromS: second, toS: second, lost }));
    else {
      run.toS = second;
      run.lost += lost;
    }
  }
  const rate = all.lost / Math.max(1, all.asked);
  const namesIn = (fromMs: number, toMs: number): number =>
    new Set(losses.flatMap(({ name, sentMs }) => (sentMs >= fromMs && sentMs < toMs ? name : [])))
      .size;
  const waves = runs
    .map(({ fromS, toS, lost }) => ({ fromMs: fromS * 1000, toMs: (toS + 1) * 1000, lost }))
    .filter(
      ({ fromMs, toMs, lost }) =>
        toMs - fromMs >= LOSS_WAVE.seconds * 1000 &&
        rate ** lost < MAX_CHANCE &&
        namesIn(fromMs, toMs) >= LOSS_WAVE.names,
    );
  const inWaves = waves.reduce((sum, { lost }) => sum + lost, 0);
  return waves.length < LOSS_WAVE.count || inWaves < LOSS_WAVE.share * all.lost ? [] : waves;
}
