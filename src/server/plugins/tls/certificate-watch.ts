/**
 * Reports when served certificates expire, through a metric and, once they have expired, in the log. Runs in the main
 * thread.
 */
import { every, type Clock, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { KeptAcrossReloads } from '../../engine/contract/control-context.ts';
import type { Registry } from '../../metrics/registry.ts';
import { endOf, outOfTime } from '../../engine/contract/server-certificate.ts';

/** Interval in ms between checks for expired certificates. */
const LOOK_MS = 3600_000;

interface CertificateWatchParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
}

export class CertificateWatch implements KeptAcrossReloads {
  readonly #path: string;
  readonly #parts: CertificateWatchParts;
  readonly #ends;
  #looking: Timer | null = null;

  /** @param path the metric's label */
  constructor(path: string, parts: CertificateWatchParts) {
    this.#path = path;
    this.#parts = parts;
    this.#ends = parts.metrics.gauge(
      'ndots_tls_certificate_expiration_timestamp_seconds',
      'Expiry of a served certificate, in seconds since 1970.',
      ['certificate'],
      'last',
    );
  }

  /**
   * Watches the certificate that is currently in the file. If it has already expired, the code that read it reports
   * this.
   */
  follow(pem: Buffer): void {
    this.#looking?.cancel();
    this.#looking = null;
    const end = endOf(pem);
    if (end === null) return this.#ends.remove(this.#path);
    this.#ends.with(this.#path).set(Math.floor(end / 1000));
    const { clock, log } = this.#parts;
    if (end < clock.wall()) return;
    const looking = every(clock, LOOK_MS, () => {
      const why = outOfTime(pem, clock.wall());
      if (why === null) return;
      looking.cancel();
      log.error(
        `the certificate ${this.#path} ${why}, so clients that verify it will fail; replace it with the renewed one and reload`,
      );
    });
    this.#looking = looking;
  }

  close(): void {
    this.#looking?.cancel();
    this.#ends.remove(this.#path);
  }
}
