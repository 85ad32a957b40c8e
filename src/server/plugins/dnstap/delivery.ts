import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Frames } from '../../engine/taps/tap-frames.ts';
import type { DnstapEndpoint } from './dnstap-options.ts';

/**
 * Sends the frames from all workers to collectors, and counts how many were delivered or lost. It can be started and
 * ended only once.
 */
export abstract class Delivery {
  readonly frames: Frames;
  /** Number of frames written, summed over connections. */
  written = 0;
  protected readonly endpoint: DnstapEndpoint;
  protected readonly clock: Clock;
  protected readonly log: Log;
  protected state: 'new' | 'running' | 'closed' = 'new';
  /** True if the current failure has been reported. */
  protected failing = false;
  /** Frames that were written to a connection but had not arrived when it ended. */
  protected cut = 0;

  constructor(endpoint: DnstapEndpoint, clock: Clock, log: Log) {
    this.endpoint = endpoint;
    this.clock = clock;
    this.log = log;
    this.frames = new Frames(clock);
  }

  /** Number of frames missed by at least one connected collector. */
  get lost(): number {
    return this.frames.lost + this.cut;
  }

  abstract get connections(): number;

  /** Connects to the address or opens it. Must be called only once. */
  start(): void {
    if (this.state !== 'new') return;
    this.state = 'running';
    void this.frames.listen(() => this.deliver());
    this.open();
  }

  async close(): Promise<void> {
    this.deliver();
    this.state = 'closed';
    this.frames.end();
    await this.end();
  }

  protected abstract open(): void;
  protected abstract deliver(): void;
  protected abstract end(): Promise<void>;
}
