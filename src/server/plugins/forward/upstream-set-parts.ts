import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { ExchangeTap } from '../../engine/contract/ports.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import type { Query } from '../../transport/query.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import type { ForwardMetrics } from './forward-counters.ts';
import type { ForwardPolicy } from './forward-policy.ts';

/** The options of one forward line, and its dependencies. */
export interface UpstreamSetParts {
  /** Absolute name: the zone of the queries. */
  readonly from: string;
  readonly except: readonly string[];
  readonly forceTcp: boolean;
  readonly preferUdp: boolean;
  readonly maxFails: number;
  /** Failed attempts per query; null: twice the number of upstreams, 0: no limit. */
  readonly maxAttempts: number | null;
  readonly readTimeoutMs: number;
  readonly policy: ForwardPolicy;
  /** Queries in flight at a time. */
  readonly maxConcurrent: number;
  readonly nextOn: readonly number[];
  readonly nextOnNodata: boolean;
  readonly failover: readonly number[];
  readonly failfast: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: ForwardMetrics;
  readonly writer: MessageWriter;
  /** The next forward of the block, or the plugin after all of them. */
  readonly next: Next;
  /** Gets each finished exchange. */
  readonly taps: readonly ExchangeTap[];
  /** True for loop-detection probes, which must be sent even if the same query is in progress. */
  readonly isRoundTrip: (query: Query) => boolean;
  /** True if `next` is a forward. */
  readonly chained: boolean;
}
