/**
 * Manages the webhook's own certificate in a Secret shared by all replicas. Renews it in time and writes its CA to the
 * API server (`caBundle`). Not used for certificate files, which are maintained elsewhere.
 */
import { X509Certificate } from 'node:crypto';
import { sleep, type Clock } from '../../server/base/clock.ts';
import { Authority, type PemIdentity } from './certificates.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import {
  asObject,
  child,
  list,
  text,
  textMap,
  type JsonObject,
} from '../../server/base/json-object.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { createObject, findObject, replaceObject } from '../../server/kube/api/one-object.ts';

export interface ServingCertificateParts {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly secret: string;
  /** The Service that the API server calls, which is also the certificate's name, `NAME.NAMESPACE.svc`. */
  readonly service: string;
  /** Name of the MutatingWebhookConfiguration, which need not exist yet. */
  readonly configuration: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each new certificate. */
  readonly onIdentity: (identity: PemIdentity) => void;
}

const DAY_MS = 24 * 3600_000;
const AUTHORITY_MS = 3650 * DAY_MS;
const CERTIFICATE_MS = 90 * DAY_MS;
/** Renew a certificate when less than this remains. */
const RENEW_MS = 30 * DAY_MS;
/** Check interval. Another replica may have renewed the certificate, or the configuration may have lost the CA. */
const LOOK_EVERY_MS = 60_000;
const RETRY_MS = 5000;
/** Delay before using another replica's certificate if that replica was faster. */
const READ_AGAIN_MS = 500;
const WAIT_MS = 10_000;

/** Labels Secrets that were created by ndots, rather than by a person or another program. */
const MADE_BY = 'app.kubernetes.io/managed-by';
const configurationKind = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
} as const;

/** Checks the Secret and the configuration once a minute, and repairs them if necessary. */
export class ServingCertificate {
  readonly #parts: ServingCertificateParts;
  readonly #failures: FailureReport;
  #used = '';
  /** True once a missing configuration was logged. */
  #toldMissing = false;

  constructor(parts: ServingCertificateParts) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#failures = new FailureReport({
      clock,
      log,
      work: `keeping the certificate in Secret ${parts.namespace}/${parts.secret}`,
    });
  }

  /** Runs until aborted. Logs failures and retries. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs = LOOK_EVERY_MS;
      try {
        if (!(await this.#look(signal))) waitMs = READ_AGAIN_MS;
        this.#failures.over();
      } catch (error) {
        if (signal.aborted) return;
        waitMs = RETRY_MS;
        const meanwhile =
          this.#used === ''
            ? 'the webhook does not serve requests until then'
            : 'the current one stays in use';
        if (error instanceof ApiFailure) this.#failures.failed(error, waitMs, meanwhile);
        else this.#parts.log.error(bugText(error));
      }
      await sleep(this.#parts.clock, waitMs, signal);
    }
  }

  /** @returns false if another replica was first, whose certificate has to be read instead */
  async #look(signal: AbortSignal): Promise<boolean> {
    const kept = await this.#readSecret(signal);
    const now = this.#parts.clock.wall();
    const present = kept === null ? null : pairOf(kept, now, this.#host);
    const pair = present ?? (await this.#makeSecret(kept, signal));
    if (pair === null) return false;
    if (pair.server.cert !== this.#used) {
      this.#used = pair.server.cert;
      this.#parts.onIdentity(pair.server);
    }
    const configuration = await this.#tellAuthority(pair.authority, signal);
    if (configuration === null) return true;
    // A new Secret gets its owner during the next check, once it has been read.
    if (kept === null || present === null) return false;
    await this.#own(kept, configuration, signal);
    return true;
  }

  /**
   * Makes the configuration own a Secret that ndots created, so that both are deleted together, for example by helm
   * uninstall.
   */
  async #own(secret: JsonObject, configuration: JsonObject, signal: AbortSignal): Promise<void> {
    const { client, namespace, secret: name } = this.#parts;
    const metadata = child(secret, 'metadata');
    const { name: owner, uid } = child(configuration, 'metadata');
    const isMade = textMap(metadata, 'labels')[MADE_BY] === 'ndots';
    if (!isMade || uid === undefined || list(metadata, 'ownerReferences').length > 0) return;
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
    const { apiVersion, kind } = configurationKind;
    const ownerReferences = [{ apiVersion, kind, name: owner, uid }];
    const owned = { ...secret, metadata: { ...metadata, ownerReferences } };
    try {
      const request = { path, task: `update secrets ${name}`, waitMs: WAIT_MS, signal };
      await replaceObject(client, request, owned);
    } catch (error) {
      // Conflict: another replica wrote at the same time.
      if (!(error instanceof ApiFailure) || error.status !== 409) throw error;
    }
  }

  get #host(): string {
    return `${this.#parts.service}.${this.#parts.namespace}.svc`;
  }

  #readSecret(signal: AbortSignal): Promise<JsonObject | null> {
    const { client, namespace, secret } = this.#parts;
    const path = `/api/v1/namespaces/${namespace}/secrets/${secret}`;
    return findObject(client, { path, task: `get secrets ${secret}`, waitMs: WAIT_MS, signal });
  }

  /**
   * Creates the CA or the certificate if it is missing or about to expire.
   * @returns null if another replica did so at the same time
   */
  async #makeSecret(before: JsonObject | null, signal: AbortSignal): Promise<Pair | null> {
    const { client, namespace, secret: name, clock, log } = this.#parts;
    const now = clock.wall();
    const kept = before === null ? null : authorityOf(before, now);
    const authority = kept ?? Authority.make(`ndots webhook ${this.#host}`, AUTHORITY_MS, now);
    const server = authority.issue(this.#host, [this.#host], new Date(now + CERTIFICATE_MS), now);
    const encode = (pem: string): string => Buffer.from(pem).toString('base64');
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      ...before,
      metadata: {
        ...(before === null ? { labels: { [MADE_BY]: 'ndots' } } : child(before, 'metadata')),
        name,
        namespace,
      },
      data: {
        ...child(before ?? {}, 'data'),
        'ca.crt': encode(authority.identity.cert),
        'ca.key': encode(authority.identity.key),
        'tls.crt': encode(server.cert),
        'tls.key': encode(server.key),
      },
    };
    const directory = `/api/v1/namespaces/${namespace}/secrets`;
    const asked = { waitMs: WAIT_MS, signal };
    try {
      if (before === null) {
        const task = `create secrets ${name}`;
        await createObject(client, { ...asked, path: directory, task }, secret);
      } else {
        const task = `update secrets ${name}`;
        await replaceObject(client, { ...asked, path: `${directory}/${name}`, task }, secret);
      }
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 409) return null;
      throw error;
    }
    log.info(
      `created a certificate for ${this.#host}, valid for ${CERTIFICATE_MS / DAY_MS} days, in Secret ${namespace}/${name}`,
    );
    return { authority: authority.cert, server };
  }

  /**
   * Writes the CA into all webhooks in the configuration that call our service.
   * @returns the configuration, or null if it does not exist yet
   */
  async #tellAuthority(cert: string, signal: AbortSignal): Promise<JsonObject | null> {
    const { client, configuration: name, namespace, service, log } = this.#parts;
    const path = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${name}`;
    const asked = { path, waitMs: WAIT_MS, signal };
    const task = `get mutatingwebhookconfigurations ${name}`;
    const found = await findObject(client, { ...asked, task });
    // The configuration is created last, and the API server makes no calls until then.
    if (found === null) {
      if (!this.#toldMissing)
        log.info(
          `the API server does not call this webhook yet, because there is no MutatingWebhookConfiguration ${name}; the Helm chart contains one (webhook.enabled)`,
        );
      this.#toldMissing = true;
      return null;
    }
    const caBundle = Buffer.from(cert).toString('base64');
    let changed = false;
    const webhooks = list(found, 'webhooks').map((webhook) => {
      const config = child(asObject(webhook), 'clientConfig');
      const called = child(config, 'service');
      const ours = text(called, 'name') === service && text(called, 'namespace') === namespace;
      if (!ours || text(config, 'caBundle') === caBundle) return webhook;
      changed = true;
      return { ...asObject(webhook), clientConfig: { ...config, caBundle } };
    });
    if (!changed) return found;
    const update = { ...asked, task: `update mutatingwebhookconfigurations ${name}` };
    try {
      await replaceObject(client, update, { ...found, webhooks });
      log.info(`wrote this webhook’s CA to MutatingWebhookConfiguration ${name}`);
    } catch (error) {
      // Another replica wrote at the same time (Conflict). The next check reads its result.
      if (!(error instanceof ApiFailure) || error.status !== 409) throw error;
    }
    return found;
  }
}

interface Pair {
  /** PEM. */
  readonly authority: string;
  readonly server: PemIdentity;
}

function pemOf(secret: JsonObject, key: string): string {
  return Buffer.from(textMap(secret, 'data')[key] ?? '', 'base64').toString('latin1');
}

/** The stored CA, or null if it does not exist or would expire before a new certificate. */
function authorityOf(secret: JsonObject, now: number): Authority | null {
  try {
    const authority = Authority.of({ cert: pemOf(secret, 'ca.crt'), key: pemOf(secret, 'ca.key') });
    const { validToDate } = new X509Certificate(authority.cert);
    return validToDate.getTime() > now + CERTIFICATE_MS ? authority : null;
  } catch {
    return null;
  }
}

/** The certificate in the Secret, or null if it is unusable or about to expire. */
function pairOf(secret: JsonObject, now: number, host: string): Pair | null {
  try {
    const server = { cert: pemOf(secret, 'tls.crt'), key: pemOf(secret, 'tls.key') };
    const authority = pemOf(secret, 'ca.crt');
    const [own, issuer] = [new X509Certificate(server.cert), new X509Certificate(authority)];
    const fits = own.checkHost(host) !== undefined && own.verify(issuer.publicKey);
    const lasts = own.validToDate.getTime() > now + RENEW_MS && own.validFromDate.getTime() <= now;
    return fits && lasts ? { authority, server } : null;
  } catch {
    return null;
  }
}
