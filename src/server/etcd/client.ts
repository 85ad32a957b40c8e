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

/** A cluster, and how to access it. */
export interface EtcdAccess {
  /** At least one endpoint. They are tried in order, and the first one that works stays in use. */
  readonly endpoints: readonly EtcdEndpoint[];
  /**
   * Null if there are none, in which case the certificates of `https://` endpoints are verified with the system's CAs.
   */
  readonly tls: EtcdTlsFiles | null;
  readonly credentials: { readonly user: string; readonly password: string } | null;
}

/** The parts of a client: the cluster, and the client's access to the network and time. */
export interface EtcdClientParts extends EtcdAccess {
  readonly clock: Clock;
  /** Maximum size of a reply in bytes, 8 MiB by default. */
  readonly messageMax?: number;
  /** Connects to an endpoint; replaced in tests. */
  readonly dial?: typeof dial;
}

/** A watch's events. */
export interface WatchCall {
  /** Called with one complete message, which is valid only during the call. */
  onMessage(message: Buffer): void;
  /** The last event, or null if etcd ended the stream without a failure. */
  onEnd(failure: EtcdFailure | null): void;
}

/** Maximum size in bytes of a message from etcd; keys are read in smaller pages. */
const MESSAGE_MAX = 8 * 1024 * 1024;
/** Milliseconds after which an endpoint that has not connected is skipped. */
const DIAL_MS = 2000;
/** The same as in CoreDNS. */
const CALL_MS = 5000;

/**
 * A client for etcd's v3 API. It has one connection at a time, to the first endpoint that accepts it. If the connection
 * breaks, or the member reports that it cannot serve, the next endpoint is used. Every call either returns its reply or
 * throws an `EtcdFailure`.
 */
export class EtcdClient {
  readonly #parts: EtcdClientParts;
  #connection: Promise<GrpcConnection> | null = null;
  /** The same connection, once established. */
  #made: GrpcConnection | null = null;
  /** Index of the endpoint in use or, if there is none, of the next one to try. */
  #index = 0;
  #token: string | null = null;
  #closed = false;
  /** Calls that wait until the server accepts more. Each call that ends starts the next one. */
  readonly #waiting = new Set<() => void>();
  readonly #closing = new AbortController();

  constructor(parts: EtcdClientParts) {
    this.#parts = parts;
  }

  /** Reads the keys in a range. Once the caller has finished with them, it may release `bytes`. */
  range(request: RangeRequest): Promise<RangeResponse> {
    // The received bytes are valid only during the call, and their memory is reused before the keys are read.
    const read = (reply: Buffer): RangeResponse => readRange(ownCopy(reply), request.limit);
    return this.#call(METHOD.range, rangeRequest(request), read);
  }

  /** @param lease 0n if there is none */
  async put(key: Buffer, value: Buffer, lease = 0n): Promise<void> {
    await this.#call(METHOD.put, putRequest(key, value, lease), ignore);
  }

  /** Deletes a range and returns the number of keys deleted. */
  delete(range: KeyRange): Promise<number> {
    return this.#call(METHOD.deleteRange, deleteRequest(range), readDeleted);
  }

  /** Grants a lease that lasts `seconds` unless it is kept alive. */
  grantLease(seconds: number): Promise<EtcdLease> {
    return this.#call(METHOD.leaseGrant, leaseGrantRequest(seconds), readLease);
  }

  /** Returns a lease's remaining time. */
  lease(id: bigint): Promise<EtcdLease> {
    return this.#call(METHOD.leaseTimeToLive, leaseRequest(id), readLease);
  }

  /** Restarts a lease's time. `ttl` is 0 if the lease no longer exists. */
  keepLeaseAlive(id: bigint): Promise<EtcdLease> {
    return this.#call(METHOD.leaseKeepAlive, leaseRequest(id), readLease);
  }

  /**
   * Opens a watch stream. If its member has lost the leader, etcd ends the stream, so that a different member is used.
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

  /** Makes the next call use the next endpoint, because the answers from this one are useless. */
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
   * Sends a request and returns its reply. Tries again at each endpoint while members are unavailable, and with a new
   * token.
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
      // If this fails, all endpoints have been tried.
      const connection = await this.#connected();
      try {
        const metadata = await this.#credentials(connection);
        // A server refuses calls beyond its concurrency limit as if it were shutting down, so they wait here.
        if (connection.open && connection.room <= 0) await this.#turn(until, connection);
        else return await this.#exchange(connection, method, metadata, request, read);
      } catch (error) {
        if (!(error instanceof EtcdFailure) || this.#closed) throw error;
        const { kind } = error;
        if (kind === 'token' && tokens-- > 0) this.#token = null;
        else if (kind === 'unavailable' || kind === 'silent') {
          // Another call may have replaced the connection already, in which case calls on the new one continue.
          if (connection === this.#made) this.moveOn(error);
          if (--tries <= 0) throw error;
        } else throw error;
      }
    }
  }

  /**
   * Waits until a call has ended.
   * @throws EtcdFailure on timeout
   */
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

  /** Returns the token from the user's login, which is requested only once, or nothing if there are no credentials. */
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

  /** Connects to the current endpoint or, failing that, to the first of the others that accepts the connection. */
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
 * Creates the error for when no endpoint could be reached. Its kind is that of the first failure, and it names all
 * endpoints.
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
