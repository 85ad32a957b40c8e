/** The shape of a server's reloads, which are plain data like other views (view.ts). */
import type { ConfigurationFile } from '../../server/wire/dnstap.ts';
import type { VIEW_VERSION } from './view-version.ts';

export interface ReloadsQuery {
  readonly view: 'reloads';
}

/** A server's answer for a name and type, or several that it gave during one configuration. */
export interface ReloadOutcome {
  /** `NOERROR`, `NXDOMAIN` … */
  readonly rcode: string;
  /** `A 192.0.2.1`, sorted, without TTLs. */
  readonly records: readonly string[];
  /** Records that are not listed. */
  readonly more: number;
}

/** A name whose answer was different before and after a reload. */
export interface ChangedAnswer {
  /** Absolute, in lower case. */
  readonly name: string;
  readonly type: string;
  /** `rcode` for another result code, `records` for other records or where only one side has any. */
  readonly kind: 'rcode' | 'records';
  readonly before: ReloadOutcome;
  readonly after: ReloadOutcome;
  /** Replies that were seen before and after it. */
  readonly repliesBefore: number;
  readonly repliesAfter: number;
  /** Clients that queried it. Null if there were more than were counted separately. */
  readonly clients: number | null;
  /** Servers that changed this answer. */
  readonly servers: number;
}

/** A reload without its details, for a mark on the time axis. */
export interface ReloadMark {
  /** Increases with each reload and is never reused. */
  readonly id: number;
  /** The time of the first server's reload, in milliseconds since 1970. */
  readonly atMs: number;
  /** The servers that loaded it, each by the name of its input. */
  readonly servers: readonly string[];
  /** The number of names and types seen both before and after it, on the server with the most. */
  readonly compared: number;
  /** The number of names and types whose answer changed, up to 100. */
  readonly changed: number;
  /** Changed answers, those with the most replies first. The overview has at most ten. */
  readonly answers: readonly ChangedAnswer[];
}

/** A reload, with the changes to the Corefile and the answers that were seen to change. */
export interface ReloadRow extends ReloadMark {
  /** A unified diff of the files. Empty if the texts are unknown or equal. */
  readonly diff: string;
  /** The files before and after it. Empty if unknown or no longer stored. */
  readonly before: readonly ConfigurationFile[];
  readonly after: readonly ConfigurationFile[];
}

/** The reloads that were seen, newest first. */
export interface ReloadsView {
  readonly version: typeof VIEW_VERSION;
  readonly view: 'reloads';
  /** The model's time in milliseconds since 1970. */
  readonly atMs: number;
  readonly rows: readonly ReloadRow[];
  /** Reloads that are no longer remembered. */
  readonly leftOut: number;
  /** True if an input reports its server's reloads, which packets and logs do not show. */
  readonly isReported: boolean;
}
