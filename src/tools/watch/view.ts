/**
 * The views of the live model: plain data that JSON can carry unchanged, so that one shape serves a
 * terminal, server-sent events and `-o json`. Names, addresses and texts are raw; the face that
 * draws them escapes them.
 */
import type { GivenFilter } from '../capture/filter.ts';
import type { Kind } from '../capture/fingerprint/asking-classes.ts';
import type { Severity } from '../doctor/severity.ts';

/** The version of these shapes. Fields may be added to a version, and none removed or changed. */
export const VIEW_VERSION = 1;

/** The views, in the order of their keys. */
export const viewNames = ['now', 'lookups', 'clients', 'names', 'servers', 'findings'] as const;
/** One of them. */
export type ViewName = (typeof viewNames)[number];

/** The columns that each view can be sorted by. */
export interface SortKeys {
  readonly now: never;
  readonly lookups: 'time' | 'took' | 'queries' | 'name' | 'client';
  readonly clients:
    | 'queries'
    | 'lookups'
    | 'lost'
    | 'failed'
    | 'wasted'
    | 'latency'
    | 'name'
    | 'seen';
  readonly names:
    | 'lookups'
    | 'queries'
    | 'lost'
    | 'failed'
    | 'wasted'
    | 'latency'
    | 'clients'
    | 'name'
    | 'seen';
  readonly servers: 'queries' | 'lost' | 'failed' | 'latency' | 'clients' | 'name' | 'seen';
  readonly findings: 'state' | 'severity' | 'began' | 'code';
}

/** The same as lists; the first of each is the default. */
export const sortKeys: { readonly [V in ViewName]: readonly SortKeys[V][] } = {
  now: [],
  lookups: ['time', 'took', 'queries', 'name', 'client'],
  clients: ['queries', 'lookups', 'lost', 'failed', 'wasted', 'latency', 'name', 'seen'],
  names: ['lookups', 'queries', 'lost', 'failed', 'wasted', 'latency', 'clients', 'name', 'seen'],
  servers: ['queries', 'lost', 'failed', 'latency', 'clients', 'name', 'seen'],
  findings: ['state', 'severity', 'began', 'code'],
};

/** The request of a face. */
export interface ViewQuery<V extends ViewName = ViewName> {
  readonly view: V;
  /** In the words of `ndots capture`. Counts are then those of the lookups in full detail alone. */
  readonly filters?: readonly GivenFilter[];
  readonly sort?: SortKeys[V];
  /** True reverses the order, which begins with the newest, the most, the gravest, or at A. */
  readonly reversed?: boolean;
  /** Rows; 200 without it. */
  readonly most?: number;
  /** Rows that are skipped, for pages. */
  readonly skip?: number;
  /** The length of time to show, up to now, milliseconds; the whole window without it. */
  readonly lastMs?: number;
  /** Lookups: only those that began before this one, so that a list can be read to its end. */
  readonly before?: number;
  /** The one row that is wanted, by its `id`: for details. */
  readonly id?: number | string;
}

/** The view of each name. */
export interface Views {
  readonly now: NowView;
  readonly lookups: LookupsView;
  readonly clients: ClientsView;
  readonly names: NamesView;
  readonly servers: ServersView;
  readonly findings: FindingsView;
}

/** The rows of a list, and the number that it leaves out. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly shown: number;
  /** Rows that there are, of those that the filters let through. */
  readonly total: number;
  /** Rows that did not fit into memory: only the sums include them. */
  readonly leftOut: number;
  /** Packets that the kernel dropped within the window, so that no row knows of them. */
  readonly lostByKernel: number;
  /**
   * Of the lookups of the window, the share in full detail from which rows were made, 0 to 1. Below
   * 1, counts of a filtered list are of that share. Of findings: the share of the clients whose
   * traffic the rules look at.
   */
  readonly sampledShare: number;
  /** The largest number by which a count of this list may be too low; 0: counts are exact. */
  readonly error: number;
}

/** The common head of all views. */
export interface ViewHead<V extends ViewName> {
  readonly version: typeof VIEW_VERSION;
  readonly view: V;
  /** The time of the model, milliseconds since 1970: that of the packets where files are replayed. */
  readonly atMs: number;
  /**
   * The time that the counts of this view cover. It starts later than requested if the data is
   * shorter. It starts earlier by a part of a step: lists are counted in steps of a fifth of the
   * window.
   */
  readonly window: { readonly fromMs: number; readonly toMs: number };
  /** The start of the oldest lookup in full detail; null: there is none. */
  readonly detailFromMs: number | null;
  readonly inputs: readonly InputRow[];
  readonly memory: MemoryUse;
  /** The parts of the input that could not be read, as text. */
  readonly remarks: readonly string[];
}

/** An input of the model. */
export interface InputRow {
  /** For people: `interface eth0, port 53`. */
  readonly name: string;
  /** `away`: its server cannot be reached, and is tried again. */
  readonly state: 'reading' | 'away' | 'ended' | 'failed';
  /** The reason for its failure, as text; empty otherwise. */
  readonly why: string;
  /** The time since which it is unavailable, milliseconds since 1970; null: it is available. */
  readonly awayMs: number | null;
  readonly queries: number;
  readonly lookups: number;
  /** Packets that the kernel dropped since the input began. */
  readonly lostByKernel: number;
  /** The time of its newest message; null: there is none. */
  readonly lastMs: number | null;
  /** The lead of its clock over the model's, where that is known; 0 otherwise. Milliseconds. */
  readonly aheadMs: number;
  /** The way in which it is unlike the others, as text; empty: it is like them. */
  readonly odd: string;
}

/** Memory of the model: what its data takes by the model's own account, without the runtime's. */
export interface MemoryUse {
  readonly usedBytes: number;
  readonly limitBytes: number;
  /** The data dropped early, because the limit was reached, as text; empty: none. */
  readonly dropped: string;
}

/** An address, and its present or former owner. Unknown fields are empty. */
export interface Party {
  readonly address: string;
  readonly kind: 'pod' | 'service' | 'node' | '';
  /** `shop/cart-7d4b9c`, `kube-system/kube-dns`, `node7`; empty: only the address is known. */
  readonly name: string;
  readonly namespace: string;
  /** `deploy/cart`. */
  readonly workload: string;
  readonly node: string;
  /** True if it had the address and has disappeared. */
  readonly isGone: boolean;
}

/** Milliseconds from query to reply; null: there was no reply. Right to within 5 %. */
export interface Latency {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly p999: number | null;
  readonly max: number | null;
}

/** Queries and what became of them. */
export interface LiveCounts {
  readonly queries: number;
  readonly lost: number;
  /** Replies by their codes, the most frequent first. */
  readonly rcodes: readonly { readonly rcode: string; readonly count: number }[];
  /** Replies that are errors: neither NOERROR nor NXDOMAIN. */
  readonly failed: number;
  /** Queries for names that a search path made and that do not exist. */
  readonly wasted: number;
  readonly latency: Latency;
}

/** Everything at a glance. */
export interface NowView extends ViewHead<'now'>, LiveCounts {
  readonly lookups: number;
  /** Of these, those that ended without an address or the requested record. */
  readonly failedLookups: number;
  /** Of these, those that took a second or more. */
  readonly slowLookups: number;
  /** A second, over the last ten seconds. */
  readonly rates: {
    readonly queries: number;
    readonly lookups: number;
    readonly lost: number;
    readonly failed: number;
    readonly wasted: number;
  };
  /** Queries that wait for their replies now. */
  readonly waiting: number;
  readonly lostByKernel: number;
  readonly types: readonly { readonly type: string; readonly count: number }[];
  readonly protocols: readonly { readonly protocol: string; readonly count: number }[];
  readonly clients: number;
  readonly servers: number;
  /** The results of all lookups, in equal steps to the end of the window. */
  readonly series: Series;
  readonly waste: Waste;
  /** Those that hold now, the gravest first. */
  readonly findings: readonly FindingRow[];
  /** The number of causes that were excluded, and of those that this input cannot show. */
  readonly excluded: number;
  readonly unknown: number;
  readonly changes: Listed<ChangeRow>;
}

/** Numbers over time: one for each step, the oldest first. */
export interface Series {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly queries: readonly number[];
  readonly lookups: readonly number[];
  readonly lost: readonly number[];
  readonly failed: readonly number[];
  readonly nxdomain: readonly number[];
  readonly wasted: readonly number[];
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** The cost of search paths. */
export interface Waste {
  readonly queries: number;
  /** Of all queries, 0 to 1. */
  readonly share: number;
  readonly workloads: Listed<WasteRow>;
}

/** The cost of the search path of one workload, and the change that ends it. */
export interface WasteRow {
  /** `shop/deploy/cart`; an address where nothing else is known. */
  readonly id: string;
  readonly namespace: string;
  readonly workload: string;
  readonly clients: number;
  readonly queries: number;
  readonly wasted: number;
  /** A second, over the window. */
  readonly wastedRate: number;
  /** The change that ends it; null: it has not been computed yet, or no such change is known. */
  readonly plan: WastePlan | null;
}

/** The saving of one change of a workload. */
export interface WastePlan {
  /** The value of `ndots` that saves most and breaks nothing; null: none does. */
  readonly ndots: number | null;
  /** Queries that the lookups of the window took, and would take with it. */
  readonly queriesNow: number;
  readonly queriesThen: number;
  /** Names that would resolve otherwise with the lowest `ndots`, and the reason why none is recommended. */
  readonly broken: readonly string[];
  readonly unknown: readonly string[];
  /** Names that are cheaper with a final dot. */
  readonly dotted: readonly { readonly name: string; readonly saved: number }[];
  /** The patch as text, for `kubectl patch`; empty: none. */
  readonly patch: string;
  /** The resolver that it was computed for. */
  readonly resolver: string;
}

/** A change in the traffic. */
export interface ChangeRow {
  readonly atMs: number;
  readonly kind:
    | 'finding-began'
    | 'finding-ended'
    | 'server-new'
    /** Clients no longer query it. */
    | 'server-gone'
    | 'server-back'
    | 'pod-gone'
    | 'rate'
    | 'reload'
    | 'input';
  /** For people. */
  readonly text: string;
  /** The row and its view; null: none. */
  readonly about: { readonly view: ViewName; readonly id: number | string } | null;
}

/** Lookups in full detail, the newest first. */
export interface LookupsView extends ViewHead<'lookups'>, Listed<LookupRow> {}

/** The ending of a lookup, as its program felt it. */
export type LookupEnding =
  /** It found records. */
  | 'answered'
  /** NXDOMAIN for the last name that was tried. */
  | 'no-such-name'
  /** The name exists and has no such record. */
  | 'no-record'
  /** An error: SERVFAIL, REFUSED … */
  | 'error'
  /** The last query got no reply. */
  | 'lost'
  /** It is not over. */
  | 'waiting';

/** One call of an application. */
export interface LookupRow {
  /** Rises from lookup to lookup; never used again. */
  readonly id: number;
  readonly client: Party;
  /** As the application spelled it, as far as the queries show; in lower case. */
  readonly name: string;
  readonly startMs: number;
  readonly tookMs: number;
  readonly outcome: LookupEnding;
  /** Of the reply that ended it; empty: there was none. */
  readonly rcode: string;
  /** Queries for names that do not exist before the one that ended it. */
  readonly wasted: number;
  readonly lost: number;
  readonly queries: readonly QueryRow[];
  /** Queries that it had and for which there is no room in `queries`. */
  readonly more: number;
}

/** One query of a lookup. */
export interface QueryRow {
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  readonly server: Party;
  /** The targets of an address translation: pods behind a service. */
  readonly behind: readonly Party[];
  /** Milliseconds after the lookup began. */
  readonly afterMs: number;
  /** Null: no reply. */
  readonly tookMs: number | null;
  /** Empty: no reply. */
  readonly rcode: string;
  /** Records in the answer section; null: a log does not say. */
  readonly answers: number | null;
  readonly truncated: boolean;
  readonly attempt: number;
  /** Why it was sent. */
  readonly reason: QueryReason;
  /** The same for people: `search domain svc.cluster.local`. */
  readonly why: string;
}

/** Why a resolver sends a query. */
export type QueryReason =
  /** The first of the lookup. */
  | 'first'
  /** The other address family of the same name. */
  | 'other-family'
  /** The name with the next search domain. */
  | 'search'
  /** The name as it was written, after search domains. */
  | 'as-written'
  /** The same again: there was no reply in time. */
  | 'no-reply'
  /** The same again: the reply was an error. */
  | 'error'
  /** The same over TCP: the reply was truncated. */
  | 'truncated'
  | 'next-server'
  /** Another type of the same name. */
  | 'other-type';

/** Clients, those with most queries first. */
export interface ClientsView extends ViewHead<'clients'>, Listed<ClientRow> {}

export interface ClientRow extends LiveCounts, Party {
  /** The address. */
  readonly id: string;
  readonly lookups: number;
  readonly failedLookups: number;
  readonly slowLookups: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly resolver: {
    readonly kinds: readonly Kind[];
    /** 0 to 1; null: it is not known. */
    readonly confidence: number | null;
    /** Why it is not known, for people. */
    readonly why: string;
  };
  /** The server that it asks most, and all that it asks. */
  readonly servers: readonly Party[];
}

/** Names as applications spelled them. */
export interface NamesView extends ViewHead<'names'>, Listed<NameRow> {}

export interface NameRow extends LiveCounts {
  readonly id: string;
  readonly name: string;
  readonly lookups: number;
  readonly failedLookups: number;
  /** Different clients; null: more than were counted one by one. */
  readonly clients: number | null;
  readonly types: readonly string[];
  readonly outcome: LookupEnding;
  readonly lastMs: number;
  /** The most of its lookups that may not be counted. */
  readonly error: number;
}

/** Servers and upstreams. */
export interface ServersView extends ViewHead<'servers'>, Listed<ServerRow> {}

/** A server, an upstream, or a pod behind a service. */
export interface ServerRow extends LiveCounts, Party {
  /** The address with the port. */
  readonly id: string;
  readonly port: number;
  /** `upstream`: one of these servers queries it. `behind`: queries to a service's address reach it. */
  readonly role: 'server' | 'upstream' | 'behind';
  /** Clients that ask it; null: more than were counted one by one. */
  readonly clients: number | null;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The pods behind a service's address. */
  readonly behind: readonly Party[];
  /** The way in which it is unlike its fellows, as text; empty: it is like them. */
  readonly odd: string;
}

/** Findings that hold, and those that have ended within the memory of the model. */
export interface FindingsView extends ViewHead<'findings'>, Listed<FindingRow> {
  /** The time of the last run of the rules; null: not yet. */
  readonly checkedMs: number | null;
  readonly excluded: readonly NotFoundRow[];
  readonly unknown: readonly NotFoundRow[];
}

/** A fault that the rules looked for and did not find. */
export interface NotFoundRow {
  readonly code: string;
  readonly name: string;
  readonly reason: string;
}

/** A finding of doctor's rules over time. */
export interface FindingRow {
  /** Of its code and subject; the same each time it comes back. */
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
  /** The first and the last time that a rule saw it. */
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** Null: it holds. */
  readonly endedMs: number | null;
  /** The number of times it has begun. */
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
  /** Queries that show it, the newest first, some. */
  readonly examples: readonly ExampleRow[];
  /** Queries that show it, in all. */
  readonly queries: number;
}

/** A query that shows a finding. */
export interface ExampleRow {
  readonly client: Party;
  readonly server: Party;
  readonly name: string;
  readonly type: string;
  readonly sentMs: number;
  readonly tookMs: number | null;
  readonly rcode: string;
}
