import { builtins } from '../../base/builtins.ts';
import type { Clock } from '../../base/clock.ts';
import { asObject, child, text } from '../../base/json-object.ts';
import { ApiFailure } from './failure.ts';
import type { ExecSettings } from './kubeconfig.ts';

/**
 * The output of an exec plugin (client.authentication.k8s.io, `ExecCredential.status`), reduced to the fields in use.
 */
export interface ExecCredential {
  /** `''` if there is none. */
  readonly token: string;
  readonly cert: string;
  readonly key: string;
}

/** Milliseconds after which an exec plugin is killed. */
const WAIT_MAX_MS = 60_000;
/** Milliseconds by which credentials are renewed before they expire, so that none expires in transit. */
const LEEWAY_MS = 5000;
/** Maximum output of a plugin in bytes. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Runs an exec plugin and caches its credentials until they expire or the server rejects them. */
export class ExecCredentials {
  readonly #settings: ExecSettings;
  readonly #clock: Clock;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  #kept: { readonly credential: ExecCredential; readonly until: number } | null = null;
  #running: Promise<ExecCredential> | null = null;

  constructor(
    settings: ExecSettings,
    clock: Clock,
    environment: Readonly<Record<string, string | undefined>> = process.env,
  ) {
    this.#settings = settings;
    this.#clock = clock;
    this.#environment = environment;
  }

  /** Rejects with an `ApiFailure` of kind `credentials`. */
  async get(): Promise<ExecCredential> {
    const kept = this.#kept;
    if (kept !== null && this.#clock.wall() < kept.until) return kept.credential;
    // Lists that start at the same time share a single run of the plugin.
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  forget(): void {
    this.#kept = null;
  }

  async #run(): Promise<ExecCredential> {
    const output = await this.#execute();
    let printed: unknown;
    try {
      printed = JSON.parse(output);
    } catch {
      throw this.#failure(`did not print an ExecCredential but: ${output.slice(0, 80).trim()}`);
    }
    const raw = asObject(printed);
    const version = text(raw, 'apiVersion');
    if (text(raw, 'kind') !== 'ExecCredential' || version !== this.#settings.apiVersion) {
      throw this.#failure(
        `printed ${text(raw, 'kind') || 'an object'} with version '${version}', not an ExecCredential with ${this.#settings.apiVersion}`,
      );
    }
    const status = child(raw, 'status');
    const credential: ExecCredential = {
      token: text(status, 'token'),
      cert: text(status, 'clientCertificateData'),
      key: text(status, 'clientKeyData'),
    };
    if (credential.token === '' && (credential.cert === '' || credential.key === '')) {
      throw this.#failure('returned neither a token nor a client certificate with a key');
    }
    const expires = Date.parse(text(status, 'expirationTimestamp'));
    // Without an expiry time, the credential is valid until the server rejects it.
    const until = Number.isNaN(expires) ? Infinity : expires - LEEWAY_MS;
    this.#kept = { credential, until };
    return credential;
  }

  #execute(): Promise<string> {
    const { command, args, environment, apiVersion, cluster } = this.#settings;
    const info = {
      apiVersion,
      kind: 'ExecCredential',
      spec: { interactive: false, ...(cluster === null ? {} : { cluster }) },
    };
    return new Promise((resolve, reject) => {
      const process = builtins.childProcess().execFile(
        command,
        [...args],
        {
          env: {
            ...this.#environment,
            ...environment,
            KUBERNETES_EXEC_INFO: JSON.stringify(info),
          },
          timeout: WAIT_MAX_MS,
          maxBuffer: OUTPUT_BYTES_MAX,
        },
        (error, output, complaint) => {
          if (error === null) resolve(output);
          else reject(this.#failure(explain(error, complaint), error));
        },
      );
      process.stdin?.end();
    });
  }

  #failure(what: string, cause?: unknown): ApiFailure {
    return new ApiFailure({
      kind: 'credentials',
      text: `the exec plugin '${this.#settings.command}' ${what}`,
      advice: this.#settings.installHint.split('\n', 1)[0]!,
      cause,
    });
  }
}

function explain(
  error: Error & { code?: number | string | null; killed?: boolean },
  complaint: string,
): string {
  if (error.code === 'ENOENT') return 'is not installed (it is not in PATH)';
  if (error.killed === true) return `did not end within ${WAIT_MAX_MS / 1000}s`;
  const last = complaint.trim().split('\n').at(-1) ?? '';
  return `failed (${error.code ?? 'killed'})${last === '' ? '' : `: ${last}`}`;
}
