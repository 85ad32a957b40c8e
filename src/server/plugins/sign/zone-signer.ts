/** Keeps the signed version of a zone file up to date. */
import { whyFailed } from '../../base/why-failed.ts';
import { statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Problems, problemsIn } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import type { KeyPair } from '../../dnssec/key-pair.ts';
import { PoolSigner, type Signer } from '../../dnssec/signer.ts';
import { parseName } from '../../wire/name.ts';
import { loadZone } from '../../zone/load-zone.ts';
import { fileStamp } from '../../zone/file-stamp.ts';
import type { SignMetrics } from './sign-metrics.ts';
import { readSignedHead, writeZoneFile, type SignedHead } from './signed-file.ts';
import { signedZone } from './signed-records.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Number of seconds by which signatures are backdated, plus a random extra. */
const BEFORE = 3 * HOUR;
const BEFORE_JITTER = 18 * HOUR;
/** Seconds until they end, plus a random extra. */
const AFTER = 32 * DAY;
const AFTER_JITTER = 5 * DAY;
/** A zone is signed again once its signatures are this many seconds old, or if they end within this many seconds. */
const RENEW_AGE = 6 * DAY;
const RENEW_LEFT = 14 * DAY;
/** After a failure, another attempt is made when the file changes or after this many seconds. */
const RETRY = 5 * HOUR;
/** The same for failures caused by the environment, such as a full disk or a missing directory. */
const RETRY_SYSTEM = 60;

export interface ZoneSignerParts {
  /** Absolute, in lower case. */
  readonly zone: string;
  readonly source: string;
  readonly target: string;
  readonly pairs: readonly KeyPair[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: SignMetrics;
}

/** Signs one zone when it is due. */
export class ZoneSigner {
  readonly #parts: ZoneSignerParts;
  readonly #signers: readonly Signer[];
  /** A number of seconds that is chosen once, so that zones signed together are not renewed together. */
  readonly #jitter: { readonly before: number; readonly after: number };
  /** The state of the source when it was last signed or failed. */
  #stamp: string | null = null;
  /** Time of the next attempt after a failure, on the monotonic clock; -Infinity if the last one succeeded. */
  #retryAt = -Infinity;
  #busy: Promise<void> | null = null;

  constructor(parts: ZoneSignerParts) {
    this.#parts = parts;
    this.#signers = parts.pairs.map((pair) => new PoolSigner(pair));
    const { random } = parts;
    this.#jitter = { before: random.integer(BEFORE_JITTER), after: random.integer(AFTER_JITTER) };
  }

  get isUsable(): boolean {
    const head = this.#head();
    const now = this.#now();
    return (
      !(head instanceof Error) &&
      head.signatures.length > 0 &&
      head.signatures.every(({ inception, expiration }) => inception <= now && now < expiration)
    );
  }

  /** Signs the zone if it is due. It never throws, because failures are logged and counted. */
  refresh(): Promise<void> {
    this.#busy ??= this.#refresh().finally(() => {
      this.#busy = null;
    });
    return this.#busy;
  }

  tell(): void {
    const { zone, target, log } = this.#parts;
    if (this.due() === null)
      log.info(`Skipping signing zone "${zone}" in "${target}": signatures are valid`);
  }

  /** Returns why the zone has to be signed now, or null if it does not. */
  due(): string | null {
    const { source, target, pairs, clock } = this.#parts;
    const now = this.#now();
    if (fileStamp(source) === this.#stamp && clock.now() < this.#retryAt) return null;
    const head = this.#head();
    if (head instanceof Error) return `open ${target}: ${whyFailed(head)}`;
    if (head.signatures.length === 0) return `${target} has no signature over its SOA record`;
    for (const { inception, expiration } of head.signatures) {
      if (inception > now) return `inception ${print(inception)} is in the future`;
      if (now - inception > RENEW_AGE)
        return `inception ${print(inception)} was more than ${RENEW_AGE / DAY} days ago`;
      if (expiration - now < RENEW_LEFT)
        return `expiration ${print(expiration)} is less than ${RENEW_LEFT / DAY} days away`;
    }
    const used = head.signatures.map(({ algorithm, keyTag }) => `${algorithm} ${keyTag}`);
    const wanted = pairs.map(({ algorithm, tag }) => `${algorithm} ${tag}`);
    if (used.toSorted().join() !== wanted.toSorted().join()) return 'its keys have changed';
    if (this.#hasChanged(head)) return `${source} has changed`;
    return null;
  }

  #hasChanged({ writtenAt }: SignedHead): boolean {
    const { source } = this.#parts;
    const stamp = fileStamp(source);
    if (stamp === null) return false;
    return this.#stamp === null ? statSync(source).mtimeMs > writtenAt : stamp !== this.#stamp;
  }

  async #refresh(): Promise<void> {
    const why = this.due();
    if (why === null) return;
    const { zone, source, target, pairs, log, metrics, clock } = this.#parts;
    const tags = pairs.map(({ tag }) => tag).join(',');
    const begin = clock.now();
    this.#stamp = fileStamp(source);
    log.info(`Signing "${zone}" because ${why}`);
    const elapsed = (): string => ((clock.now() - begin) / 1000).toFixed(6);
    try {
      const { serial, expiration } = await this.#sign();
      this.#retryAt = -Infinity;
      metrics.signed.with(zone).add(1);
      metrics.expiration.with(zone).set(expiration);
      const next = print(this.#now() + RENEW_AGE - BEFORE - this.#jitter.before);
      log.info(
        `Successfully signed zone "${zone}" in "${target}" with key tags "${tags}" and ${serial} SOA serial, elapsed ${elapsed()}, next: ${next}`,
      );
    } catch (error) {
      metrics.failures.with(zone).add(1);
      const mistakes = problemsIn(error);
      const pause = mistakes === null ? RETRY_SYSTEM : RETRY;
      this.#retryAt = clock.now() + 1000 * pause;
      const reasons = mistakes?.map((problem) => problem.print()) ?? [
        (error as Error).message.replace(/^E[A-Z0-9]+: ([^,]+), \w+ '(.*)'$/, 'open $2: $1'),
      ];
      for (const reason of reasons)
        log.warning(
          `Error signing "${zone}" with key tags "${tags}" in ${elapsed()}: ${reason}, next: ${print(this.#now() + pause)}`,
        );
    }
  }

  async #sign(): Promise<{ readonly serial: number; readonly expiration: number }> {
    const { zone, source, target, clock, log } = this.#parts;
    const { packed, problems, warnings } = await loadZone(source, parseName(zone), clock, null);
    for (const warning of warnings) log.warning(warning.print());
    if (packed === null) throw new Problems(problems);
    const now = this.#now();
    const before = this.#head();
    // A version made within the same second needs a different serial, or secondaries would not fetch it.
    const least = before instanceof Error ? 0 : (before.serial ?? 0) + 1;
    const serial = now < least && least - now < DAY ? least : now;
    const inception = Math.floor(now - BEFORE - this.#jitter.before);
    const expiration = Math.floor(now + AFTER + this.#jitter.after);
    const validity = { inception, expiration };
    await writeZoneFile(target, signedZone(packed, { signers: this.#signers, validity, serial }));
    return { serial, expiration };
  }

  #head(): SignedHead | Error {
    const { target, zone } = this.#parts;
    try {
      return readSignedHead(target, zone);
    } catch (error) {
      return error as Error;
    }
  }

  #now(): number {
    return Math.floor(this.#parts.clock.wall() / 1000);
  }
}

/** `2026-01-01T00:00:00.000Z` */
function print(seconds: number): string {
  return new Date(Math.floor(seconds) * 1000).toISOString();
}
