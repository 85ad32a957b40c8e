import { asObject, child, children, text, type JsonObject } from '../../base/json-object.ts';
import { whyFailed } from '../../base/why-failed.ts';

/** The reason why the API server did not answer as expected. It determines what to do next. */
export type FailureKind =
  /** No connection, or it broke. */
  | 'network'
  /** The connection is open, but nothing arrives. */
  | 'silent'
  /** The server's certificate is invalid, or the server does not use TLS. */
  | 'tls'
  /** Credentials could not be obtained. */
  | 'credentials'
  /** 401. */
  | 'unauthorized'
  /** 403. */
  | 'forbidden'
  /** 404: the server does not support this kind. */
  | 'missing'
  /** 410: the requested version is too old. */
  | 'gone'
  /** The server has not reached the requested version yet. */
  | 'future'
  /** 400 or 422: the server does not understand the request. */
  | 'invalid'
  /** 429. */
  | 'throttled'
  /** 5xx and all other codes. */
  | 'server'
  /** The answer is not a list or watch. */
  | 'malformed'
  /** The answer exceeds the memory limit. */
  | 'large';

/**
 * A failed exchange with the API server. `message` describes the failure and `advice` the fix, which is `''` if there
 * is nothing to do but wait.
 */
export class ApiFailure extends Error {
  readonly kind: FailureKind;
  readonly advice: string;
  /** HTTP status; 0 if there was none. */
  readonly status: number;
  /**
   * The reason given by the API server (`Forbidden`). Empty if the answer came from a server to which it forwarded the
   * request.
   */
  readonly reason: string;
  /** The wait requested by the server; null: none. */
  readonly retryAfterMs: number | null;

  constructor(parts: {
    kind: FailureKind;
    text: string;
    advice?: string;
    status?: number;
    reason?: string;
    retryAfterMs?: number | null;
    cause?: unknown;
  }) {
    super(parts.text, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'ApiFailure';
    this.kind = parts.kind;
    this.advice = parts.advice ?? '';
    this.status = parts.status ?? 0;
    this.reason = parts.reason ?? '';
    this.retryAfterMs = parts.retryAfterMs ?? null;
  }
}

/** Creates a failure below the HTTP level, in the name lookup, the connection or TLS. */
export function connectionFailure(error: unknown, host: string): ApiFailure {
  const code = text(asObject(error), 'code');
  const detail = whyFailed(error);
  const tls = tlsAdvice(code, detail);
  if (tls !== null) {
    return new ApiFailure({
      kind: 'tls',
      text: `no trusted TLS connection to the API server at ${host}: ${detail}`,
      advice: tls,
      cause: error,
    });
  }
  const known = network[code];
  return new ApiFailure({
    kind: 'network',
    text:
      known === undefined
        ? `the connection to the API server at ${host} failed: ${detail}`
        : known.text(host),
    advice: known?.advice ?? '',
    cause: error,
  });
}

interface NetworkFailure {
  readonly text: (host: string) => string;
  readonly advice: string;
}

const unresolved: NetworkFailure = {
  text: (host) => `the API server's name ${host} could not be resolved`,
  advice: 'use its address, or check the name servers of this machine',
};
const unrouted: NetworkFailure = {
  text: (host) => `there is no route to the API server at ${host}`,
  advice: 'check the network of this node or pod',
};
const dropped: NetworkFailure = {
  text: (host) => `the API server at ${host} dropped the connection`,
  advice: '',
};

const network: Readonly<Record<string, NetworkFailure>> = {
  ECONNREFUSED: {
    text: (host) => `nothing listens at the API server's address ${host}`,
    advice:
      'check that the API server runs there and that the address is correct; if it is a Service address, kube-proxy has no endpoint for it',
  },
  ENOTFOUND: unresolved,
  EAI_AGAIN: unresolved,
  EHOSTUNREACH: unrouted,
  ENETUNREACH: unrouted,
  ETIMEDOUT: {
    text: (host) => `the API server at ${host} does not answer`,
    advice: 'check whether a network policy or a firewall blocks the path',
  },
  ECONNRESET: dropped,
  EPIPE: dropped,
};

function tlsAdvice(code: string, detail: string): string | null {
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return "renew the API server's certificate, and check this machine's clock";
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return "use an address in the API server's certificate, or set tls-server-name in the kubeconfig";
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return "give the cluster's CA certificate (third argument of tls, or certificate-authority in the kubeconfig)";
  }
  if (detail.includes('does not use TLS'))
    return 'the port uses plain HTTP, so use http:// in the URL';
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code === 'EPROTO') {
    return 'check the connection’s certificate, key and CA';
  }
  return null;
}

/**
 * Creates a failure for a status other than 200, or for an ERROR event in a watch (whose object is the same Status).
 * `task` begins with the verb and the resource: `list services`, `update secrets NAME`.
 */
export function statusFailure(parts: {
  status: number;
  /** The Status object sent by the server, if there was one. */
  body: unknown;
  task: string;
  retryAfterMs: number | null;
}): ApiFailure {
  const { status, task } = parts;
  const body = asObject(parts.body);
  const reason = text(body, 'reason');
  const message = text(body, 'message');
  const seconds = child(body, 'details')['retryAfterSeconds'];
  const retryAfterMs = parts.retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : null);
  const kind = isTooLarge(message, body) ? 'future' : kindOf(status, reason);
  return new ApiFailure({
    kind,
    status,
    reason,
    retryAfterMs,
    text: `the API server answered ${status}${reason === '' ? '' : ` ${reason}`} to "${task}"${message === '' ? '' : `: ${message}`}`,
    advice: kind === 'missing' && isNamed(body) ? '' : adviceFor(kind, task),
  });
}

/** Returns true if a 404 means that an object does not exist. Otherwise, it means that the kind is not served. */
function isNamed(body: JsonObject): boolean {
  return text(child(body, 'details'), 'name') !== '';
}

/**
 * Returns true if the requested version is in the future. Servers report this as a cause in the Status, or before 1.17
 * only in its message.
 */
function isTooLarge(message: string, body: JsonObject): boolean {
  const causes = children(child(body, 'details'), 'causes');
  return (
    causes.some((cause) => text(cause, 'reason') === 'ResourceVersionTooLarge') ||
    message.startsWith('Too large resource version')
  );
}

function kindOf(status: number, reason: string): FailureKind {
  if (status === 410 || reason === 'Expired' || reason === 'Gone') return 'gone';
  switch (status) {
    case 400:
    case 422:
      return 'invalid';
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'missing';
    case 429:
      return 'throttled';
    default:
      return 'server';
  }
}

function adviceFor(kind: FailureKind, task: string): string {
  switch (kind) {
    case 'unauthorized':
      return 'the token or client certificate is not accepted and may have expired';
    case 'forbidden': {
      const [verb = '', resource = ''] = task.split(' ');
      // Permission to list is of no use here without permission to watch, so mention both.
      const lists = verb === 'list' || verb === 'watch';
      const rights = lists ? 'list and watch' : verb;
      const where = lists ? ' --all-namespaces' : '';
      return `its ClusterRole must allow ${rights} on ${resource}; see kubectl auth can-i ${verb} ${resource}${where}`;
    }
    case 'missing':
      return 'the server does not serve this kind of object';
    default:
      return '';
  }
}
