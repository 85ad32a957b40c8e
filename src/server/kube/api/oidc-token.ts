/** Tokens for a kubeconfig's `oidc` auth provider, which are refreshed when they expire. */
import { whyFailed } from '../../base/why-failed.ts';
import { sendHttp } from '../../base/http-request.ts';
import type { Clock } from '../../base/clock.ts';
import { asObject, text, type JsonObject } from '../../base/json-object.ts';
import { ApiFailure } from './failure.ts';
import type { OidcSettings } from './kubeconfig.ts';

const LEEWAY_MS = 10_000;
/** Timeout for the token issuer's answer, in milliseconds. */
const WAIT_MAX_MS = 30_000;
/** Maximum size of an issuer's answer in bytes. */
const BYTES_MAX = 1024 * 1024;

/**
 * The id token for a user of the `oidc` auth provider. When it expires, a new one is fetched with the refresh token
 * (OpenID Connect Core 1.0, section 12). The kubeconfig file is left unchanged, because it belongs to the user.
 */
export class OidcToken {
  readonly #settings: OidcSettings;
  readonly #clock: Clock;
  readonly #readCa: () => string | undefined;
  #idToken: string;
  #refreshToken: string;
  #running: Promise<string> | null = null;

  constructor(settings: OidcSettings, clock: Clock, readCa: () => string | undefined) {
    this.#settings = settings;
    this.#clock = clock;
    this.#readCa = readCa;
    this.#idToken = settings.idToken;
    this.#refreshToken = settings.refreshToken;
  }

  /** Rejects with an `ApiFailure` of kind `credentials`. */
  async get(): Promise<string> {
    if (this.#idToken !== '' && this.#clock.wall() < expiryOf(this.#idToken) - LEEWAY_MS) {
      return this.#idToken;
    }
    this.#running ??= this.#refresh().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  forget(): void {
    // Without a refresh token, all we can use is the old token.
    if (this.#refreshToken !== '') this.#idToken = '';
  }

  async #refresh(): Promise<string> {
    const { issuer, clientId, clientSecret } = this.#settings;
    if (this.#refreshToken === '' || issuer === '' || clientId === '') {
      throw failure(
        'the id-token of the oidc user has expired and cannot be renewed',
        'log in again, so that the kubeconfig gets a new one; a renewal needs refresh-token, idp-issuer-url and client-id',
      );
    }
    const discovery = await this.#ask(
      `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
      null,
    );
    const endpoint = text(discovery, 'token_endpoint');
    if (endpoint === '') throw failure(`the identity provider ${issuer} has no token_endpoint`);
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: this.#refreshToken,
      client_id: clientId,
      ...(clientSecret === '' ? {} : { client_secret: clientSecret }),
    });
    const answer = await this.#ask(endpoint, form.toString());
    const token = text(answer, 'id_token');
    if (token === '') {
      throw failure(
        `the identity provider ${issuer} did not renew the id_token${text(answer, 'error') === '' ? '' : `: ${text(answer, 'error')}`}`,
        'log in again, so that the kubeconfig gets a new refresh-token',
      );
    }
    this.#idToken = token;
    this.#refreshToken = text(answer, 'refresh_token') || this.#refreshToken;
    return token;
  }

  /**
   * Sends a GET, or a POST with the form.
   * @returns the answer's JSON object, whatever the status
   */
  async #ask(url: string, form: string | null): Promise<JsonObject> {
    try {
      const parsed = URL.parse(url);
      if (parsed === null || !/^https?:$/.test(parsed.protocol))
        throw new Error('this is not a URL');
      const ca = this.#readCa();
      const { status, body } = await sendHttp({
        url: parsed,
        options: {
          method: form === null ? 'GET' : 'POST',
          headers: {
            accept: 'application/json',
            ...(form !== null && { 'content-type': 'application/x-www-form-urlencoded' }),
          },
          ...(ca !== undefined && { ca }),
        },
        ...(form !== null && { body: form }),
        clock: this.#clock,
        waitMs: WAIT_MAX_MS,
        late: `no answer within ${WAIT_MAX_MS / 1000}s`,
        bytesMax: BYTES_MAX,
        tooLong: 'the answer is too long',
      });
      try {
        return asObject(JSON.parse(body.toString('utf8')));
      } catch {
        throw new Error(`it answered ${status} without JSON`);
      }
    } catch (error) {
      throw failure(`the identity provider at ${url} cannot be reached: ${whyFailed(error)}`);
    }
  }
}

/** Returns the `exp` claim of a JSON web token in milliseconds since 1970, without verifying the token. */
function expiryOf(token: string): number {
  try {
    const claims = asObject(
      JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')),
    );
    const seconds = claims['exp'];
    return typeof seconds === 'number' ? seconds * 1000 : Infinity;
  } catch {
    return 0;
  }
}

function failure(what: string, advice = ''): ApiFailure {
  return new ApiFailure({ kind: 'credentials', text: what, advice });
}
