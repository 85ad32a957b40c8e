/** A query that the server is processing: its message, its client, and data added by plugins. */
import { copyBytes } from '../base/copy-bytes.ts';
import { printAddress } from '../base/ip.ts';
import type { WireName } from '../wire/name.ts';
import { makeQueryMessage, QueryMessage, type Triage } from '../wire/query-message.ts';
import type { ReplyScope } from './reply-scope.ts';

/** Records a query's path through the links of the chain, for tracing. */
export interface LinkRecorder {
  /**
   * Called when the query enters a link. Links entered before it leaves this one are nested in it.
   * @returns the handle for `left` and `done`
   */
  entered(link: string): number;
  /** Called when the link has returned, either with its reply or with a promise of one. */
  left(span: number): void;
  /** The link's reply is available. */
  done(span: number): void;
}

/**
 * A query's listener, server block and zone, which are the label values of most metrics. There is one object per
 * combination.
 */
export interface Route {
  /** A small number for use as a table index, counted from 0 without gaps. */
  readonly index: number;
  /** Listen address with scheme, e.g. `dns://:53`. */
  readonly server: string;
  /** The zone of the server block that matched, e.g. `cluster.local.`. */
  readonly zone: string;
  /** Name of the view, or empty. */
  readonly view: string;
}

/** Value of a query's `screen` when its name was rewritten for a lookup that only contributes part of a reply. */
export const renamed: object = {};

/**
 * A query. Listeners reuse one object for many queries. Code that needs a query after the chain has returned (because a
 * promise is pending) must use the copy returned by `keep()`.
 */
export class Query extends QueryMessage {
  /** Additional flags to set when the query is forwarded to an upstream. */
  upstreamFlags = 0;
  /**
   * EDNS options in wire form that replace the query's own when it is sent to an upstream. The query is then sent
   * without further records and with this server's UDP size. If null, it is sent as received.
   */
  upstreamOptions: Uint8Array | null = null;
  /** Result code for a message that plugins must not see (NOTIMP, FORMERR), or 0 for a proper query. */
  rejection = 0;

  family: 4 | 6 = 4;
  /** The client's address in network order: `peer[peerAt, peerAt + 4 or 16)`. */
  peer: Uint8Array = loopback;
  peerAt = 0;
  peerPort = 0;
  /** The address and port that the query was sent to, as text. Set by the listener. */
  local = '';
  localPort = 0;
  /** Arrival time in milliseconds of the monotonic clock. */
  arrived = 0;
  route: Route = noRoute;
  /** The route of the client's query, if this query was created to help answer it (`depth` > 0). */
  via: Route = noRoute;
  /** Labels collected by `metadata`; null without the plugin. */
  notes: Map<string, string> | null = null;
  /** Null for nearly all queries, because few are traced. */
  recorder: LinkRecorder | null = null;
  /** If false, a link that would have to wait returns `overloaded` instead. */
  mayWait = true;
  /**
   * Set if an earlier plugin will inspect the whole reply before the client gets it. Lookups for parts of the reply
   * then need no inspection. Null if no plugin does. `renamed` means that a plugin does, but the name being looked up
   * here will not appear in the reply.
   */
  screen: object | null = null;
  /** Number of internal lookups (for CNAME targets) that led to this query, used to limit loops. */
  depth = 0;
  /** Counts all internal lookups made for one client query. Null if there have been none. */
  lookups: { count: number } | null = null;
  /** Null if no earlier plugin would give the reply to other clients. */
  scope: ReplyScope | null = null;

  #owned = false;
  #kept: Query | null = null;

  /** Reads a message, discarding all state from the previous query. */
  override read(bytes: Uint8Array, start: number, end: number): Triage {
    this.#owned = false;
    this.#kept = null;
    this.upstreamFlags = 0;
    this.upstreamOptions = null;
    this.rejection = 0;
    this.via = noRoute;
    this.notes = null;
    this.recorder = null;
    this.mayWait = true;
    this.screen = null;
    this.depth = 0;
    this.lookups = null;
    this.scope = null;
    return super.read(bytes, start, end);
  }

  /** True if this query remains valid after the chain has returned. */
  get owned(): boolean {
    return this.#owned;
  }

  /** The client's address as text. */
  get client(): string {
    return printAddress(this.peer, this.peerAt, this.family === 4 ? 4 : 16);
  }

  /**
   * Returns this query if it owns its bytes, otherwise a copy that does. Repeated calls return the same copy unless the
   * query has changed.
   */
  keep(): Query {
    if (this.#owned) return this;
    const kept = this.#kept;
    return kept !== null && isUnchanged(this, kept) ? kept : (this.#kept = this.copy());
  }

  /** Returns a new, unshared copy that owns its bytes. */
  copy(): Query {
    const copy = new Query();
    copyPeer(copy, this, copy.copyMessage(this, PEER_SIZE));
    copy.#owned = true;
    return copy;
  }

  /**
   * Adopts the client of `from`, with everything known about it, for a query that replaces `from`. The address is not
   * copied, and the client's EDNS sizes are not adopted.
   */
  askFor(from: Query): void {
    this.upstreamFlags = from.upstreamFlags;
    this.upstreamOptions = from.upstreamOptions;
    this.signature = from.signature;
    this.udpMost = from.udpMost;
    this.proto = from.proto;
    this.family = from.family;
    this.peer = from.peer;
    this.peerAt = from.peerAt;
    this.peerPort = from.peerPort;
    this.local = from.local;
    this.localPort = from.localPort;
    this.arrived = from.arrived;
    this.route = from.route;
    this.via = from.via;
    this.notes = from.notes;
    this.recorder = from.recorder;
    this.mayWait = from.mayWait;
    this.screen = from.screen;
    this.depth = from.depth;
    this.lookups = from.lookups;
    this.scope = from.scope;
  }

  /**
   * Returns a new, owned query from the same client with a different question, for rewrites, search paths and CNAME
   * targets. Flags and EDNS (size, DO and options) are preserved.
   */
  asking(name: WireName, type: number = this.type, qclass: number = this.class): Query {
    // This query and all its follow-ups are counted in the same object.
    this.lookups ??= { count: 0 };
    const query = new Query();
    copyPeer(query, this, query.writeQuestion(this, name, type, qclass, PEER_SIZE));
    query.#owned = true;
    return query;
  }
}

const PEER_SIZE = 16;

// These are functions because private methods would add a field to every query.

/** Returns true if the fields that plugins may change have not changed since `kept` was created. */
function isUnchanged(query: Query, kept: Query): boolean {
  return (
    kept.flags === query.flags &&
    kept.upstreamFlags === query.upstreamFlags &&
    kept.udpLimit === query.udpLimit &&
    kept.udpMost === query.udpMost &&
    kept.notes === query.notes &&
    kept.mayWait === query.mayWait &&
    kept.screen === query.screen &&
    kept.scope === query.scope &&
    kept.recorder === query.recorder
  );
}

/** Sets the client of `query` to that of `from`, copying the address to `at` in the query's own bytes. */
function copyPeer(query: Query, from: Query, at: number): void {
  copyBytes(from.peer, from.peerAt, query.bytes, at, from.family === 4 ? 4 : PEER_SIZE);
  query.askFor(from);
  query.peer = query.bytes;
  query.peerAt = at;
}

const loopback = Uint8Array.of(127, 0, 0, 1);
const noRoute: Route = { index: 0, server: '', zone: 'dropped', view: '' };

/** Creates a query with RD set and without EDNS, from 127.0.0.1 and with `proto` set to internal. */
export function makeQuery(name: WireName, type: number, qclass = 1, id = 0): Query {
  return makeQueryMessage(new Query(), name, type, qclass, id).keep();
}
