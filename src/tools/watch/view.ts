/**
 * The live model's views, which are plain data that survives JSON unchanged, so that one shape serves a terminal,
 * server-sent events and `-o json`. Names, addresses and texts are raw, and have to be escaped by the user interface.
 */
import type { GivenFilter } from '../capture/filter.ts';
import type { Kind } from '../capture/fingerprint/asking-classes.ts';
import type { Severity } from '../doctor/severity.ts';
import type { ReloadMark } from './reload-shape.ts';
import type { VIEW_VERSION } from './view-version.ts';

/** The views, in the order of their keys. */
export const viewNames = ['now', 'lookups', 'clients', 'names', 'servers', 'findings'] as const;
export type ViewName = (typeof viewNames)[number];

/** The columns by which each view can be sorted, each list starting with the default. */
export const sortKeys = {
  now: [],
  lookups: ['time', 'took', 'queries', 'name', 'client'],
  clients: ['queries', 'lookups', 'lost', 'errors', 'wasted', 'latency', 'name', 'seen'],
  names: ['lookups', 'queries', 'lost', 'errors', 'wasted', 'latency', 'clients', 'name', 'seen'],
  servers: ['queries', 'lost', 'errors', 'latency', 'clients', 'name', 'seen'],
  findings: ['state', 'severity', 'began', 'code'],
} as const;
export type SortKeys = { readonly [V in ViewName]: (typeof sortKeys)[V][number] };

export interface ViewQuery<V extends ViewName = ViewName> {
  readonly view: V;
  /** In the syntax of `ndots capture`. Counts then cover only lookups in full detail. */
  readonly filters?: readonly GivenFilter[];
  readonly sort?: SortKeys[V];
  /** If true, reverses the default order, which is newest, most, most severe, or A first. */
  readonly reversed?: boolean;
  /** The number of rows; 200 by default. */
  readonly most?: number;
  /** The number of rows to skip, for paging. */
  readonly skip?: number;
  /** The length of the period to show, up to now, in milliseconds. By default, this is the whole window. */
  readonly lastMs?: number;
  /** For lookups, returns only those with a lower ID, highest first, so that a list can be read to its end. */
  readonly before?: number;
  /** The `id` of a single row, for details. */
  readonly id?: number | string;
}

export interface Views {
  readonly now: NowView;
  readonly lookups: LookupsView;
  readonly clients: ClientsView;
  readonly names: NamesView;
  readonly servers: ServersView;
  readonly findings: FindingsView;
}

/** The rows in a list, and how many are left out. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly shown: number;
  /** The total number of rows that match the filters. */
  readonly total: number;
  /** Rows that did not fit into memory. Only the totals include them. */
  readonly leftOut: number;
  /** Packets dropped by the kernel within the window, which are therefore missing from all rows. */
  readonly lostByKernel: number;
  /**
   * The fraction of the window's lookups (0 to 1) that rows were made from because they are in full detail. Below 1,
   * counts in a filtered list cover only that fraction. For findings, it is the fraction of clients whose traffic the
   * rules examine.
   */
  readonly sampledShare: number;
  /** The most by which a count in this list may be too low, or 0 if counts are exact. */
  readonly error: number;
}

export interface ViewHead<V extends ViewName> {
  readonly version: typeof VIEW_VERSION;
  readonly view: V;
  /** The model's time in milliseconds since 1970. In replayed files, it is the packets' time. */
  readonly atMs: number;
  /**
   * The period covered by this view's counts. It starts later than requested if there is less data. It may also start
   * earlier by part of a step, because lists are counted in steps of a fifth of the window.
   */
  readonly window: { readonly fromMs: number; readonly toMs: number };
  /** The start of the oldest lookup in full detail, or null if there is none. */
  readonly detailFromMs: number | null;
  readonly inputs: readonly InputRow[];
  readonly memory: MemoryUse;
  /** Describes the parts of the input that could not be read. */
  readonly remarks: readonly string[];
}

export interface InputRow {
  /** A display name: `interface eth0, port 53`. */
  readonly name: string;
  /** `away` if its server cannot be reached and is being retried. */
  readonly state: 'reading' | 'away' | 'ended' | 'failed';
  /** Why it failed, as text; otherwise empty. */
  readonly why: string;
  /** The time since which it has been unavailable, in milliseconds since 1970, or null if it is available. */
  readonly awayMs: number | null;
  readonly queries: number;
  readonly lookups: number;
  /** Packets dropped by the kernel since the input started. */
  readonly lostByKernel: number;
  /** The time of its newest message, or null if there is none. */
  readonly lastMs: number | null;
  /** The number of milliseconds that its clock is ahead of the model's, if known, otherwise 0. */
  readonly aheadMs: number;
  /** Describes how it differs from the others. Empty if it does not. */
  readonly odd: string;
}

/** The memory used by the model's data according to its own accounting, not counting the runtime. */
export interface MemoryUse {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** Describes data dropped early because the limit was reached. Empty if there is none. */
  readonly dropped: string;
}

/** An address and its present or former owner. Unknown fields are empty. */
export interface Party {
  readonly address: string;
  readonly kind: 'pod' | 'service' | 'node' | '';
  /** `shop/cart-7d4b9c`, `kube-system/kube-dns`, `node7`, or empty if only the address is known. */
  readonly name: string;
  readonly namespace: string;
  /** `deploy/cart`. */
  readonly workload: string;
  readonly node: string;
  /** True if it had the address and has disappeared. */
  readonly isGone: boolean;
}

/**
 * Milliseconds from a query to its reply, accurate to within 5%, or null if there is no reply. Each query counts once,
 * wherever it was seen: between a client and a server, or between a server and its upstream. Lookups are not measured
 * here.
 */
export interface Latency {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly max: number | null;
}

export interface LiveCounts {
  readonly queries: number;
  readonly lost: number;
  /** Replies by code, most frequent first. */
  readonly rcodes: readonly { readonly rcode: string; readonly count: number }[];
  /** Error replies: neither NOERROR nor NXDOMAIN. */
  readonly failed: number;
  /** Queries for nonexistent names generated by a search path. */
  readonly wasted: number;
  readonly latency: Latency;
}

export interface LookupCounts {
  readonly lookups: number;
  /** The number of these that ended without an address or the requested record. */
  readonly failedLookups: number;
  /** The number of these that took a second or more. */
  readonly slowLookups: number;
}

/** Totals for a period. */
export interface NowSums extends LiveCounts, LookupCounts {
  /** Per second, over the last ten seconds. */
  readonly rates: Readonly<Record<'queries' | 'lookups' | 'lost' | 'failed' | 'wasted', number>>;
  readonly types: readonly { readonly type: string; readonly count: number }[];
  readonly protocols: readonly { readonly protocol: string; readonly count: number }[];
  /** The counts and reply times of queries, in equal steps up to the end of the window. */
  readonly series: Series;
}

export interface NowView extends ViewHead<'now'>, NowSums {
  /** The number of queries currently waiting for replies. */
  readonly waiting: number;
  readonly lostByKernel: number;
  readonly clients: number;
  readonly servers: number;
  readonly waste: Waste;
  /** Active findings, most severe first. */
  readonly findings: readonly FindingRow[];
  /** The number of causes that have been ruled out, and of those that this input cannot show. */
  readonly excluded: number;
  readonly unknown: number;
  readonly changes: Listed<ChangeRow>;
  /** The reloads of servers that report them, newest first. */
  readonly reloads: readonly ReloadMark[];
}

/** A time series with one number per step, oldest first. */
export interface Series extends Readonly<
  Record<'queries' | 'lookups' | 'lost' | 'failed' | 'nxdomain' | 'wasted', readonly number[]>
> {
  readonly fromMs: number;
  readonly stepMs: number;
  /** Of the replies in each step, like `p50` and `p99` of `latency`, which is about the whole window. */
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

export interface Waste {
  readonly queries: number;
  /** As a fraction of all queries, 0 to 1. */
  readonly share: number;
  readonly workloads: Listed<WasteRow>;
}

/** The cost of a workload's search path, and the change that avoids it. */
export interface WasteRow {
  /** `shop/deploy/cart`, or an address if nothing else is known. */
  readonly id: string;
  readonly namespace: string;
  readonly workload: string;
  readonly clients: number;
  readonly queries: number;
  readonly wasted: number;
  /** Per second, over the window. */
  readonly wastedRate: number;
  /** The change that avoids it. Null if it has not been computed yet or no such change is known. */
  readonly plan: WastePlan | null;
}

/** The savings from one change to a workload. */
export interface WastePlan {
  /** The value of `ndots` that saves the most without breaking anything, or null if there is none. */
  readonly ndots: number | null;
  /** The number of queries that the window's lookups took, and that they would take with the change. */
  readonly queriesNow: number;
  readonly queriesThen: number;
  /** Names that would resolve differently with the lowest `ndots`, and why none is recommended. */
  readonly broken: readonly string[];
  readonly unknown: readonly string[];
  /** Names that are cheaper with a trailing dot. */
  readonly dotted: readonly { readonly name: string; readonly saved: number }[];
  /** The patch for `kubectl patch`, or empty if there is none. */
  readonly patch: string;
  /** The resolver used for the computation. */
  readonly resolver: string;
}

export interface ChangeRow {
  readonly atMs: number;
  readonly kind:
    | 'finding-began'
    | 'finding-ended'
    | 'server-new'
    /** Clients have stopped querying it. */
    | 'server-gone'
    | 'server-back'
    | 'pod-gone'
    | 'rate'
    | 'reload'
    | 'input';
  /** For display. */
  readonly text: string;
  /** The related row and its view, or null if there is none. */
  readonly about: { readonly view: ViewName; readonly id: number | string } | null;
  /** For `reload`, the reload's ID in the reloads view. */
  readonly reload?: number;
}

/** Lookups in full detail, newest first. */
export interface LookupsView extends ViewHead<'lookups'>, Listed<LookupRow> {}

/** The ending of a lookup from the program's point of view. */
export type LookupEnding =
  /** It found records. */
  | 'answered'
  /** NXDOMAIN for the last name tried. */
  | 'no-such-name'
  /** The name exists but has no such record. */
  | 'no-record'
  /** An error: SERVFAIL, REFUSED … */
  | 'error'
  /** The last query got no reply. */
  | 'lost'
  | 'waiting';

/** One call by an application. */
export interface LookupRow {
  /** Increases with each lookup and is never reused. */
  readonly id: number;
  readonly client: Party;
  /** The `id` of the client's row. */
  readonly clientId: string;
  /** As the application wrote it, in lower case, as far as the queries reveal. */
  readonly name: string;
  readonly startMs: number;
  readonly tookMs: number;
  readonly outcome: LookupEnding;
  /** The code in the reply that ended it. Empty if there was no reply. */
  readonly rcode: string;
  /** Queries for nonexistent names before the query that ended it. */
  readonly wasted: number;
  readonly lost: number;
  readonly queries: readonly QueryRow[];
  /** Further queries that did not fit into `queries`. */
  readonly more: number;
}

export interface QueryRow {
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  readonly server: Party;
  /** The targets of address translation, which are pods behind a service. */
  readonly behind: readonly Party[];
  /** Milliseconds since the start of the lookup. */
  readonly afterMs: number;
  /** Null: no reply. */
  readonly tookMs: number | null;
  /** Empty: no reply. */
  readonly rcode: string;
  /** Records in the answer section, or null if a log does not say. */
  readonly answers: number | null;
  readonly truncated: boolean;
  readonly attempt: number;
  readonly reason: QueryReason;
  /** The same for display: `search domain svc.cluster.local`. */
  readonly why: string;
}

export type QueryReason =
  | 'first'
  /** The other address family for the same name. */
  | 'other-family'
  /** The name with the next search domain appended. */
  | 'search'
  /** The name as written, after the search domains. */
  | 'as-written'
  /** A retry, because no reply arrived in time. */
  | 'no-reply'
  /** A retry, because the reply was an error. */
  | 'error'
  /** A retry over TCP because the reply was truncated. */
  | 'truncated'
  | 'next-server'
  /** Another type for the same name. */
  | 'other-type';

/** Clients, busiest first. */
export interface ClientsView extends ViewHead<'clients'>, Listed<ClientRow> {}

export interface ClientRow extends LiveCounts, LookupCounts, Party {
  /** The address, with a number if it belonged to another pod before. */
  readonly id: string;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly resolver: {
    readonly kinds: readonly Kind[];
    /** 0 to 1, or null if unknown. */
    readonly confidence: number | null;
    /** Why it is unknown, for display. */
    readonly why: string;
  };
  /** The servers that it queries. */
  readonly servers: readonly Party[];
}

/** Names as applications wrote them. */
export interface NamesView extends ViewHead<'names'>, Listed<NameRow> {}

export interface NameRow extends LiveCounts, LookupCounts {
  readonly id: string;
  readonly name: string;
  /** Distinct clients, or null if more than were counted individually. */
  readonly clients: number | null;
  readonly types: readonly string[];
  readonly outcome: LookupEnding;
  readonly lastMs: number;
  /** The most lookups that may be missing from its count. */
  readonly error: number;
}

export interface ServersView extends ViewHead<'servers'>, Listed<ServerRow> {}

/** A server, an upstream, or a pod behind a service. */
export interface ServerRow extends LiveCounts, Party {
  /** The address, with the port unless it is 53. */
  readonly id: string;
  readonly port: number;
  /** `upstream` if one of these servers queries it, `behind` if queries to a service's address reach it. */
  readonly role: 'server' | 'upstream' | 'behind';
  /** Clients that query it. Null if there are more than were counted individually. */
  readonly clients: number | null;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The pods behind a service address. */
  readonly behind: readonly Party[];
  /** Describes how it differs from its peers. Empty if it does not. */
  readonly odd: string;
}

/** Active findings, and past ones that the model still remembers. */
export interface FindingsView extends ViewHead<'findings'>, Listed<FindingRow> {
  /** The time at which the rules last ran, or null if they have not. */
  readonly checkedMs: number | null;
  readonly excluded: readonly NotFoundRow[];
  readonly unknown: readonly NotFoundRow[];
}

/** A fault that the rules checked for but did not find. */
export interface NotFoundRow {
  readonly code: string;
  readonly name: string;
  readonly reason: string;
}

/** A finding by doctor's rules over time. */
export interface FindingRow {
  /** Derived from the code and subject, so it is the same each time the finding comes back. */
  readonly id: string;
  readonly code: string;
  readonly title: string;
  readonly subject: string;
  readonly severity: Severity;
  /** 0 to 1. */
  readonly confidence: number;
  readonly state: 'began' | 'continues' | 'ended';
  /** The time of its earliest evidence. */
  readonly beganMs: number;
  /** The first and last time that a rule reported it. */
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** Null: still active. */
  readonly endedMs: number | null;
  /** The number of times it has started. */
  readonly times: number;
  readonly seen: readonly string[];
  readonly why: string;
  readonly fix: readonly string[];
  readonly prove: string;
  readonly disproved: string;
  readonly places: readonly string[];
  readonly who: {
    readonly clients: number;
    readonly nodes: number;
    readonly groups: readonly {
      readonly name: string;
      readonly clients: number;
      readonly share: number;
    }[];
    readonly resolvers: readonly { readonly name: string; readonly count: number }[];
    readonly affected: readonly string[];
  };
  /** Some of the queries behind it, newest first. */
  readonly examples: readonly ExampleRow[];
  /** The total number of queries behind it. */
  readonly queries: number;
}

/** A query that is evidence for a finding. */
export interface ExampleRow {
  readonly client: Party;
  readonly server: Party;
  readonly name: string;
  readonly type: string;
  readonly sentMs: number;
  readonly tookMs: number | null;
  readonly rcode: string;
}
