/**
 * Replies for cluster names, which DNS pods answer from memory. Late replies that come in bursts show that the server
 * stalls for a short time.
 */
import { MIN_QUERIES } from '../thresholds/evidence.ts';
import { STALLS } from '../thresholds/lateness.ts';
import { countUpTo } from './sorted-times.ts';

const REPLIES_MAX = 5000;

/** A server’s stalls, which recur during the whole capture. */
export interface Stalls {
  /** Late replies, of the number of all for cluster names. */
  readonly late: number;
  readonly all: number;
  /** Half of the late replies took at least this long, and one of them the longest time. Milliseconds. */
  readonly usualMs: number;
  readonly longestMs: number;
  /** From this latency on, a reply counts as late. Milliseconds. */
  readonly lateMs: number;
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  /** True if other replies overtake (nearly) all late ones, as with several pods behind one address. */
  readonly isOutrun: boolean;
}

interface Reply {
  readonly sentMs: number;
  readonly repliedMs: number;
}

/** The first replies of one server for cluster names. */
export class MemoryReplies {
  readonly #replies: Reply[] = [];

  add(sentMs: number, repliedMs: number): void {
    if (this.#replies.length < REPLIES_MAX) this.#replies.push({ sentMs, repliedMs });
  }

  /** Null if few replies are late, or if the late ones do not come in bursts. */
  get stalls(): Stalls | null {
    const all = this.#replies;
    const times = all.map(took).toSorted((one, other) => one - other);
    const quickMs = times[Math.floor(STALLS.quickQuantile * times.length)];
    if (quickMs === undefined) return null;
    const lateMs = Math.max(STALLS.ms, STALLS.times * quickMs);
    const late = all.filter((reply) => took(reply) >= lateMs);
    if (late.length < Math.max(MIN_QUERIES, STALLS.share * all.length)) return null;
    if (!areInBursts(late) || !lasts(all, late)) return null;
    const waits = late.map(took).toSorted((one, other) => one - other);
    return {
      ...{ late: late.length, all: all.length, lateMs },
      usualMs: waits[waits.length >> 1]!,
      longestMs: waits.at(-1)!,
      fromMs: Math.min(...late.map(({ sentMs }) => sentMs)),
      toMs: Math.max(...late.map(({ repliedMs }) => repliedMs)),
      isOutrun: areOutrun(all, late),
    };
  }
}

function took({ sentMs, repliedMs }: Reply): number {
  return repliedMs - sentMs;
}

/** True if replies to queries that were sent at different times often come together. */
function areInBursts(late: readonly Reply[]): boolean {
  const ordered = late.toSorted((one, other) => one.repliedMs - other.repliedMs);
  let together = 0;
  for (const [at, reply] of ordered.entries()) {
    const isTogether = (other: Reply | undefined): boolean =>
      other !== undefined &&
      Math.abs(other.repliedMs - reply.repliedMs) <= STALLS.togetherMs &&
      Math.abs(other.sentMs - reply.sentMs) >= STALLS.apartMs;
    if ([1, 2, 3].some((by) => isTogether(ordered[at - by]) || isTogether(ordered[at + by])))
      together++;
  }
  // Replies that come at random times are close to another one with this probability.
  const lastingMs = ordered.at(-1)!.repliedMs - ordered[0]!.repliedMs;
  const chance = 1 - Math.exp((-2 * STALLS.togetherMs * late.length) / lastingMs);
  return together >= Math.max(STALLS.together, STALLS.ofChance * chance) * late.length;
}

/** True if there are late replies in most seconds with queries, so that they are not one event. */
function lasts(all: readonly Reply[], late: readonly Reply[]): boolean {
  const secondOf = ({ sentMs }: Reply): number => Math.floor(sentMs / 1000);
  const [seconds, lateSeconds] = [new Set(all.map(secondOf)), new Set(late.map(secondOf))];
  return lateSeconds.size >= STALLS.seconds && lateSeconds.size >= STALLS.lasting * seconds.size;
}

/** True if most late replies were overtaken by others that were sent after them. */
function areOutrun(all: readonly Reply[], late: readonly Reply[]): boolean {
  const quick = all.filter((reply) => took(reply) < STALLS.apartMs);
  const replied = quick.map(({ repliedMs }) => repliedMs).toSorted((one, other) => one - other);
  const outrun = late.filter(
    ({ sentMs, repliedMs }) =>
      countUpTo(replied, repliedMs - STALLS.apartMs) > countUpTo(replied, sentMs + STALLS.apartMs),
  );
  return outrun.length >= STALLS.outrun * late.length;
}
