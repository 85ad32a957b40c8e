import { printSpan } from '../base/elapsed.ts';
import type { Clock } from '../base/clock.ts';
import { dial, isSecure, printEndpoint, type EtcdEndpoint, type EtcdTlsFiles } from './endpoint.ts';
import { GrpcConnection } from '../transport/grpc/grpc-connection.ts';
import { GrpcFailure } from '../transport/grpc/grpc-failure.ts';
import type { GrpcStream } from '../transport/grpc/grpc-stream.ts';
import { callFailure, EtcdFailure } from './etcd-failure.ts';
import {
  authenticateRequest,
  deleteRequest,
  leaseGrantRequest,
  leaseRequest,
  METHOD,
  putRequest,
  rangeRequest,
  readDeleted,
  readLease,
  readRange,
  readToken,
  type KeyRange,
  type EtcdLease,
  type RangeRequest,
  type RangeResponse,
} from './messages.ts';
import { MessageError } from '../base/protobuf.ts';

/** A cluster, and how it is spoken with. */
export interface EtcdAccess {
  /** At least one; they are tried in order, and the first that works stays in use. */
  readonly endpoints: readonly EtcdEndpoint[];
  /** null: none; endpoints with `https://` are then checked by the system's authorities. */
  readonly tls: EtcdTlsFiles | null;
  readonly credentials: { readonly user: string; readonly password: string } | null;
}

/** The parts of a client: the cluster, and its access to the network and time. */
export interface EtcdClientParts extends EtcdAccess {
  readonly clock: Clock;
  /** Bytes of one reply; default 8 MiB. */
  readonly messageMax?: number;
  /** Connects to an endpoint; tests have their own. */
  readonly dial?: typeof dial;
}

/** Events of a watch. */
export interface WatchCall {
  /** One whole message; it is lent until the call returns. */
  onMessage(message: Buffer): void;
  /** The last event; null: etcd ended it without a failure. */
  onEnd(failure: EtcdFailure | null): void;
}

/** Maximum bytes of a message from etcd; keys are read in smaller pages. */
const MESSAGE_MAX = 8 * 1024 * 1024;
/** Milliseconds after which an endpoint without a connection is skipped. */
const DIAL_MS = 2000;
/** CoreDNS waits as long. */
const CALL_MS = 5000;

/**
 * A client of etcd's API v3: one connection at a time, to the first endpoint that takes it. When it
 * breaks, or the member says that it cannot serve, the next one's turn has come. Every call either
 * gives its reply or throws an `EtcdFailure`.
 */
export class EtcdClient {
  readonly #parts: EtcdClientParts;
  #connection: Promise<GrpcConnection> | null = null;
  /** The same once it is made. */
  #made: GrpcConnection | null = null;
  /** The index of the endpoint in use, or of the next one to try. */
  #index = 0;
  #token: string | null = null;
  #closed = false;
  /** Calls that wait until the server accepts more: each that ends starts the next one. */
  readonly #waiting = new Set<() => void>();
  readonly #closing = new AbortController();

  constructor(parts: EtcdClientParts) {
    this.#parts = parts;
  }

  /** The keys of a range; when the caller is done with them it may release `bytes`. */
  range(request: RangeRequest): Promise<RangeResponse> {
    // The received bytes are only valid during the call, and their memory is reused before the keys
    // are read.
    const read = (reply: Buffer): RangeResponse => readRange(ownCopy(reply), request.limit);
    return this.#call(METHOD.range, rangeRequest(request), read);
  }

  /** @param lease 0n: none */
  async put(key: Buffer, value: Buffer, lease = 0n): Promise<void> {
    await this.#call(METHOD.put, putRequest(key, value, lease), ignore);
  }

  /** Returns the number of deleted keys. */
  delete(range: KeyRange): Promise<number> {
    return this.#call(METHOD.deleteRange, deleteRequest(range), readDeleted);
  }

  /** A lease that lasts `seconds` unless it is kept alive. */
  grantLease(seconds: number): Promise<EtcdLease> {
    return this.#call(METHOD.leaseGrant, leaseGrantRequest(seconds), readLease);
  }

  /** The remaining time of a lease. */
  lease(id: bigint): Promise<EtcdLease> {
    return this.#call(METHOD.leaseTimeToLive, leaseRequest(id), readLease);
  }

  /** Restarts a lease's time; `ttl` 0: it no longer exists. */
  keepLeaseAlive(id: bigint): Promise<EtcdLease> {
    return this.#call(METHOD.leaseKeepAlive, leaseRequest(id), readLease);
  }

  /**
   * Opens a watch stream. etcd ends it when its member has lost the leader, so that another member
   * is used.
   */
  async watch(call: WatchCall): Promise<GrpcStream> {
    const connection = await this.#connected();
    const metadata = { ...(await this.#credentials(connection)), hasleader: 'true' };
    const { authority } = connection;
    return connection.call(METHOD.watch, metadata, {
      onMessage: (message) => call.onMessage(message),
      onEnd: (failure) => call.onEnd(failure === null ? null : callFailure(failure, authority)),
    });
  }

  /** The next call goes to the next endpoint: this one's answers are of no use. */
  moveOn(failure: EtcdFailure): void {
    if (failure.kind === 'token') this.#token = null;
    const connection = this.#connection;
    this.#connection = null;
    this.#made = null;
    this.#index = (this.#index + 1) % this.#parts.endpoints.length;
    connection?.then(
      (found) => found.close(new GrpcFailure('unavailable', failure.message)),
      () => undefined,
    );
  }

  close(): void {
    this.#closed = true;
    this.#closing.abort();
    this.moveOn(new EtcdFailure('unavailable', 'the client was closed'));
  }

  /**
   * One request and its reply, retried at each endpoint while members are unavailable, and with a
   * new token.
   */
  async #call<T>(method: string, request: Buffer, read: (reply: Buffer) => T): Promise<T> {
    try {
      return await this.#tried(method, request, read);
    } finally {
      this.#wakeNext();
    }
  }

  async #tried<T>(method: string, request: Buffer, read: (reply: Buffer) => T): Promise<T> {
    const { clock, endpoints } = this.#parts;
    const until = clock.now() + CALL_MS;
    let tries = endpoints.length;
    let tokens = 1;
    for (;;) {
      // All endpoints have been tried when this fails.
      const connection = await this.#connected();
      try {
        const metadata = await this.#credentials(connection);
        // A server refuses calls beyond those that it takes at a time, as if it were going away:
        // they wait here.
        if (connection.open && connection.room <= 0) await this.#turn(until, connection);
        else return await this.#exchange(connection, method, metadata, request, read);
      } catch (error) {
        if (!(error instanceof EtcdFailure) || this.#closed) throw error;
        const { kind } = error;
        if (kind === 'token' && tokens-- > 0) this.#token = null;
        else if (kind === 'unavailable' || kind === 'silent') {
          // Another call may have replaced the connection already: calls over the new one continue.
          if (connection === this.#made) this.moveOn(error);
          if (--tries <= 0) throw error;
        } else throw error;
      }
    }
  }

  /** Waits until a call has ended. @throws EtcdFailure when the time is up */
  async #turn(until: number, { authority }: GrpcConnection): Promise<void> {
    const { clock } = this.#parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = clock.after(Math.max(0, until - clock.now()), resolve);
    this.#waiting.add(resolve);
    await promise;
    timer.cancel();
    this.#waiting.delete(resolve);
    if (clock.now() >= until)
      throw new EtcdFailure('refused', `${authority}: too many calls wait for replies`);
  }

  #wakeNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }

  #exchange<T>(
    connection: GrpcConnection,
    method: string,
    metadata: Readonly<Record<string, string>>,
    request: Buffer,
    read: (reply: Buffer) => T,
  ): Promise<T> {
    const { clock } = this.#parts;
    const { authority } = connection;
    return new Promise((resolve, reject) => {
      let reply: { readonly value: T } | null = null;
      let broken: EtcdFailure | null = null;
      const stream = connection.call(method, metadata, {
        onMessage: (message) => {
          try {
            reply ??= { value: read(message) };
          } catch (error) {
            if (!(error instanceof MessageError)) throw error;
            broken = new EtcdFailure('malformed', `${authority}: ${error.message}`);
          }
        },
        onEnd: (failure) => {
          timer.cancel();
          const end = failure === null ? broken : callFailure(failure, authority);
          if (end !== null) reject(end);
          else if (reply !== null) resolve(reply.value);
          else reject(new EtcdFailure('malformed', `${authority}: the reply is empty`));
        },
      });
      const timer = clock.after(CALL_MS, () => {
        stream.cancel();
        const text = `${authority}: no reply in ${printSpan(CALL_MS)}`;
        reject(new EtcdFailure('silent', text));
      });
      stream.write(request, true);
    });
  }

  /** The token of the user's log-in, got once; without credentials nothing. */
  async #credentials(connection: GrpcConnection): Promise<Readonly<Record<string, string>>> {
    const { credentials } = this.#parts;
    if (credentials === null) return {};
    if (this.#token === null) {
      const request = authenticateRequest(credentials.user, credentials.password);
      try {
        this.#token = await this.#exchange(connection, METHOD.authenticate, {}, request, readToken);
      } catch (error) {
        // A cluster without authentication accepts every client.
        if (!(error instanceof EtcdFailure) || !error.message.includes('is not enabled'))
          throw error;
        this.#token = '';
      }
    }
    return this.#token === '' ? {} : { token: this.#token };
  }

  #connected(): Promise<GrpcConnection> {
    if (this.#closed)
      return Promise.reject(new EtcdFailure('unavailable', 'the client was closed'));
    const known = this.#connection;
    if (known !== null && (this.#made === null || this.#made.open)) return known;
    const connection = this.#connect();
    this.#connection = connection;
    this.#made = null;
    connection.then(
      (made) => {
        if (this.#connection === connection) this.#made = made;
      },
      () => {
        if (this.#connection === connection) this.#connection = null;
      },
    );
    return connection;
  }

  /** Connects to the current endpoint, or the first of the others that takes it. */
  async #connect(): Promise<GrpcConnection> {
    const { endpoints } = this.#parts;
    const failures: EtcdFailure[] = [];
    for (let tried = 0; tried < endpoints.length; tried++) {
      try {
        return await this.#connectTo(endpoints[this.#index]!);
      } catch (error) {
        if (!(error instanceof EtcdFailure)) throw error;
        failures.push(error);
        this.#index = (this.#index + 1) % endpoints.length;
        if (this.#closed) break;
      }
    }
    throw allOf(failures);
  }

  async #connectTo(endpoint: EtcdEndpoint): Promise<GrpcConnection> {
    const { clock, tls, messageMax = MESSAGE_MAX } = this.#parts;
    const giveUp = new AbortController();
    const stop = (): void => giveUp.abort();
    const timer = clock.after(DIAL_MS, stop);
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    try {
      const socket = await (this.#parts.dial ?? dial)(endpoint, tls, giveUp.signal);
      return new GrpcConnection({
        socket,
        secure: isSecure(endpoint, tls),
        authority: endpoint.socket === null ? printEndpoint(endpoint) : 'localhost',
        clock,
        messageMax,
      });
    } finally {
      timer.cancel();
      this.#closing.signal.removeEventListener('abort', stop);
    }
  }
}

/**
 * The error when no endpoint could be connected to: the kind of the first one, and the names of
 * all.
 */
function allOf(failures: readonly EtcdFailure[]): EtcdFailure {
  const [first, ...others] = failures;
  if (first === undefined) return new EtcdFailure('unavailable', 'there is no endpoint');
  if (others.length === 0) return first;
  const text = failures.map(({ message }) => message).join('; ');
  const advice = failures.find((each) => each.advice !== '')?.advice;
  return new EtcdFailure(first.kind, text, advice, first.cause);
}

/** Copies into memory that is not shared. */
function ownCopy(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

function ignore(): true {
  return true;
}
