import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Frames } from '../../engine/taps/tap-frames.ts';
import type { DnstapEndpoint } from './dnstap-options.ts';

/**
 * Delivers the frames of all workers to collectors and counts delivered and lost ones. It starts once and
 * ends once.
 */
export abstract class Delivery {
  readonly frames: Frames;
  /** Frames that were written, for each connection. */
  written = 0;
  protected readonly endpoint: DnstapEndpoint;
  protected readonly clock: Clock;
  protected readonly log: Log;
  protected state: 'new' | 'running' | 'closed' = 'new';
  /** True if the current failure was reported already. */
  protected failing = false;
  /** Given to a connection that ended before they had arrived. */
  protected cut = 0;

  constructor(endpoint: DnstapEndpoint, clock: Clock, log: Log) {
    this.endpoint = endpoint;
    this.clock = clock;
    this.log = log;
    this.frames = new Frames(clock);
  }

  /** Frames that not every connected collector received. */
  get lost(): number {
    return this.frames.lost + this.cut;
  }

  abstract get connections(): number;

  /** Connects, or opens the address; once. */
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
