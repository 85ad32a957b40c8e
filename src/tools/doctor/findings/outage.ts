/** A server that stops answering everybody, and perhaps begins again. */
import type { ServerView } from '../observe/server-view.ts';
import type { Observations } from '../observe/observations.ts';
import { takeSilence } from './consequences.ts';
import {
  clock,
  excluded,
  listed,
  percent,
  took,
  unknown,
  type Claims,
  type Finding,
  type Rule,
} from './finding.ts';
import { areSilentByChance } from './sockets.ts';
import { howNewOnesSuffer } from './table-full.ts';
import {
  askersText,
  hitsAllAlike,
  isAnsweredElse,
  onlyAaaa,
  upstreams,
  waitsForOthers,
  wentAstray,
} from './losses.ts';
import { outageAdvice } from './outage-advice.ts';
import { repeatedOutage } from './repeated-outage.ts';
import { standstill } from './standstill.ts';
import { deadNames, UNLIKELY } from './dead-names.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';

/** So many losses before a silence are no chance. */
const EARLIER = 4;
/** So many new sockets that others answer show that a pod is no endpoint any more. */
const REMOVED = 8;
/** So many sockets that are answered among others that are not. */
const AMID = 2;

/**
 * So many ICMP errors, by which a host says that nobody listens at a port (type 3 code 3; ICMPv6
 * type 1 code 4), are no chance.
 */
const UNREACHABLE_LEAST = 3;
const PORT: ReadonlySet<number> = new Set([0x303, 0x104]);

/**
 * What is less is but the rest of what was lost in the same silence and is explained, as a share of
 * that.
 */
const REST = 0.5;

interface Window {
  readonly fromS: number;
  readonly toS: number;
  readonly lost: number;
  readonly asked: number;
}

/**
 * So much was answered, and lost, before a server fell silent; so many queries, sockets and names,
 * and so long, show that it did.
 */
const NEVER = { answered: 20, lost: 2, asked: 4, sockets: 3, names: 2, ms: 3000 };

/** All replies stop for a while, or for good, for everybody at once. */
export const outage: Rule = {
  code: 'ND3007',
  title: 'A name server stopped answering for a while',
  name: 'a restart or a rollout of the DNS pods',
  check(observed, claims) {
    if (observed.seconds < 3) return unknown('the capture is too short');
    const views = [...observed.backends.list, ...observed.servers.list];
    // Who has been answered goes on being answered: it is not the server.
    if (howNewOnesSuffer(observed) !== null) return excluded('only new sockets are not answered');
    for (const view of views) {
      const window = silence(view, observed);
      if (window === null) continue;
      const { fromS, toS } = window;
      if (hitsAllAlike(observed, fromS, toS)) continue;
      const isMeanwhile = ({ sentMs }: SeenExchange): boolean =>
        sentMs >= fromS * 1000 && sentMs < (toS + 1) * 1000;
      const theirs = claims.openTo(view.address);
      const losses = theirs.filter(isMeanwhile);
      const names = new Set(losses.map(({ name }) => name));
      if (losses.length < 3 || wentAstray(losses)) continue;
      // Where most of it is explained this is but the rest, as is what comes from a port that
      // somebody had before.
      const explained = claims.explainedTo(view.address).filter(isMeanwhile);
      if (losses.length < REST * explained.length) {
        claims.take(losses);
        continue;
      }
      if (losses.filter((loss) => isAnsweredElse(observed, loss)).length < 3) continue;
      if (onlyAaaa(losses)) continue;
      const span = { fromMs: fromS * 1000, toMs: (toS + 1) * 1000 };
      if (waitsForOthers(observed, view.address, span.fromMs, span.toMs)) continue;
      if (areSilentByChance(observed.flows.to(view.address), span)) continue;
      // Others are answered meanwhile, or these names never again. What was lost before it tells
      // more than the time in which all wait.
      const earlier = theirs.filter(({ sentMs }) => sentMs < fromS * 1000);
      const lots = earlier.length < EARLIER ? [losses] : [losses, [...earlier, ...losses]];
      if (lots.some((lot) => deadNames(observed, lot).some(({ chance }) => chance < UNLIKELY)))
        continue;
      takeSilence(observed, claims, losses);
      const together = silentToo(views, view, window, observed, claims);
      const { fromMs, backMs } = edgesOf(view, window);
      const removedMs = backMs === null ? removedFrom(view, observed) : null;
      const clients = new Set(losses.map(({ client }) => client.address));
      const known = observed.counters.get('lameduck') !== null;
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: known ? 0.95 : 0.85,
        seen: [
          `${view.address} answered until ${clock(fromMs)}; of ${window.asked} queries in the following ${toS - fromS + 1} s ${window.lost} got no reply (${percent(window.lost, window.asked)}), of ${askersText(observed, clients)}, for ${names.size} ${names.size === 1 ? 'name' : 'names'}.`,
          ...(together.length > 0 ? [`${listed(together)} fell silent in the same time.`] : []),
          backMs === null
            ? 'It does not answer again up to the end of the capture.'
            : `Its next reply comes at ${clock(backMs)}, ${took(backMs - fromMs)} later.`,
          ...(removedMs === null
            ? []
            : [
                `From ${clock(removedMs)} on nothing is taken to it any more, and others answer: its endpoint was removed.`,
              ]),
          ...unreachableText(view.address, observed),
          ...(known ? ['The log says that a server went into lameduck mode.'] : []),
        ],
        ...outageAdvice({
          isBack: backMs !== null,
          isRollout: known || removedMs !== null,
          isUpstream: upstreams(observed).has(view.address),
          at: clock(fromMs),
        }),
        exchanges: losses,
      };
    }
    const repeated = repeatedOutage(observed, claims);
    if (repeated !== null) return repeated;
    for (const view of observed.servers.list) {
      const found = neverAgain(view, observed, claims);
      if (found !== null) return found;
    }
    return (
      standstill(observed, claims) ??
      excluded('no server was silent to everybody for a time, and well before or after it')
    );
  },
};

/**
 * A server that has answered (nearly) everything, and nothing more up to the end. Clients that wait
 * for it ask little meanwhile: a few queries from sockets and for names of their own tell as much
 * as many.
 */
function neverAgain(view: ServerView, observed: Observations, claims: Claims): Finding | null {
  const { address, outcomes, lastReplyMs, sinceReply } = view;
  const sockets = new Set(sinceReply.map(({ client }) => `${client.address} ${client.port}`));
  const names = new Set(sinceReply.map(({ name }) => name));
  const endMs = Math.max(observed.endMs, observed.lastMs);
  const { fromMs } = sentSpan(sinceReply);
  const losses = claims
    .openTo(address)
    .filter(({ server, sentMs }) => server.address === address && sentMs >= fromMs);
  if (outcomes.asked - outcomes.lost < NEVER.answered || outcomes.lost - losses.length > NEVER.lost)
    return null;
  if (sinceReply.length < NEVER.asked || losses.length < 2 || sockets.size < NEVER.sockets)
    return null;
  if (wentAstray(losses)) return null;
  // A name of the cluster is in the memory of the server: that it gets no reply is no matter of the
  // name.
  const isOfName =
    names.size < NEVER.names && ![...names].some(observed.domains.isOfCluster, observed.domains);
  if (isOfName || endMs - lastReplyMs < NEVER.ms) return null;
  if (areSilentByChance(observed.flows.to(address), { fromMs, toMs: Infinity })) return null;
  takeSilence(observed, claims, losses);
  const clients = new Set(sinceReply.map(({ client }) => client.address));
  return {
    code: 'ND3007',
    title: 'A name server stopped answering for a while',
    severity: 'critical',
    confidence: 0.8,
    seen: [
      `${address} answered ${outcomes.asked - outcomes.lost} of ${outcomes.asked - losses.length} queries until ${clock(lastReplyMs)}, and then nothing: ${sinceReply.length} queries from ${sockets.size} sockets of ${askersText(observed, clients)}, for ${names.size} ${names.size === 1 ? 'name' : 'names'}, up to ${clock(endMs)}.`,
      'It does not answer again up to the end of the capture.',
    ],
    why: `Everything stops at one moment: the server (or what stands behind the address) hangs or is gone, or something on the way, such as a network policy, lets nothing through from then on.${clients.size === 1 ? ' Of one client the capture cannot tell these apart.' : ''}`,
    fix: [
      'See whether others are answered at that time: if not, look at the server (kubectl -n kube-system get pods for restarts), its node, and its memory and processor limits.',
      'If others are: see what changed for these clients (kubectl get networkpolicy -A; the rules and the log of the node’s network plugin).',
    ],
    prove: `ndots query kubernetes.default @${address} from the client’s node and from another; kubectl get events -A around ${clock(lastReplyMs)} UTC`,
    disproved: 'a longer capture shows replies to these queries',
    exchanges: [...losses],
  };
}

/**
 * What the machine that has the address says of its port (ICMP): it is there, and no name server
 * is.
 */
function unreachableText(address: string, { unreachable }: Observations): readonly string[] {
  const errors = unreachable.get(address);
  if (errors === undefined || errors.count < UNREACHABLE_LEAST || !PORT.has(errors.code)) return [];
  return [
    `${errors.count} of these came back as port unreachable (ICMP): a machine has that address, and no name server listens there. Its process ended, or another machine took the address (arping -D, or ip neigh before and after: two hardware addresses).`,
  ];
}

/** Other servers that were silent in the same time: what they lost is of the same cause. */
function silentToo(
  views: readonly ServerView[],
  first: ServerView,
  { fromS, toS }: Window,
  observed: Observations,
  claims: Claims,
): readonly string[] {
  const others = views.filter((view) => {
    const own = view === first ? null : silence(view, observed);
    if (own === null || own.fromS > toS || own.toS < fromS) return false;
    const losses = claims
      .openTo(view.address)
      .filter(({ sentMs }) => sentMs >= own.fromS * 1000 && sentMs < (own.toS + 1) * 1000);
    claims.take(losses);
    return losses.length > 0;
  });
  return others.map(({ address }) => address);
}

/** From when on sockets that ask the same service are taken to others; null: that is not seen. */
function removedFrom({ address, lastAskedMs }: ServerView, observed: Observations): number | null {
  const { flows, backends } = observed;
  if (backends.get(address) === undefined) return null;
  const later = flows.list.filter(({ firstMs }) => firstMs > lastAskedMs);
  return later.filter(({ lastAnsweredMs }) => lastAnsweredMs > lastAskedMs).length >= REMOVED
    ? lastAskedMs
    : null;
}

/**
 * When the last reply before the silence came and the first one behind it, milliseconds, to the
 * second; null: none did. Who waits asks nothing: what was sent says little of how long it lasted.
 */
function edgesOf(
  { history }: ServerView,
  { fromS, toS }: Window,
): { readonly fromMs: number; readonly backMs: number | null } {
  const replied = history.flatMap(([second, each]) => (each.replied > 0 ? second : []));
  let [from, back] = [fromS, toS + 1];
  for (const [at, second] of [...replied, Infinity].entries()) {
    const before = at === 0 ? fromS : replied[at - 1]!;
    if (before <= toS && second >= fromS && second - before > back - from)
      [from, back] = [before, second];
  }
  const isOver = replied.some((second) => second >= back);
  return { fromMs: from * 1000, backMs: isOver ? back * 1000 : null };
}

/**
 * The longest stretch of seconds in which a server that answers otherwise did not answer anybody.
 */
function silence(
  { address, history, outcomes }: ServerView,
  observed: Observations,
): Window | null {
  if (outcomes.asked === outcomes.lost) return null;
  let best: Window | null = null;
  let open: { fromS: number; toS: number; lost: number; asked: number } | null = null;
  const close = (): void => {
    if (open !== null && open.lost >= 5 && (best === null || open.lost > best.lost)) best = open;
    open = null;
  };
  for (const [second, { asked, lost }] of history) {
    if (asked === 0) continue;
    if (lost < 0.9 * asked) {
      close();
      continue;
    }
    open ??= { fromS: second, toS: second, lost: 0, asked: 0 };
    open.toS = second;
    open.lost += lost;
    open.asked += asked;
  }
  close();
  if (best === null) return null;
  // It begins and ends within a second.
  const seconds = history.filter(([, { asked }]) => asked > 0);
  const { fromS, toS } = best as Window;
  const before = seconds.findLast(([second]) => second < fromS);
  const after = seconds.find(([second]) => second > toS);
  const edges = [before, after].filter(
    (each) => each !== undefined && each[1].lost > 0 && !answersAmid(each[0], address, observed),
  );
  const within = [fromS, toS, ...edges.map((each) => each![0])];
  const whole = { fromS: Math.min(...within), toS: Math.max(...within) };
  // Outside of it all is well, or it is no silence but a loss.
  const outside = seconds.filter(([second]) => second < whole.fromS || second > whole.toS);
  if (sumOf(outside, 'lost') > 0.05 * sumOf(outside, 'asked') + 2) return null;
  const lost = outcomes.lost - sumOf(outside, 'lost');
  return { ...whole, lost, asked: (best as Window).asked + lost - (best as Window).lost };
}

/**
 * Whether what is lost in that second, and what is answered, come one after the other by turns:
 * then it is not the time that decides.
 */
function answersAmid(second: number, address: string, { flows, losses }: Observations): boolean {
  const isIn = (ms: number): boolean => Math.floor(ms / 1000) === second;
  const lost = losses.flatMap(({ server, sentMs }) =>
    server.address === address && isIn(sentMs) ? sentMs : [],
  );
  const answered = flows
    .to(address)
    .flatMap(({ lastAnsweredMs }) => (isIn(lastAnsweredMs) ? lastAnsweredMs : []));
  const [from, to] = [Math.min(...lost), Math.max(...lost)];
  return answered.filter((ms) => ms > from && ms < to).length >= AMID;
}

function sumOf(history: ServerView['history'], what: 'asked' | 'lost'): number {
  return history.reduce((sum, [, second]) => sum + second[what], 0);
}
