/** Servers that are silent for a while, several times. */
import type { Observations } from './observations.ts';
import type { Pause, ServerView } from './server-view.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { takeSilence } from './consequences.ts';
import { choices, deadNames } from './dead-names.ts';
import { type Claims } from './claims.ts';
import { hitsAllAlike, isAnsweredElse, onlyAaaa, waitsForOthers, wentAstray } from './losses.ts';
import { MAX_CHANCE_OF_MANY, NEARLY_ALL } from '../thresholds/evidence.ts';
import { REPEATED_SILENCE, SILENCE_BEGINS_MS, UNLIKELY_DEAD } from '../thresholds/silence.ts';

export interface Silent {
  readonly pause: Pause;
  readonly losses: readonly SeenExchange[];
}

export interface RepeatedSilence {
  readonly view: ServerView;
  readonly silent: readonly Silent[];
  readonly losses: readonly SeenExchange[];
}

/**
 * Several times nothing comes back, whatever is asked, and all is well in between; null: it is
 * once, or not at all.
 */
export function repeatedSilence(observed: Observations, claims: Claims): RepeatedSilence | null {
  for (const view of [...observed.backends.list, ...observed.servers.list]) {
    const open = claims.openTo(view.address);
    const silent = silentTimes(view, open, observed);
    const losses = silent.flatMap((each) => each.losses);
    if (silent.length < REPEATED_SILENCE.pauses || losses.length < NEARLY_ALL * open.length)
      continue;
    if (wentAstray(losses)) continue;
    if (onlyAaaa(losses) || losses.some((loss) => !isAnsweredElse(observed, loss))) continue;
    if (isOfNames(view, losses, observed) || chanceOf(view, losses, observed) > MAX_CHANCE_OF_MANY)
      continue;
    if (deadNames(observed, losses).some(({ chance }) => chance < UNLIKELY_DEAD)) continue;
    if (
      silent.some(({ pause }) => waitsForOthers(observed, view.address, pause.fromMs, pause.toMs))
    )
      continue;
    const seconds = silent.map(({ pause }) => ({
      fromS: Math.ceil(pause.fromMs / 1000),
      toS: Math.floor(pause.toMs / 1000) - 1,
    }));
    if (hitsAllAlike(observed, seconds)) continue;
    takeSilence(observed, claims, losses);
    return { view, silent, losses };
  }
  return null;
}

/** True if most of these are for external names that the server never answers. */
function isOfNames(
  { address }: ServerView,
  losses: readonly SeenExchange[],
  { domains, names }: Observations,
): boolean {
  const answered = names.answeredBy(address);
  const never = losses.filter(({ name }) => !answered.has(name) && !domains.isOfCluster(name));
  return never.length > losses.length / 2;
}

/**
 * The probability that chance, which picks sockets, picks them in so few runs (Wald and Wolfowitz,
 * 1940). Sockets before the first picked one do not count, because one of several servers behind the
 * address may have died since. Those after the last do not count either, so both ends are given.
 */
function chanceOf(
  { address }: ServerView,
  losses: readonly SeenExchange[],
  { flows }: Observations,
): number {
  const lost = new Set(losses.map(({ client }) => `${client.address} ${client.port}`));
  const opened = flows
    .to(address)
    .toSorted((one, other) => one.firstMs - other.firstMs)
    .map(({ client, port }) => lost.has(`${client} ${port}`));
  const all = opened.slice(opened.indexOf(true), opened.lastIndexOf(true) + 1);
  const picked = all.filter(Boolean).length;
  const others = all.length - picked;
  if (others === 0) return 1;
  const runs = all.filter((each, at) => each && all[at - 1] !== true).length;
  let chance = 0;
  for (let rows = 2; rows <= runs; rows++)
    chance += Math.exp(
      choices(picked - 1, rows - 1) +
        choices(others - 1, rows - 2) -
        choices(all.length - 2, others),
    );
  return chance;
}

function silentTimes(
  { pauses }: ServerView,
  open: readonly SeenExchange[],
  { endMs, lastMs }: Observations,
): readonly Silent[] {
  const end = Math.max(endMs, lastMs);
  return pauses.flatMap((pause) => {
    const toMs = Math.min(pause.toMs, end);
    const losses = open.filter(
      ({ sentMs }) => sentMs >= pause.fromMs - SILENCE_BEGINS_MS && sentMs < toMs,
    );
    const sockets = new Set(losses.map(({ client }) => `${client.address} ${client.port}`));
    const names = new Set(losses.map(({ name }) => name));
    return losses.length >= REPEATED_SILENCE.queries &&
      sockets.size >= REPEATED_SILENCE.sockets &&
      names.size >= REPEATED_SILENCE.names
      ? { pause: { fromMs: pause.fromMs, toMs }, losses }
      : [];
  });
}
