import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { ExchangeTap } from '../../engine/contract/ports.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import type { Query } from '../../transport/query.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import type { ForwardMetrics } from './forward-counters.ts';
import type { ForwardPolicy } from './forward-policy.ts';

/** Options of one forward line, and its dependencies. */
export interface UpstreamSetParts {
  /** Absolute name of the zone. */
  readonly from: string;
  readonly except: readonly string[];
  readonly forceTcp: boolean;
  readonly preferUdp: boolean;
  readonly maxFails: number;
  /** Maximum number of failed attempts per query. Null means twice the number of upstreams, and 0 means unlimited. */
  readonly maxAttempts: number | null;
  readonly readTimeoutMs: number;
  readonly policy: ForwardPolicy;
  /** Maximum number of in-flight queries. */
  readonly maxConcurrent: number;
  readonly nextOn: readonly number[];
  readonly nextOnNodata: boolean;
  readonly failover: readonly number[];
  readonly failfast: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: ForwardMetrics;
  readonly writer: MessageWriter;
  /** The next forward in the block, or the plugin that follows all of them. */
  readonly next: Next;
  /** Called with each finished exchange. */
  readonly taps: readonly ExchangeTap[];
  /** True for loop-detection probes, which must be sent even if the same query is already in progress. */
  readonly isRoundTrip: (query: Query) => boolean;
  /** True if `next` is a forward. */
  readonly chained: boolean;
}
