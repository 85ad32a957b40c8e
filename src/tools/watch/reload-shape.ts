/** The shape of a server's reloads: plain data, like other views (view.ts). */
import type { ConfigurationFile } from '../../server/wire/dnstap.ts';
import type { VIEW_VERSION } from './view-version.ts';

/** A request for the reloads. */
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
  /** `rcode`: another result code; `records`: other records, or records where there were none or the reverse. */
  readonly kind: 'rcode' | 'records';
  readonly before: ReloadOutcome;
  readonly after: ReloadOutcome;
  /** Replies that were seen before and after it. */
  readonly repliesBefore: number;
  readonly repliesAfter: number;
  /** Clients that queried it, or null if more than were counted separately. */
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
  /** The servers that loaded it, each as the name of its input. */
  readonly servers: readonly string[];
  /** The number of names and types that were seen before and after it, on the server with the most. */
  readonly compared: number;
  /** The number of names and types whose answer changed; at most 100. */
  readonly changed: number;
  /** Changed answers, most replies first; at most ten in the overview. */
  readonly answers: readonly ChangedAnswer[];
}

/** A reload: what changed in the Corefile, and the answers that were seen to change. */
export interface ReloadRow extends ReloadMark {
  /** A unified diff of the files, or empty if the texts are unknown or equal. */
  readonly diff: string;
  /** The files before and after it, or empty if unknown, or no longer stored. */
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
  /** True if an input reports its server's reloads; packets and logs do not show them. */
  readonly isReported: boolean;
}
