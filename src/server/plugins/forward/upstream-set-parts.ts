import type { ExchangeTap } from '../../engine/contract/ports.ts';
import type { Next, WorkerContext } from '../../engine/contract/plugin.ts';
import type { Query } from '../../transport/query.ts';
import type { ForwardMetrics } from './forward-counters.ts';
import type { ForwardLine } from './forward-options.ts';

/** Options of one forward line, and its dependencies. */
export interface UpstreamSetParts
  extends Omit<ForwardLine, 'next'>, Pick<WorkerContext, 'clock' | 'random' | 'writer'> {
  readonly nextOn: ForwardLine['next'];
  readonly metrics: ForwardMetrics;
  /** The next forward in the block, or the plugin that follows all of them. */
  readonly next: Next;
  /** Called with each finished exchange. */
  readonly taps: readonly ExchangeTap[];
  /** True for loop-detection probes, which must be sent even if the same query is already in progress. */
  readonly isRoundTrip: (query: Query) => boolean;
  /** True if `next` is a forward. */
  readonly chained: boolean;
}
