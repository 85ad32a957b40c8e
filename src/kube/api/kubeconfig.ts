import { dirname, isAbsolute, resolve } from 'node:path';
import { FILE_MAX, readFileBytes, readFileText } from '../../base/read-file.ts';
import { nearest, Problem } from '../../base/problem.ts';
import { asRaw, child, children, isRaw, list, text, texts, textMap, type Raw } from './raw.ts';
import { parseYaml, type YamlDocument } from '../manifests/yaml-document.ts';

/** One context of a kubeconfig file: where to go, and as whom. Paths are absolute. */
export interface KubeconfigContext {
  readonly name: string;
  readonly server: string;
  readonly tlsServerName: string;
  readonly insecure: boolean;
  /** PEM text or the file that holds it; null = the system's CAs. */
  readonly ca: Pem | null;
  readonly user: KubeconfigUser;
}

export type Pem =
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'data'; readonly text: string };

export type KubeconfigUser =
  | { readonly how: 'nobody' }
  | { readonly how: 'token'; readonly token: string }
  | { readonly how: 'token-file'; readonly path: string }
  | { readonly how: 'password'; readonly name: string; readonly password: string }
  | { readonly how: 'certificate'; readonly cert: Pem; readonly key: Pem }
  | { readonly how: 'exec'; readonly exec: ExecSettings }
  | { readonly how: 'oidc'; readonly oidc: OidcSettings };

export interface ExecSettings {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly installHint: string;
  /** Goes to the command if it asks for it (`provideClusterInfo`); else null. */
  readonly cluster: Raw | null;
}

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly idToken: string;
  readonly refreshToken: string;
  readonly ca: Pem | null;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/** Reads one context of a kubeconfig file, by default its current one. Throws a `Problem` that says where and why not. */
export function readKubeconfig(file: string, context?: string): KubeconfigContext {
  let content: string;
  try {
    content = readFileText(file, FILE_MAX.small);
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `cannot read the kubeconfig ${file}: ${(error as Error).message}`,
      cause: error,
    });
  }
  const { documents, problems } = parseYaml(content, file);
  const fault = problems[0];
  if (fault !== undefined) throw fault;
  const document = documents[0];
  if (document === undefined || !isRaw(document.value)) {
    throw new Problem({ code: 'kubeconfig', text: `${file} is no kubeconfig: it is empty` });
  }
  return new Reader(file, document, document.value).context(context);
}

class Reader {
  readonly #file: string;
  readonly #document: YamlDocument;
  readonly #raw: Raw;

  constructor(file: string, document: YamlDocument, raw: Raw) {
    this.#file = file;
    this.#document = document;
    this.#raw = raw;
  }

  context(wanted: string | undefined): KubeconfigContext {
    const name = wanted ?? text(this.#raw, 'current-context');
    if (name === '') {
      throw this.#problem(
        ['current-context'],
        'the kubeconfig has no current-context',
        this.#known('contexts'),
        'name one after the file: kubeconfig FILE CONTEXT, or run kubectl config use-context',
      );
    }
    const context = this.#entry('contexts', 'context', name);
    const clusterName = text(context.raw, 'cluster');
    const cluster = this.#entry('clusters', 'cluster', clusterName);
    const server = text(cluster.raw, 'server');
    if (server === '') {
      throw this.#problem(cluster.path, `cluster '${clusterName}' has no server`);
    }
    if (text(cluster.raw, 'proxy-url') !== '') {
      throw this.#problem(
        [...cluster.path, 'proxy-url'],
        'connections through a proxy (proxy-url) are not supported',
        null,
        'reach the API server directly, or through kubectl proxy and endpoint',
      );
    }
    const userName = text(context.raw, 'user');
    const ca = this.#pem(cluster.raw, cluster.path, 'certificate-authority');
    return {
      name,
      server,
      tlsServerName: text(cluster.raw, 'tls-server-name'),
      insecure: cluster.raw['insecure-skip-tls-verify'] === true,
      ca,
      user: userName === '' ? { how: 'nobody' } : this.#user(userName, cluster.raw),
    };
  }

  #user(name: string, cluster: Raw): KubeconfigUser {
    const { raw, path } = this.#entry('users', 'user', name);
    for (const key of ['as', 'as-groups', 'as-uid']) {
      if (raw[key] === undefined) continue;
      throw this.#problem([...path, key], `acting as another user (${key}) is not supported`);
    }
    if (isRaw(raw['exec'])) {
      return { how: 'exec', exec: this.#exec(child(raw, 'exec'), [...path, 'exec'], cluster) };
    }
    if (isRaw(raw['auth-provider'])) {
      const provider = child(raw, 'auth-provider');
      if (text(provider, 'name') !== 'oidc') {
        throw this.#problem(
          [...path, 'auth-provider'],
          `the auth-provider '${text(provider, 'name')}' is no longer part of Kubernetes`,
          null,
          "use your provider's exec plugin (e.g. gke-gcloud-auth-plugin, kubelogin)",
        );
      }
      return { how: 'oidc', oidc: this.#oidc(provider, [...path, 'auth-provider', 'config']) };
    }
    // client-go's order: a token's file before the token, either before a certificate.
    const tokenFile = text(raw, 'tokenFile');
    if (tokenFile !== '') return { how: 'token-file', path: this.#resolve(tokenFile) };
    const token = text(raw, 'token');
    if (token !== '') return { how: 'token', token };
    const cert = this.#pem(raw, path, 'client-certificate');
    const key = this.#pem(raw, path, 'client-key');
    if (cert !== null && key !== null) return { how: 'certificate', cert, key };
    if (cert !== null || key !== null) {
      throw this.#problem(path, `user '${name}' has only one of client-certificate and client-key`);
    }
    const user = text(raw, 'username');
    if (user !== '') return { how: 'password', name: user, password: text(raw, 'password') };
    return { how: 'nobody' };
  }

  #exec(raw: Raw, path: readonly (string | number)[], cluster: Raw): ExecSettings {
    const apiVersion = text(raw, 'apiVersion');
    if (!execVersions.includes(apiVersion)) {
      throw this.#problem(
        [...path, 'apiVersion'],
        `exec plugins of version '${apiVersion}' are not supported`,
        null,
        `one of ${execVersions.join(', ')}: update the plugin, then its kubeconfig entry`,
      );
    }
    if (text(raw, 'interactiveMode') === 'Always') {
      throw this.#problem(
        [...path, 'interactiveMode'],
        `the exec plugin '${text(raw, 'command')}' wants to ask at a terminal, and a server has none`,
      );
    }
    const command = text(raw, 'command');
    if (command === '') throw this.#problem(path, 'the exec plugin has no command');
    const environment: Record<string, string> = {};
    for (const entry of children(raw, 'env'))
      environment[text(entry, 'name')] = text(entry, 'value');
    return {
      apiVersion,
      // A bare name is looked up in PATH; anything with a slash is relative to the file.
      command: command.includes('/') ? this.#resolve(command) : command,
      args: texts(raw, 'args'),
      environment,
      installHint: text(raw, 'installHint').trim(),
      cluster:
        raw['provideClusterInfo'] === true
          ? {
              server: text(cluster, 'server'),
              'tls-server-name': text(cluster, 'tls-server-name') || undefined,
              'insecure-skip-tls-verify': cluster['insecure-skip-tls-verify'] === true || undefined,
              'certificate-authority-data':
                text(cluster, 'certificate-authority-data') || undefined,
              config: execConfig(cluster),
            }
          : null,
    };
  }

  #oidc(provider: Raw, path: readonly (string | number)[]): OidcSettings {
    const config = textMap(provider, 'config');
    const issuer = config['idp-issuer-url'] ?? '';
    const idToken = config['id-token'] ?? '';
    const refreshToken = config['refresh-token'] ?? '';
    if (idToken === '' && refreshToken === '') {
      throw this.#problem(path, 'the oidc user has neither id-token nor refresh-token');
    }
    return {
      issuer,
      clientId: config['client-id'] ?? '',
      clientSecret: config['client-secret'] ?? '',
      idToken,
      refreshToken,
      ca: this.#pem(asRaw(config), path, 'idp-certificate-authority'),
    };
  }

  /** The named entry of one of the file's three lists. */
  #entry(
    where: 'contexts' | 'clusters' | 'users',
    key: string,
    name: string,
  ): { readonly raw: Raw; readonly path: readonly (string | number)[] } {
    const index = list(this.#raw, where).findIndex((entry) => text(asRaw(entry), 'name') === name);
    if (index < 0) {
      const known = children(this.#raw, where).map((entry) => text(entry, 'name'));
      const meant = nearest(name, known);
      throw this.#problem(
        [where],
        `the kubeconfig has no ${key} named '${name}'`,
        meant === null ? this.#known(where) : `did you mean '${meant}'?`,
      );
    }
    return { raw: child(asRaw(list(this.#raw, where)[index]), key), path: [where, index, key] };
  }

  #known(where: string): string {
    const names = children(this.#raw, where).map((entry) => text(entry, 'name'));
    return names.length === 0 ? `its ${where} are empty` : `it has: ${names.join(', ')}`;
  }

  /** `key-data` (base64) before `key` (a file), as client-go has it. */
  #pem(raw: Raw, path: readonly (string | number)[], key: string): Pem | null {
    const data = text(raw, `${key}-data`);
    if (data !== '') {
      const decoded = Buffer.from(data, 'base64').toString('utf8');
      if (!decoded.includes('-----BEGIN')) {
        throw this.#problem([...path, `${key}-data`], `${key}-data is no PEM text in base64`);
      }
      return { from: 'data', text: decoded };
    }
    const file = text(raw, key);
    if (file === '') return null;
    const resolved = this.#resolve(file);
    try {
      readFileBytes(resolved, FILE_MAX.small);
    } catch (error) {
      throw this.#problem([...path, key], `cannot read ${resolved}: ${(error as Error).message}`);
    }
    return { from: 'file', path: resolved };
  }

  #resolve(path: string): string {
    return isAbsolute(path) ? path : resolve(dirname(this.#file), path);
  }

  #problem(
    path: readonly (string | number)[],
    what: string,
    hint: string | null = null,
    remedy: string | null = null,
  ): Problem {
    return new Problem({
      code: 'kubeconfig',
      text: what,
      place: this.#document.place(path),
      hint: hint ?? undefined,
      remedy: remedy ?? undefined,
    });
  }
}

/** What a cluster's entry holds for the plugin alone. */
function execConfig(cluster: Raw): unknown {
  const extension = children(cluster, 'extensions').find(
    (entry) => text(entry, 'name') === 'client.authentication.k8s.io/exec',
  );
  return extension?.['extension'];
}
