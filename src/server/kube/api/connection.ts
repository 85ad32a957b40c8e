import { whyFailed } from '../../base/why-failed.ts';
import { bracketed } from '../../base/ip.ts';
import { join } from 'node:path';
import { FILE_MAX, readFileBytes, readFileText } from '../../base/read-file.ts';
import { systemClock, type Clock } from '../../base/clock.ts';
import { Problem } from '../../base/problem.ts';
import { ExecCredentials } from './exec-credential.ts';
import { ApiFailure } from './failure.ts';
import {
  readKubeconfig,
  type ActingAs,
  type KubeconfigContext,
  type KubeconfigUser,
  type Pem,
} from './kubeconfig.ts';
import { OidcToken } from './oidc-token.ts';

/**
 * Address and credentials for one API server. Credentials are loaded for each request, so their rotation needs no
 * special handling.
 */
export interface ApiConnection {
  /** The base URL. If it has a path, that path precedes every API path. */
  readonly url: URL;
  /** True if the URL contains the address of the Service `default/kubernetes`. */
  readonly isService?: boolean;
  /** Loads the credentials for the next request. Rejects with an `ApiFailure` of kind `credentials`. */
  access(): Access | Promise<Access>;
  /** Called when the server has rejected the latest credentials, so that cached ones are dropped. */
  refused(): void;
}

/** A request's credentials. */
export interface Access {
  /** A value that is a list becomes one header line per entry. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Null for plain HTTP. The same object is returned while nothing changes, so that connections can be reused. */
  readonly tls: TlsMaterial | null;
}

/** TLS material in the form accepted by `node:tls`. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** The directory where the kubelet mounts a pod's token, CA and namespace. */
export const serviceAccountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Connects as the pod's service account. The token and the CA are read for every request, because the kubelet replaces
 * the token about once an hour. Throws a `Problem` if this process does not run in a pod.
 */
export function inClusterConnection(
  parts: {
    readonly environment?: Readonly<Record<string, string | undefined>>;
    readonly directory?: string;
  } = {},
): ApiConnection {
  const environment = parts.environment ?? process.env;
  const directory = parts.directory ?? serviceAccountDirectory;
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    throw new Problem({
      code: 'not-in-cluster',
      text: 'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
      hint: 'this process does not seem to run in a pod',
      remedy: 'outside a cluster, set the source: endpoint URL, kubeconfig FILE, or manifests DIR',
    });
  }
  const tokenFile = join(directory, 'token');
  const caFile = join(directory, 'ca.crt');
  for (const file of [tokenFile, caFile]) {
    requireFile(
      file,
      'give the pod a service account (automountServiceAccountToken must not be false)',
    );
  }
  const keep = keepMaterial();
  return {
    url: new URL(`https://${bracketed(host)}:${port}`),
    isService: true,
    access: () => ({
      headers: bearer(readCredential(tokenFile)),
      tls: keep({ ca: readCredential(caFile) }),
    }),
    refused() {},
  };
}

/**
 * Connects to a URL, with a client certificate if `tls` names its files. A URL without a scheme means https if there is
 * a certificate, and otherwise http. Throws a `Problem` if the URL is invalid or a file is unreadable.
 */
export function endpointConnection(
  url: string,
  tls: { readonly cert: string; readonly key: string; readonly ca: string } | null = null,
): ApiConnection {
  const base = parseUrl(url, tls === null ? 'http' : 'https');
  if (tls !== null) {
    for (const file of [tls.cert, tls.key, tls.ca]) {
      requireFile(file, 'tls needs three files: certificate, key and CA');
    }
  }
  const keep = keepMaterial();
  return {
    url: base,
    access() {
      if (base.protocol === 'http:') return { headers: {}, tls: null };
      if (tls === null) return { headers: {}, tls: keep({}) };
      return {
        headers: {},
        tls: keep({
          cert: readCredential(tls.cert),
          key: readCredential(tls.key),
          ca: readCredential(tls.ca),
        }),
      };
    },
    refused() {},
  };
}

/**
 * Connects using a context in a kubeconfig file, by default the current one. The file is read once, but the
 * certificates and tokens it refers to are read for every request. Throws a `Problem`.
 */
export function kubeconfigConnection(
  file: string,
  context?: string,
  clock: Clock = systemClock,
): ApiConnection {
  return contextConnection(readKubeconfig(file, context), clock);
}

/** Connects using a parsed context. Throws a `Problem` if its server is not a URL. */
export function contextConnection(found: KubeconfigContext, clock: Clock): ApiConnection {
  const url = parseUrl(found.server, 'https');
  const keep = keepMaterial();
  const identity = identityOf(found.user, clock);
  const impersonation = found.actingAs === null ? {} : impersonating(found.actingAs);
  return {
    url,
    async access() {
      const { headers: own, cert, key } = await identity.get();
      const headers = { ...own, ...impersonation };
      if (url.protocol === 'http:') return { headers, tls: null };
      return {
        headers,
        tls: keep({
          ...(found.ca === null ? {} : { ca: readPem(found.ca) }),
          ...(cert === undefined ? {} : { cert }),
          ...(key === undefined ? {} : { key }),
          ...(found.tlsServerName === '' ? {} : { servername: found.tlsServerName }),
          ...(found.insecure ? { rejectUnauthorized: false } : {}),
        }),
      };
    },
    refused: () => identity.forget(),
  };
}

function impersonating({ user, uid, groups }: ActingAs): Access['headers'] {
  return {
    'impersonate-user': user,
    ...(uid === '' ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
  };
}

interface ApiIdentity {
  get(): Promise<{
    readonly headers: Readonly<Record<string, string>>;
    readonly cert?: string;
    readonly key?: string;
  }>;
  forget(): void;
}

function identityOf(user: KubeconfigUser, clock: Clock): ApiIdentity {
  const forget = (): void => {};
  switch (user.how) {
    case 'nobody':
      return { get: async () => ({ headers: {} }), forget };
    case 'token':
      return { get: async () => ({ headers: bearer(user.token) }), forget };
    case 'token-file':
      return { get: async () => ({ headers: bearer(readCredential(user.path)) }), forget };
    case 'password': {
      const pair = Buffer.from(`${user.name}:${user.password}`).toString('base64');
      return { get: async () => ({ headers: { authorization: `Basic ${pair}` } }), forget };
    }
    case 'certificate':
      return {
        get: async () => ({ headers: {}, cert: readPem(user.cert), key: readPem(user.key) }),
        forget,
      };
    case 'exec': {
      const credentials = new ExecCredentials(user.exec, clock);
      return {
        async get() {
          const { token, cert, key } = await credentials.get();
          return {
            headers: token === '' ? {} : bearer(token),
            ...(cert === '' ? {} : { cert, key }),
          };
        },
        forget: () => credentials.forget(),
      };
    }
    case 'oidc': {
      const { ca } = user.oidc;
      const token = new OidcToken(user.oidc, clock, () => (ca === null ? undefined : readPem(ca)));
      return {
        get: async () => ({ headers: bearer(await token.get()) }),
        forget: () => token.forget(),
      };
    }
  }
}

function readPem(pem: Pem): string {
  return pem.from === 'data' ? pem.text : readCredential(pem.path);
}

function parseUrl(url: string, scheme: 'http' | 'https'): URL {
  // If it has no scheme, it must be HOST:PORT, and a path is not allowed.
  const whole = /^\w+:\/\//.test(url) || url.includes('/') ? url : `${scheme}://${url}`;
  // The runtime is more lenient than Kubernetes clients. It would read `http:///etc` as the host `etc`, and `\` as `/`.
  const parsed = /^https?:\/\/[\w[][^\\]*$/i.test(whole) ? URL.parse(whole) : null;
  if (parsed === null || /[{}`]/.test(parsed.hostname)) {
    throw new Problem({
      code: 'bad-endpoint',
      text: `'${url}' is not an API server URL`,
      remedy: 'write it like https://10.0.0.1:6443',
    });
  }
  return parsed;
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** Wraps a function so that it returns its previous result as long as the contents are the same. */
function keepMaterial(): (next: TlsMaterial) => TlsMaterial {
  let last: TlsMaterial | null = null;
  let lastText = '';
  return (next) => {
    const nextText = JSON.stringify(next);
    if (last === null || nextText !== lastText) {
      last = next;
      lastText = nextText;
    }
    return last;
  };
}

/** Reads a credential file now and trims its contents. Throws an `ApiFailure` of kind `credentials`. */
function readCredential(file: string): string {
  let content: string;
  try {
    content = readFileText(file, FILE_MAX.small).trim();
  } catch (error) {
    throw new ApiFailure({
      kind: 'credentials',
      text: `cannot read ${file}: ${whyFailed(error)}`,
      cause: error,
    });
  }
  if (content === '') throw new ApiFailure({ kind: 'credentials', text: `${file} is empty` });
  return content;
}

/** Throws a `Problem` if the file is unreadable at startup. */
function requireFile(file: string, remedy: string): void {
  try {
    readFileBytes(file, FILE_MAX.small);
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `cannot read ${file}: ${whyFailed(error)}`,
      remedy,
      cause: error,
    });
  }
}
