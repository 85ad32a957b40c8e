/** Reads the state of several `ndots check serve` processes for the Checks page. */
import type { Clock } from '../../../server/base/clock.ts';
import { sendHttp } from '../../../server/base/http-request.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { isObject } from '../../../server/base/json-object.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import type { TargetStatus } from '../../../tools/probe/watch.ts';
import { hasFields, isListOf, type FieldKind } from '../field-kinds.ts';

/** Cache lifetime of a status in milliseconds. All browsers share the cache. */
const FRESH_MS = 2000;
const WAIT_MS = 5000;
/** Maximum size of a status in bytes. The default limit of 1000 targets takes a few hundred KiB. */
const STATUS_MAX = 8 * 1024 * 1024;

/** A single `ndots check serve`. */
export interface CheckSource {
  /** `10.0.0.7:9154`. */
  readonly name: string;
  readonly targets: readonly TargetStatus[];
  /** Why there is no status, as a message. Empty if there is one. */
  readonly failure: string;
}

export interface ChecksView {
  readonly atMs: number;
  readonly sources: readonly CheckSource[];
}

export interface CheckSourcesParts {
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  readonly clock: Clock;
}

export class CheckSources {
  readonly #parts: CheckSourcesParts;
  #latest: Promise<ChecksView> | null = null;
  #readMs = -Infinity;

  constructor(parts: CheckSourcesParts) {
    this.#parts = parts;
  }

  view(): Promise<ChecksView> {
    const now = this.#parts.clock.now();
    if (this.#latest === null || now - this.#readMs >= FRESH_MS) {
      this.#readMs = now;
      this.#latest = this.#read();
    }
    return this.#latest;
  }

  async #read(): Promise<ChecksView> {
    const { servers, clock } = this.#parts;
    const sources = await Promise.all(servers.map((server) => this.#source(server)));
    return { atMs: clock.wall(), sources };
  }

  async #source({ host, port }: { host: string; port: number }): Promise<CheckSource> {
    const name = printHostPort(host, port);
    try {
      const { status, body } = await sendHttp({
        url: new URL(`http://${name}/json`),
        clock: this.#parts.clock,
        waitMs: WAIT_MS,
        late: 'it does not answer',
        bytesMax: STATUS_MAX,
        tooLong: 'it sends too much',
      });
      const targets = status === 200 ? targetsOf(body.toString('utf8')) : null;
      const failure = targets === null ? `HTTP ${status}, but not from ndots check serve` : '';
      return { name, targets: targets ?? [], failure };
    } catch (error) {
      return { name, targets: [], failure: whyFailed(error) };
    }
  }
}

const fields: Readonly<Record<keyof TargetStatus, FieldKind>> = {
  check: 'string',
  title: 'string',
  target: 'string',
  state: 'string',
  isDown: 'boolean',
  text: 'string',
  tookMs: 'number?',
  alert: 'string?',
  budgetLeft: 'number',
};

/** Parses the targets in a status, or returns null if it is not a status. */
function targetsOf(text: string): readonly TargetStatus[] | null {
  let status: unknown;
  try {
    status = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(status) || status['kind'] !== 'CheckStatus') return null;
  const { targets } = status;
  if (!isListOf(targets, (target) => hasFields(target, fields))) return null;
  return targets as readonly TargetStatus[];
}
