/** The messages in etcd's v3 API (etcdserverpb, mvccpb) that this client uses, and the names of the API's methods. */
import { MessageBuilder, MessageError, MessageReader } from '../base/protobuf.ts';

/** Paths of the gRPC methods, as in `:path`. */
export const METHOD = {
  range: '/etcdserverpb.KV/Range',
  put: '/etcdserverpb.KV/Put',
  deleteRange: '/etcdserverpb.KV/DeleteRange',
  watch: '/etcdserverpb.Watch/Watch',
  leaseGrant: '/etcdserverpb.Lease/LeaseGrant',
  leaseKeepAlive: '/etcdserverpb.Lease/LeaseKeepAlive',
  leaseTimeToLive: '/etcdserverpb.Lease/LeaseTimeToLive',
  authenticate: '/etcdserverpb.Auth/Authenticate',
} as const;

/** A half-open range of keys, or a single key if there is no `end`. Keys are bytes. */
export interface KeyRange {
  readonly key: Buffer;
  readonly end: Buffer | null;
}

/** Returns the range of all keys that begin with these bytes. */
export function prefixRange(prefix: Buffer): KeyRange {
  const end = Buffer.from(prefix);
  for (let at = end.length - 1; at >= 0; at--) {
    if (end[at]! < 0xff) {
      end[at]!++;
      return { key: prefix, end: end.subarray(0, at + 1) };
    }
  }
  // etcd's representation of "to the very end".
  return { key: prefix, end: Buffer.of(0) };
}

/** The first part of every reply. */
export interface ResponseHeader {
  readonly cluster: bigint;
  /** The store's revision when the reply was sent. */
  readonly revision: number;
}

/** A key with its stored value (mvccpb.KeyValue). Its buffers are views of the message. */
export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly modRevision: number;
  /** 0 if there is none. */
  readonly lease: bigint;
}

/** The requested keys (etcdserverpb.RangeRequest). */
export interface RangeRequest extends KeyRange {
  /** Maximum number of keys; 0 means all. */
  readonly limit?: number;
  /** The revision to read; 0 means the current one. */
  readonly revision?: number;
  readonly keysOnly?: boolean;
}

/** The keys that were found, in ascending byte order (etcdserverpb.RangeResponse). */
export interface RangeResponse {
  readonly header: ResponseHeader;
  readonly kvs: readonly KeyValue[];
  /** True if there are more keys in the range. */
  readonly more: boolean;
  /** The memory that contains the keys and values. */
  readonly bytes: Buffer;
}

/**
 * One change (mvccpb.Event), where a key was set or deleted. A deletion includes the key and its revision, but no
 * value.
 */
export interface WatchEvent {
  readonly deleted: boolean;
  readonly kv: KeyValue;
}

/** One message on a watch stream (etcdserverpb.WatchResponse). `watch` is the id that the watch was created with. */
export interface WatchResponse {
  readonly header: ResponseHeader;
  readonly watch: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Nonzero if the requested revision no longer exists, in which case it is the first one that does. */
  readonly compactRevision: number;
  readonly cancelReason: string;
  /** True if more events from the same revision follow. */
  readonly fragment: boolean;
  readonly events: readonly WatchEvent[];
}

/** A lease and its time in seconds. */
export interface EtcdLease {
  readonly id: bigint;
  /** Seconds left or, for a grant, seconds granted. Negative if the lease no longer exists. */
  readonly ttl: number;
  readonly granted: number;
}

/** Builds a `Range` message. It does not request a sort order, because etcd then returns keys in ascending order. */
export function rangeRequest({
  key,
  end,
  limit = 0,
  revision = 0,
  keysOnly = false,
}: RangeRequest): Buffer {
  return new MessageBuilder()
    .bytes(1, key)
    .bytes(2, end ?? nothing)
    .number(3, limit)
    .number(4, revision)
    .flag(8, keysOnly)
    .build();
}

/**
 * @param limit maximum number of keys requested; 0 allows any number. An empty key takes two bytes and becomes an
 * object, so more are not read
 * @throws MessageError, like all readers below
 */
export function readRange(bytes: Buffer, limit = 0): RangeResponse {
  const reader = new MessageReader();
  let header = noHeader;
  const kvs: KeyValue[] = [];
  let more = false;
  for (reader.over(bytes); reader.next();) {
    if (reader.field === 1) header = readHeader(reader.bytes());
    else if (reader.field === 2) {
      if (limit > 0 && kvs.length === limit)
        throw new MessageError(`more than the ${limit} requested keys`);
      kvs.push(readKeyValue(reader.bytes()));
    } else if (reader.field === 3) more = reader.flag();
  }
  return { header, kvs, more, bytes };
}

/**
 * Builds a `Put` message.
 * @param lease id of the lease that the key expires with; 0n if there is none
 */
export function putRequest(key: Buffer, value: Buffer, lease: bigint): Buffer {
  return new MessageBuilder().bytes(1, key).bytes(2, value).number(3, lease).build();
}

/** Builds a `DeleteRange` message. */
export function deleteRequest({ key, end }: KeyRange): Buffer {
  return new MessageBuilder()
    .bytes(1, key)
    .bytes(2, end ?? nothing)
    .build();
}

/** Reads the number of deleted keys. */
export function readDeleted(bytes: Buffer): number {
  const reader = new MessageReader();
  let deleted = 0;
  for (reader.over(bytes); reader.next();) if (reader.field === 2) deleted = reader.number();
  return deleted;
}

/**
 * Builds a request to watch from `revision` on. Large answers arrive in fragments, and an idle watch reports its
 * progress periodically.
 */
export function watchRequest(watch: number, { key, end }: KeyRange, revision: number): Buffer {
  const create = new MessageBuilder()
    .bytes(1, key)
    .bytes(2, end ?? nothing)
    .number(3, revision)
    .flag(4, true)
    .number(7, watch)
    .flag(8, true)
    .build();
  return new MessageBuilder().message(1, create).build();
}

/** Thrown for a watch message with so many events that listing everything again is better. */
export class TooManyEvents extends MessageError {}

/** etcd truncates values above 2 MiB, and an event with a key and a value has at least 20 bytes. */
const EVENTS_MAX = 100_000;

/**
 * Reads a message on a watch stream. It contains events, or reports that the watch was created or canceled.
 * @throws TooManyEvents
 */
export function readWatch(bytes: Buffer): WatchResponse {
  const reader = new MessageReader();
  const events: WatchEvent[] = [];
  const read = {
    header: noHeader,
    watch: 0,
    created: false,
    canceled: false,
    compactRevision: 0,
    cancelReason: '',
    fragment: false,
    events,
  };
  for (reader.over(bytes); reader.next();) {
    const { field } = reader;
    if (field === 1) read.header = readHeader(reader.bytes());
    else if (field === 2) read.watch = reader.number();
    else if (field === 3) read.created = reader.flag();
    else if (field === 4) read.canceled = reader.flag();
    else if (field === 5) read.compactRevision = reader.number();
    else if (field === 6) read.cancelReason = reader.text();
    else if (field === 7) read.fragment = reader.flag();
    else if (field === 11) {
      if (events.length === EVENTS_MAX)
        throw new TooManyEvents(`more than ${EVENTS_MAX} events in one message`);
      events.push(readEvent(reader.bytes()));
    }
  }
  return read;
}

/** Builds a `LeaseGrant` message for a lease of `seconds`, whose id etcd chooses. */
export function leaseGrantRequest(seconds: number): Buffer {
  return new MessageBuilder().number(1, seconds).build();
}

/** Builds the request for both `LeaseTimeToLive` and `LeaseKeepAlive`. */
export function leaseRequest(id: bigint): Buffer {
  return new MessageBuilder().number(1, id).build();
}

/** Reads replies to `LeaseGrant`, `LeaseKeepAlive` and `LeaseTimeToLive`. */
export function readLease(bytes: Buffer): EtcdLease {
  const reader = new MessageReader();
  const lease = { id: 0n, ttl: 0, granted: 0 };
  for (reader.over(bytes); reader.next();) {
    if (reader.field === 2) lease.id = reader.id();
    else if (reader.field === 3) lease.ttl = reader.number();
    else if (reader.field === 4 && lease.granted === 0) lease.granted = reader.number();
  }
  return lease;
}

/** Builds an `Authenticate` message with a user's name and password. */
export function authenticateRequest(name: string, password: string): Buffer {
  return new MessageBuilder().bytes(1, name).bytes(2, password).build();
}

/** Reads the token in the reply to `Authenticate`, which is empty if there is none. */
export function readToken(bytes: Buffer): string {
  const reader = new MessageReader();
  let token = '';
  for (reader.over(bytes); reader.next();) if (reader.field === 2) token = reader.text();
  return token;
}

function readHeader(bytes: Buffer): ResponseHeader {
  const reader = new MessageReader();
  const header = { cluster: 0n, revision: 0 };
  for (reader.over(bytes); reader.next();) {
    if (reader.field === 1) header.cluster = reader.id();
    else if (reader.field === 3) header.revision = reader.number();
  }
  return header;
}

function readEvent(bytes: Buffer): WatchEvent {
  const reader = new MessageReader();
  const event = { deleted: false, kv: noKeyValue };
  for (reader.over(bytes); reader.next();) {
    if (reader.field === 1) event.deleted = reader.number() === 1;
    else if (reader.field === 2) event.kv = readKeyValue(reader.bytes());
  }
  return event;
}

function readKeyValue(bytes: Buffer): KeyValue {
  const reader = new MessageReader();
  const kv = { key: nothing, value: nothing, modRevision: 0, lease: 0n };
  for (reader.over(bytes); reader.next();) {
    if (reader.field === 1) kv.key = reader.bytes();
    else if (reader.field === 3) kv.modRevision = reader.number();
    else if (reader.field === 5) kv.value = reader.bytes();
    else if (reader.field === 6) kv.lease = reader.id();
  }
  return kv;
}

const nothing: Buffer = Buffer.alloc(0);
const noHeader: ResponseHeader = { cluster: 0n, revision: 0 };
const noKeyValue: KeyValue = { key: nothing, value: nothing, modRevision: 0, lease: 0n };
