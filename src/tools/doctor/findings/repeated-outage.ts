/** Servers that are silent for a while, several times. */
import type { Observations } from '../observe/observations.ts';
import type { Pause, ServerView } from '../observe/server-view.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { takeSilence } from './consequences.ts';
import { choices, deadNames, UNLIKELY } from './dead-names.ts';
import { clock, listed, type Claims, type Finding } from './finding.ts';
import { askersText, isAnsweredElse, onlyAaaa, waitsForOthers, wentAstray } from './losses.ts';

/**
 * So many pauses, and in each so many queries that got no reply, from so many sockets and for so
 * many names.
 */
const LEAST = { pauses: 2, queries: 4, sockets: 2, names: 2 };
/** So much of what is lost is of these pauses. */
const EXPLAINS = 0.9;
/** What is likelier may be chance. */
const CHANCE_MAX = 0.0001;
/**
 * So many other connections were opened meanwhile, and so large a part had to repeat the first
 * packet.
 */
const OTHERS = { opened: 5, repeated: 0.5 };
/** The first one may have been sent just before the last reply came, milliseconds. */
const UNDER_WAY_MS = 20;

interface Silent {
  readonly pause: Pause;
  readonly losses: readonly SeenExchange[];
}

/**
 * Several times nothing comes back, whatever is asked, and all is well in between; null: it is
 * once, or not at all.
 */
export function repeatedOutage(observed: Observations, claims: Claims): Finding | null {
  for (const view of [...observed.backends.list, ...observed.servers.list]) {
    const open = claims.openTo(view.address);
    const silent = silentTimes(view, open, observed);
    const losses = silent.flatMap((each) => each.losses);
    if (silent.length < LEAST.pauses || losses.length < EXPLAINS * open.length) continue;
    if (wentAstray(losses)) continue;
    if (onlyAaaa(losses) || losses.some((loss) => !isAnsweredElse(observed, loss))) continue;
    if (isOfNames(view, losses, observed) || chanceOf(view, silent, losses, observed) > CHANCE_MAX)
      continue;
    if (deadNames(observed, losses).some(({ chance }) => chance < UNLIKELY)) continue;
    if (
      silent.some(({ pause }) => waitsForOthers(observed, view.address, pause.fromMs, pause.toMs))
    )
      continue;
    if (hitsOthers(observed, silent)) continue;
    takeSilence(observed, claims, losses);
    return findingOf(view, silent, losses, observed);
  }
  return null;
}

/**
 * Whether connections that have nothing to do with DNS get nowhere at these times either: then it
 * is not the server.
 */
function hitsOthers({ others }: Observations, silent: readonly Silent[]): boolean {
  const meanwhile = silent.map(({ pause }) =>
    others.between(Math.ceil(pause.fromMs / 1000), Math.floor(pause.toMs / 1000) - 1),
  );
  const opened = meanwhile.reduce((sum, each) => sum + each.opened, 0);
  const repeated = meanwhile.reduce((sum, each) => sum + each.repeated, 0);
  return opened >= OTHERS.opened && repeated >= OTHERS.repeated * opened;
}

/** Whether most of these are for names of outside that the server never answers. */
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
 * How likely it is that chance, which picks sockets, picks them in so few rows, one after the other
 * (Wald and Wolfowitz, 1940).
 */
function chanceOf(
  { address }: ServerView,
  silent: readonly Silent[],
  losses: readonly SeenExchange[],
  { flows }: Observations,
): number {
  const all = flows.to(address).length;
  const lost = new Set(losses.map(({ client }) => `${client.address} ${client.port}`)).size;
  let chance = 0;
  for (let rows = 1; rows <= silent.length; rows++)
    chance += Math.exp(
      choices(all - lost + 1, rows) + choices(lost - 1, rows - 1) - choices(all, lost),
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
      ({ sentMs }) => sentMs >= pause.fromMs - UNDER_WAY_MS && sentMs < toMs,
    );
    const sockets = new Set(losses.map(({ client }) => `${client.address} ${client.port}`));
    const names = new Set(losses.map(({ name }) => name));
    return losses.length >= LEAST.queries &&
      sockets.size >= LEAST.sockets &&
      names.size >= LEAST.names
      ? { pause: { fromMs: pause.fromMs, toMs }, losses }
      : [];
  });
}

function findingOf(
  { address }: ServerView,
  silent: readonly Silent[],
  losses: readonly SeenExchange[],
  observed: Observations,
): Finding {
  const clients = new Set(losses.map(({ client }) => client.address));
  const times = silent.map(
    ({ pause, losses: theirs }) =>
      `from ${clock(pause.fromMs)} to ${clock(pause.toMs)} (${theirs.length} queries)`,
  );
  return {
    code: 'ND3007',
    title: 'A name server stopped answering for a while',
    severity: 'critical',
    confidence: 0.85,
    seen: [
      `${silent.length} times nothing came back from ${address}, whatever was asked: ${listed(times, 6)}.`,
      `These are ${losses.length} queries of ${askersText(observed, clients)}; in between (nearly) all is answered. Who waits for a reply asks nothing meanwhile: the server, or the way to it, may have been back sooner.`,
    ],
    why: 'What stops for everybody at once, comes back and stops again is a link or an interface that goes down and up, a route that is withdrawn, a node that hangs, or a server that is ended and started again and again (a liveness probe, memory).',
    fix: [
      'See what happened on the way at these times: the kernel’s log of both nodes (link is down, carrier), the routes and the network plugin’s log.',
      'See whether DNS pods restart: kubectl -n kube-system get pods -l k8s-app=kube-dns (RESTARTS), and their memory limits and liveness probes.',
    ],
    prove: `journalctl -k --since around ${clock(silent[0]!.pause.fromMs)} UTC on both nodes; kubectl -n kube-system get events,pods`,
    disproved:
      'other connections between the same two hosts go on at these times, and no DNS pod restarted',
    exchanges: losses,
  };
}
