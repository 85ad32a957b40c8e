/** Names outside the cluster with changing addresses, and upstreams that lose, delay, corrupt and refuse replies. */
import type { Random } from '../../src/server/base/random.ts';
import { TYPE } from '../../src/server/wire/iana.ts';
import type { Answer, Asked } from '../kit/upstream.ts';
import { Truth } from './truth.ts';

/** The addresses of the upstreams. */
export const UPSTREAMS: readonly string[] = ['203.0.113.1', '203.0.113.2', '203.0.113.3'];

/** The ways in which an upstream fails. */
export type UpstreamFault =
  | 'none'
  | 'silent'
  | 'lossy'
  | 'slow'
  | 'servfail'
  | 'refused'
  | 'closed'
  | 'wrong question'
  | 'garbage'
  | 'truncated';

/** The faults that a simulation picks from. */
export const upstreamFaults: readonly UpstreamFault[] = [
  'silent',
  'lossy',
  'slow',
  'servfail',
  'refused',
  'closed',
  'wrong question',
  'garbage',
  'truncated',
];

const NAMES = 40;
/** An address's TTL in seconds. It is short, so that answers expire during a simulation. */
export const TTL = 20;
const SOA = 'example.org. 20 SOA ns.example.org. host.example.org. 1 7200 900 1209600 20';

/** The zone `example.org` and the upstreams that answer for it. */
export class Internet {
  /** Maps a name to its address, or to null if the name does not exist. */
  readonly truth: Truth = new Truth();
  readonly names: readonly string[];
  readonly #random: Random;
  readonly #faults = new Map<string, UpstreamFault>();
  #version = 0;
  /** The end of the last upstream fault, in virtual milliseconds, or Infinity during a fault. */
  faultyUntil: number = -Infinity;

  constructor(random: Random) {
    this.#random = random;
    this.names = Array.from({ length: NAMES }, (_, index) => `n${index}.example.org.`);
    for (const name of this.names) this.change(0, name);
  }

  /** Changes a name's address or removes the name. */
  change(nowMs: number, name: string = this.#pick(), mayVanish = true): void {
    this.#version++;
    const address = `198.51.${this.#version >> 8}.${this.#version & 255}`;
    this.truth.set(nowMs, name, mayVanish && this.#random.integer(5) === 0 ? null : address);
  }

  #pick(): string {
    return this.names[this.#random.integer(NAMES)]!;
  }

  /** Gives an upstream a fault, or ends its fault (`none`). */
  fail(nowMs: number, upstream: string, fault: UpstreamFault): void {
    if (fault === 'none') this.#faults.delete(upstream);
    else this.#faults.set(upstream, fault);
    this.faultyUntil = this.#faults.size > 0 ? Infinity : nowMs;
  }

  /** The script for `scriptedNetwork`. */
  answer(asked: Asked): Answer {
    const fault = this.#faults.get(asked.to.replace(/:\d+$/, '')) ?? 'none';
    const right = this.#right(asked);
    switch (fault) {
      case 'silent':
        return { fail: 'timeout' };
      case 'lossy':
        return this.#random.integer(2) === 0 ? { fail: 'timeout' } : right;
      case 'slow':
        return { ...right, afterMs: 500 + this.#random.integer(4000) };
      case 'servfail':
        return { rcode: 'SERVFAIL' };
      case 'refused':
        return { rcode: 'REFUSED' };
      case 'closed':
        return { fail: 'refused' };
      case 'wrong question':
        return { ...right, question: 'other.example.net.', answer: ['@ 3600 A 198.18.0.66'] };
      case 'garbage':
        return { bytes: Uint8Array.from({ length: 40 }, () => this.#random.integer(256)) };
      case 'truncated':
        return asked.proto === 'udp' ? { truncated: true } : right;
      case 'none':
        return right;
    }
  }

  #right({ name, type, at }: Asked): Answer {
    const afterMs = 1 + this.#random.integer(30);
    // The health check that `forward` sends.
    if (name === '.') return { afterMs };
    const address = this.truth.at(at, name);
    if (address === undefined || address === null)
      return { afterMs, rcode: 'NXDOMAIN', authority: [SOA] };
    if (type !== TYPE.A) return { afterMs, authority: [SOA] };
    return { afterMs, answer: [`@ ${TTL} A ${address}`] };
  }
}
