/** The endpoints of the cluster's DNS, written to a file of name servers that `forward` follows. */
import { Resolver } from 'node:dns/promises';
import { renameSync, writeFileSync } from 'node:fs';
import { isIP } from '../base/ip.ts';
import { every, type Clock, type Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { whyFailed } from '../base/why-failed.ts';

/** Milliseconds between lookups of the name. They are infrequent because a large cluster has thousands of nodes. */
const PERIOD_MS = 5000;
const TIMEOUT_MS = 2000;
/** `forward` accepts 15 upstreams, and one is the service. */
const MOST = 14;

/** The service to which the endpoints belong, and the file to write them to. */
export interface ClusterEndpointsParts {
  /** A headless service for the cluster's DNS pods. */
  readonly name: string;
  /** The address of the service that lists them, which remains an upstream. */
  readonly clusterDns: string;
  readonly file: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Looks up the endpoints through the cluster's DNS itself, which any node may use without the API server. If there is
 * no answer, the last known endpoints stay.
 */
export class ClusterEndpoints {
  readonly #parts: ClusterEndpointsParts;
  readonly #resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 });
  #written: readonly string[] | null = null;
  #timer: Timer | null = null;
  #busy = false;

  constructor(parts: ClusterEndpointsParts) {
    this.#parts = parts;
    this.#resolver.setServers([parts.clusterDns]);
  }

  /** Writes the known endpoints to the file, and keeps it up to date from then on. */
  start(): void {
    this.#write([]);
    this.#timer = every(this.#parts.clock, PERIOD_MS, () => void this.#look());
    void this.#look();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#resolver.cancel();
  }

  async #look(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    const { name, clusterDns } = this.#parts;
    try {
      const found =
        isIP(clusterDns) === 6
          ? await this.#resolver.resolve6(name)
          : await this.#resolver.resolve4(name);
      this.#write(found.toSorted());
    } catch {
      // The service remains an upstream, and so does the last endpoint that answered.
    } finally {
      this.#busy = false;
    }
  }

  #write(found: readonly string[]): void {
    const { file, clusterDns, log, name } = this.#parts;
    if (this.#written?.join() === found.join()) return;
    const servers = [...this.#some(found), clusterDns];
    try {
      writeFileSync(`${file}.new`, servers.map((server) => `nameserver ${server}\n`).join(''));
      renameSync(`${file}.new`, file);
    } catch (error) {
      log.error(`the ${name} endpoints cannot be written: ${whyFailed(error)}`);
      return;
    }
    this.#written = found;
    if (found.length > 0) log.info(`the cluster's zones are queried at ${servers.join(', ')}`);
  }

  /** Returns as many endpoints as allowed, chosen differently on every node. */
  #some(found: readonly string[]): readonly string[] {
    const left = [...found];
    while (left.length > MOST) left.splice(this.#parts.random.integer(left.length), 1);
    return left;
  }
}
