import { connect as connectTcp, type Socket } from 'node:net';
import { whyFailed } from '../base/why-failed.ts';
import { builtins } from '../base/builtins.ts';
import { printHostPort } from '../base/ip.ts';
import { FILE_MAX, readFileBytes } from '../base/read-file.ts';
import { connectionFailure, EtcdFailure } from './etcd-failure.ts';

/** The client address of a cluster member. */
export interface EtcdEndpoint {
  /** A host name, or an address without brackets. Empty if there is a `socket`. */
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket, or null. */
  readonly socket: string | null;
  /** If null, this depends on whether `tls` is given. */
  readonly secure: boolean | null;
}

/**
 * Files for a TLS client, which are empty if not given. They are read for every connection, so a renewed certificate
 * does not require a reload.
 */
export interface EtcdTlsFiles {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

const PORT = 2379;

/** Parses `http://HOST:PORT`, `https://…`, `HOST:PORT` or `unix:///PATH`. Returns null for any other text. */
export function parseEndpoint(text: string): EtcdEndpoint | null {
  const unix = /^(unixs?):(?:\/\/)?(.+)$/.exec(text);
  if (unix !== null) return { host: '', port: 0, socket: unix[2]!, secure: unix[1] === 'unixs' };
  const parts = /^(?:(https?):\/\/)?(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+))(?::(\d{1,5}))?\/?$/.exec(
    text,
  );
  if (parts === null) return null;
  const [, scheme, bracketed, plain, digits] = parts;
  const port = digits === undefined ? PORT : Number(digits);
  if (port < 1 || port > 65_535) return null;
  const secure = scheme === undefined ? null : scheme === 'https';
  return { host: bracketed ?? plain!, port, socket: null, secure };
}

/** Formats an endpoint for messages, and for the `:authority` of requests. */
export function printEndpoint({ host, port, socket }: EtcdEndpoint): string {
  return socket === null ? printHostPort(host, port) : `unix:${socket}`;
}

/**
 * Connects a socket and completes the TLS handshake. Stops when `signal` fires.
 * @throws EtcdFailure
 */
export function dial(
  endpoint: EtcdEndpoint,
  tls: EtcdTlsFiles | null,
  signal: AbortSignal,
): Promise<Socket> {
  const where = printEndpoint(endpoint);
  return new Promise((resolve, reject) => {
    const secure = isSecure(endpoint, tls);
    let socket: Socket;
    try {
      socket = open(endpoint, secure ? (tls ?? noFiles) : null);
    } catch (error) {
      reject(tlsFailure(error, where));
      return;
    }
    const done = (failure: EtcdFailure | null): void => {
      signal.removeEventListener('abort', aborted);
      socket.removeAllListeners();
      // An error on an abandoned socket does not matter, but would end the process if there were no listener.
      socket.on('error', () => undefined);
      if (failure === null) return resolve(socket);
      socket.destroy();
      reject(failure);
    };
    const aborted = (): void =>
      done(new EtcdFailure('unavailable', `${where}: the connection timed out`));
    signal.addEventListener('abort', aborted, { once: true });
    socket.once(secure ? 'secureConnect' : 'connect', () => done(null));
    socket.once('error', (error) => done(connectionFailure(error, where)));
    socket.once('close', () =>
      done(new EtcdFailure('unavailable', `${where}: the connection was closed`)),
    );
  });
}

/** Returns true if the endpoint uses TLS. */
export function isSecure({ secure }: EtcdEndpoint, tls: EtcdTlsFiles | null): boolean {
  return secure ?? tls !== null;
}

const noFiles: EtcdTlsFiles = { certificate: '', key: '', authority: '' };

function open({ host, port, socket }: EtcdEndpoint, tls: EtcdTlsFiles | null): Socket {
  const to = socket === null ? { host, port } : { path: socket };
  if (tls === null) return connectTcp({ ...to, noDelay: true });
  const { certificate, key, authority } = tls;
  return builtins.tls().connect({
    ...to,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2'],
    ...(/^[\d.]+$|:/.test(host) || host === '' ? {} : { servername: host }),
    ...(authority === '' ? {} : { ca: read(authority) }),
    ...(certificate === '' ? {} : { cert: read(certificate), key: read(key) }),
  });
}

function read(file: string): Buffer {
  try {
    return readFileBytes(file, FILE_MAX.small);
  } catch (error) {
    throw new Error(`cannot read ${file}: ${whyFailed(error)}`, { cause: error });
  }
}

function tlsFailure(error: unknown, where: string): EtcdFailure {
  const advice =
    'check the `tls` files (CERT KEY CA): all must be PEM, and the key must match the certificate';
  return new EtcdFailure('tls', `${where}: ${whyFailed(error)}`, advice, error);
}
