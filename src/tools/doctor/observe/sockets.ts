/**
 * Questions about sockets that several rules ask: which of them are silent, and whether that goes
 * by turns or by moments.
 */
import type { FlowView } from './flow-view.ts';
import { MAX_CHANCE } from '../thresholds/evidence.ts';
import { SILENT_BY_TURNS } from '../thresholds/transport.ts';

export function isSilent({ lost, asked }: FlowView): boolean {
  return lost === asked;
}

/** Silent sockets among others, in the order in which they were opened. */
export interface SocketTurns {
  /** The number of alternations between silent sockets and others. */
  readonly count: number;
  /**
   * The distance from chance in standard deviations: far below 0, silence comes in stretches of
   * time.
   */
  readonly deviation: number;
}

/** Counts turns (Wald and Wolfowitz, 1940). */
export function turnsOf(flows: readonly FlowView[]): SocketTurns {
  const silent = flows.toSorted((one, other) => one.firstMs - other.firstMs).map(isSilent);
  let count = 0;
  for (let at = 1; at < silent.length; at++) if (silent[at] !== silent[at - 1]) count++;
  const all = silent.length;
  const both = 2 * silent.filter(Boolean).length * silent.filter((each) => !each).length;
  if (all < 2 || both === 0) return { count, deviation: 0 };
  const expected = both / all;
  const variance = (both * (both - all)) / (all * all * (all - 1));
  return { count, deviation: variance <= 0 ? 0 : (count - expected) / Math.sqrt(variance) };
}

/**
 * Counts the silent sockets that sent a query before and after another socket was opened and
 * answered. Time then does not decide, even if silent sockets come in groups because their clients
 * wait.
 */
export function countOutlasting(flows: readonly FlowView[]): number {
  let count = 0;
  let answeredMs = Infinity;
  for (const flow of flows.toSorted((one, other) => other.firstMs - one.firstMs)) {
    if (flow.lost === 0) answeredMs = Math.min(answeredMs, flow.lastAnsweredMs);
    else if (isSilent(flow) && flow.lastMs > answeredMs) count++;
  }
  return count;
}

/** The sockets opened from the first to the last silent one: earlier successes show nothing. */
export function whileSilent(flows: readonly FlowView[]): readonly FlowView[] {
  const silent = flows.filter(isSilent);
  const fromMs = silent.reduce((least, { firstMs }) => Math.min(least, firstMs), Infinity);
  const toMs = silent.reduce((most, { firstMs }) => Math.max(most, firstMs), -Infinity);
  return flows.filter(({ firstMs }) => firstMs >= fromMs && firstMs <= toMs);
}

/**
 * True if chance explains that all sockets of this time are silent: some before it are, among
 * others that are answered, and so few follow that all of them may fail. The silence then shows one
 * dead server of several.
 */
export function areSilentByChance(
  flows: readonly FlowView[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): boolean {
  const sinceMs = flows
    .filter(isSilent)
    .reduce((least, each) => Math.min(least, each.firstMs), Infinity);
  const opened = flows.filter(({ firstMs }) => firstMs >= sinceMs && firstMs < toMs);
  const before = opened.filter(({ firstMs }) => firstMs < fromMs);
  if (before.filter(isSilent).length < SILENT_BY_TURNS.silent) return false;
  if (turnsOf(before).count < SILENT_BY_TURNS.turns) return false;
  const run = opened.filter((flow) => flow.firstMs >= fromMs && isSilent(flow)).length;
  const rate = opened.filter(isSilent).length / opened.length;
  return (opened.length - run + 1) * rate ** run > MAX_CHANCE;
}
