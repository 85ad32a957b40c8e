import { dirname, isAbsolute, resolve } from 'node:path';
import {
  asObject,
  child,
  children,
  isObject,
  list,
  text,
  texts,
  type JsonObject,
} from '../../base/json-object.ts';
import { whyFailed } from '../../base/why-failed.ts';
import { FILE_MAX, readFileBytes, readFileText } from '../../base/read-file.ts';
import { nearest, Problem } from '../../base/problem.ts';
import { parseYaml, type DocumentPath, type YamlDocument } from '../manifests/yaml-document.ts';

/** One context from a kubeconfig file: a server and a user. All paths are absolute. */
export interface KubeconfigContext {
  readonly name: string;
  /** `''` if it specifies none. */
  readonly namespace: string;
  readonly server: string;
  readonly tlsServerName: string;
  readonly insecure: boolean;
  /** PEM text, or the file that contains it. Null means the system's CAs. */
  readonly ca: Pem | null;
  readonly user: KubeconfigUser;
  /** The user to impersonate; null: none. */
  readonly actingAs: ActingAs | null;
}

/** Impersonation: the server checks this user's rights instead of the caller's own. */
export interface ActingAs {
  readonly user: string;
  /** `''` if not given. */
  readonly uid: string;
  readonly groups: readonly string[];
}

/** Certificates or a key, either inline or in a separate file. */
export type Pem =
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'data'; readonly text: string };

/** Authentication of a user in a kubeconfig file. */
export type KubeconfigUser =
  | { readonly how: 'nobody' }
  | { readonly how: 'token'; readonly token: string }
  | { readonly how: 'token-file'; readonly path: string }
  | { readonly how: 'password'; readonly name: string; readonly password: string }
  | { readonly how: 'certificate'; readonly cert: Pem; readonly key: Pem }
  | { readonly how: 'exec'; readonly exec: ExecSettings }
  | { readonly how: 'oidc'; readonly oidc: OidcSettings };

/** An exec plugin, which supplies credentials (client.authentication.k8s.io). */
export interface ExecSettings {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly installHint: string;
  /** Passed to the plugin if it requests this (`provideClusterInfo`), otherwise null. */
  readonly cluster: JsonObject | null;
}

/** An OpenID Connect provider that renews tokens. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly idToken: string;
  readonly refreshToken: string;
  readonly ca: Pem | null;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/**
 * Reads one context, by default the current one, from one or more kubeconfig files, which are merged the way kubectl
 * does. If two entries have the same name, the first wins. Throws a `Problem` with the error and its position.
 */
export function readKubeconfig(
  files: string | readonly string[],
  context?: string,
): KubeconfigContext {
  return new KubeconfigReader([files].flat().map(readFile)).context(context);
}

interface ConfigFile {
  readonly path: string;
  readonly document: YamlDocument;
  readonly raw: JsonObject;
}

/** A value and its position. */
interface ConfigEntry {
  readonly file: ConfigFile;
  readonly raw: JsonObject;
  readonly path: DocumentPath;
}

function readFile(path: string): ConfigFile {
  let content: string;
  try {
    content = readFileText(path, FILE_MAX.small);
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `cannot read the kubeconfig ${path}: ${whyFailed(error)}`,
      cause: error,
    });
  }
  const { documents, problems } = parseYaml(content, path);
  const fault = problems[0];
  if (fault !== undefined) throw fault;
  const document = documents[0];
  if (document === undefined || !isObject(document.value)) {
    throw new Problem({ code: 'kubeconfig', text: `${path} is not a kubeconfig: it is empty` });
  }
  return { path, document, raw: document.value };
}

class KubeconfigReader {
  readonly #files: readonly ConfigFile[];

  constructor(files: readonly ConfigFile[]) {
    this.#files = files;
  }

  context(wanted: string | undefined): KubeconfigContext {
    const name =
      wanted ??
      this.#files.map(({ raw }) => text(raw, 'current-context')).find((each) => each !== '') ??
      '';
    if (name === '') {
      throw this.#problem(
        this.#place(['current-context']),
        'the kubeconfig has no current-context',
        this.#known('contexts'),
        'specify one after the file (kubeconfig FILE CONTEXT), or run kubectl config use-context',
      );
    }
    const context = this.#entry('contexts', 'context', name);
    const clusterName = text(context.raw, 'cluster');
    const cluster = this.#entry('clusters', 'cluster', clusterName);
    const server = text(cluster.raw, 'server');
    if (server === '') {
      throw this.#problem(cluster, `cluster '${clusterName}' has no server`);
    }
    if (text(cluster.raw, 'proxy-url') !== '') {
      throw this.#problem(
        below(cluster, 'proxy-url'),
        'connections through a proxy (proxy-url) are not supported',
        null,
        'reach the API server directly, or through kubectl proxy and endpoint',
      );
    }
    const userName = text(context.raw, 'user');
    const ca = this.#pem(cluster, 'certificate-authority');
    return {
      name,
      namespace: text(context.raw, 'namespace'),
      server,
      tlsServerName: text(cluster.raw, 'tls-server-name'),
      insecure: cluster.raw['insecure-skip-tls-verify'] === true,
      ca,
      user: userName === '' ? { how: 'nobody' } : this.#user(userName, cluster.raw),
      actingAs: userName === '' ? null : actingAs(this.#entry('users', 'user', userName).raw),
    };
  }

  #user(name: string, cluster: JsonObject): KubeconfigUser {
    const user = this.#entry('users', 'user', name);
    const { raw } = user;
    if (isObject(raw['exec'])) {
      return { how: 'exec', exec: this.#exec(below(user, 'exec'), cluster) };
    }
    if (isObject(raw['auth-provider'])) {
      const provider = child(raw, 'auth-provider');
      if (text(provider, 'name') !== 'oidc') {
        throw this.#problem(
          below(user, 'auth-provider'),
          `the auth-provider '${text(provider, 'name')}' is no longer part of Kubernetes`,
          null,
          "use your provider's exec plugin (e.g. gke-gcloud-auth-plugin, kubelogin)",
        );
      }
      return { how: 'oidc', oidc: this.#oidc(below(below(user, 'auth-provider'), 'config')) };
    }
    // client-go's order of precedence: a token file, then a token, then a certificate.
    const tokenFile = text(raw, 'tokenFile');
    if (tokenFile !== '') return { how: 'token-file', path: resolved(user.file, tokenFile) };
    const token = text(raw, 'token');
    if (token !== '') return { how: 'token', token };
    const cert = this.#pem(user, 'client-certificate');
    const key = this.#pem(user, 'client-key');
    if (cert !== null && key !== null) return { how: 'certificate', cert, key };
    if (cert !== null || key !== null) {
      throw this.#problem(user, `user '${name}' has only one of client-certificate and client-key`);
    }
    const userName = text(raw, 'username');
    if (userName !== '')
      return { how: 'password', name: userName, password: text(raw, 'password') };
    return { how: 'nobody' };
  }

  #exec(entry: ConfigEntry, cluster: JsonObject): ExecSettings {
    const { raw } = entry;
    const apiVersion = text(raw, 'apiVersion');
    if (!execVersions.includes(apiVersion)) {
      throw this.#problem(
        below(entry, 'apiVersion'),
        `exec plugins of version '${apiVersion}' are not supported`,
        null,
        `supported: ${execVersions.join(', ')}. Update the plugin, then its kubeconfig entry`,
      );
    }
    if (text(raw, 'interactiveMode') === 'Always') {
      throw this.#problem(
        below(entry, 'interactiveMode'),
        `the exec plugin '${text(raw, 'command')}' needs a terminal, which a server does not have`,
      );
    }
    const command = text(raw, 'command');
    if (command === '') throw this.#problem(entry, 'the exec plugin has no command');
    const environment: Record<string, string> = {};
    for (const variable of children(raw, 'env'))
      environment[text(variable, 'name')] = text(variable, 'value');
    return {
      apiVersion,
      // A bare command is looked up in PATH, while one with a slash is relative to the file.
      command: command.includes('/') ? resolved(entry.file, command) : command,
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

  #oidc(entry: ConfigEntry): OidcSettings {
    const { raw: config } = entry;
    const issuer = text(config, 'idp-issuer-url');
    const idToken = text(config, 'id-token');
    const refreshToken = text(config, 'refresh-token');
    if (idToken === '' && refreshToken === '') {
      throw this.#problem(entry, 'the oidc user has neither id-token nor refresh-token');
    }
    return {
      issuer,
      clientId: text(config, 'client-id'),
      clientSecret: text(config, 'client-secret'),
      idToken,
      refreshToken,
      ca: this.#pem(entry, 'idp-certificate-authority'),
    };
  }

  /** Returns the entry with this name in one of the three lists, from the first file that contains it. */
  #entry(where: 'contexts' | 'clusters' | 'users', key: string, name: string): ConfigEntry {
    for (const file of this.#files) {
      const index = list(file.raw, where).findIndex(
        (each) => text(asObject(each), 'name') === name,
      );
      if (index < 0) continue;
      return {
        file,
        raw: child(asObject(list(file.raw, where)[index]), key),
        path: [where, index, key],
      };
    }
    const meant = nearest(name, this.#names(where));
    throw this.#problem(
      this.#place([where]),
      `the kubeconfig has no ${key} named '${name}'`,
      meant === null ? this.#known(where) : `did you mean '${meant}'?`,
    );
  }

  #names(where: string): string[] {
    return this.#files.flatMap(({ raw }) => children(raw, where).map((each) => text(each, 'name')));
  }

  #known(where: string): string {
    const names = this.#names(where);
    return names.length === 0 ? `its ${where} are empty` : `it has: ${names.join(', ')}`;
  }

  /** `key-data` (base64) takes precedence over `key` (a file), as in client-go. */
  #pem(entry: ConfigEntry, key: string): Pem | null {
    const data = text(entry.raw, `${key}-data`);
    if (data !== '') {
      const decoded = Buffer.from(data, 'base64').toString('utf8');
      if (!decoded.includes('-----BEGIN')) {
        throw this.#problem(below(entry, `${key}-data`), `${key}-data is not base64-encoded PEM`);
      }
      return { from: 'data', text: decoded };
    }
    const file = text(entry.raw, key);
    if (file === '') return null;
    const path = resolved(entry.file, file);
    try {
      readFileBytes(path, FILE_MAX.small);
    } catch (error) {
      throw this.#problem(below(entry, key), `cannot read ${path}: ${whyFailed(error)}`);
    }
    return { from: 'file', path };
  }

  /** Returns a position in the first file, for something that none of the files contains. */
  #place(path: DocumentPath): ConfigEntry {
    const [file] = this.#files;
    if (file === undefined)
      throw new Problem({ code: 'kubeconfig', text: 'no kubeconfig is specified' });
    return { file, raw: file.raw, path };
  }

  #problem(
    { file, path }: ConfigEntry,
    what: string,
    hint: string | null = null,
    remedy: string | null = null,
  ): Problem {
    return new Problem({
      code: 'kubeconfig',
      text: what,
      place: file.document.place(path),
      hint: hint ?? undefined,
      remedy: remedy ?? undefined,
    });
  }
}

function actingAs(user: JsonObject): ActingAs | null {
  const name = text(user, 'as');
  if (name === '') return null;
  return { user: name, uid: text(user, 'as-uid'), groups: texts(user, 'as-groups') };
}

function below({ file, raw, path }: ConfigEntry, key: string): ConfigEntry {
  return { file, raw: child(raw, key), path: [...path, key] };
}

/** Paths in a kubeconfig are relative to it. */
function resolved(file: ConfigFile, path: string): string {
  return isAbsolute(path) ? path : resolve(dirname(file.path), path);
}

/** Returns the part of a cluster's entry that is intended for the exec plugin. */
function execConfig(cluster: JsonObject): unknown {
  const extension = children(cluster, 'extensions').find(
    (entry) => text(entry, 'name') === 'client.authentication.k8s.io/exec',
  );
  return extension?.['extension'];
}
