/** Compares the processes that a capture reports with the sending processes named in the queries themselves. */
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';

/** A capture's accuracy, by lookup. */
export interface ProcessTruth {
  /** Lookups, each by a single program. */
  readonly lookups: number;
  /** The number of lookups shown with a process. */
  readonly attributed: number;
  /** The same for lookups that took 2 ms or longer. */
  readonly slow: number;
  readonly slowAttributed: number;
  /** The number of names attributed to the wrong process. */
  readonly wrong: readonly string[];
  /** Names attributed to a container other than the one the clients run in. */
  readonly wrongContainer: readonly string[];
}

/** In milliseconds. Longer lookups are visible from outside. */
const SLOW_MS = 2;

/** Parses the lines printed by `ndots capture --process -o json`. */
export function readTruth(output: string, container: string): ProcessTruth {
  const byName = new Map<string, { attributed: boolean; ms: number }>();
  const wrong = new Set<string>();
  const wrongContainer = new Set<string>();
  for (const line of output.split('\n')) {
    if (!line.startsWith('{"kind":"Exchange"')) continue;
    const { question, asker, latencyMs } = JSON.parse(line) as ExchangeDocument;
    const [, pid] = /^p(\d+)\.n\d+\.truth\.test\.$/.exec(question.name) ?? [];
    if (pid === undefined) continue;
    const seen = byName.get(question.name) ?? { attributed: false, ms: 0 };
    byName.set(question.name, seen);
    seen.ms = Math.max(seen.ms, latencyMs ?? Infinity);
    const pids = (asker?.processes ?? []).map((process) => process.pid);
    if (pids.length > 0) seen.attributed = true;
    if (pids.some((each) => each !== Number(pid))) wrong.add(question.name);
    const id = asker?.container?.id;
    if (id !== undefined && id !== container) wrongContainer.add(question.name);
  }
  const all = [...byName.values()];
  const slow = all.filter(({ ms }) => ms >= SLOW_MS);
  return {
    lookups: all.length,
    attributed: all.filter(({ attributed }) => attributed).length,
    slow: slow.length,
    slowAttributed: slow.filter(({ attributed }) => attributed).length,
    wrong: [...wrong],
    wrongContainer: [...wrongContainer],
  };
}
