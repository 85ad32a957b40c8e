/** `admin`: administrator commands over HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerText } from '../../base/http-answer.ts';
import { isLoopbackHost } from '../../base/ip.ts';
import { bugText } from '../../base/log.ts';
import { Problem, type Place } from '../../base/problem.ts';
import { isSameSecret, readSecret, readSecretOrLog } from '../../base/secret-file.ts';
import { optional, required } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { fields, setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { hostPort, word } from '../../corefile/word-values.ts';
import type { ControlContext, HttpTls } from '../../engine/contract/control-context.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import {
  checkAuthority,
  checkCertificate,
  readCertificateFile,
} from '../../engine/contract/server-certificate.ts';

const address = hostPort('ADDRESS');

const syntax = directive({
  name: 'admin',
  summary: 'accepts administration commands over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: 'localhost', port: 9154 },
      help: 'listen address for commands; blocks with the same address share it',
    }),
  },
  properties: {
    tokenFile: setting('token_file', word('FILE'), {
      help: 'file with the token that every command must include; the file is read for each command, so you can change it at any time',
    }),
    tls: fields(
      'tls',
      {
        certificate: required(word('CERT')),
        key: required(word('KEY')),
        authority: optional(word('CA')),
      },
      {
        help: 'serve HTTPS; if CA is given, accept only clients with a certificate signed by that CA',
      },
    ),
  },
  check: ({ address: where, tokenFile, tls }, at) =>
    isProven(tokenFile, tls) || isLoopbackHost(where.host) ? [] : [open(address.print(where), at)],
});

function isProven(
  tokenFile: string | null,
  tls: { readonly authority: string | null } | null,
): boolean {
  return tokenFile !== null || (tls !== null && tls.authority !== null);
}

/** The only path that is served; the command is in the request's query string. */
const PATH = '/v1/command';
/**
 * Header that carries the token. If no token is set, any value works, because web pages cannot send this header across
 * origins.
 */
const HEADER = 'ndots-admin';

/**
 * Runs the commands that plugins in any server block offer (`cache/explain`, `lkg/release`). A client without
 * permission learns only that it was refused.
 */
export const admin: Plugin = definePlugin({
  syntax,
  link: false,
  operational: true,
  control(options, context) {
    const at = address.print(options.address);
    const tls = options.tls === null ? undefined : httpTls(options.tls, context);
    const token = options.tokenFile === null ? null : context.path(options.tokenFile);
    if (token !== null) readSecret(token);
    const proven = isProven(token, options.tls);
    const requests = context.metrics.counter(
      'ndots_admin_requests_total',
      'Requests to the admin address, by HTTP status.',
      ['status'],
    );
    const commands = new CommandRunner(context, token, proven);
    context.http(
      at,
      PATH,
      (request, response) => {
        response.once('finish', () => requests.with(String(response.statusCode)).add(1));
        void commands.serve(request, response);
      },
      tls,
    );
  },
});

class CommandRunner {
  readonly #context: ControlContext;
  readonly #token: string | null;
  readonly #proven: boolean;
  #busy = false;

  /** @param proven whether clients have to authenticate */
  constructor(context: ControlContext, token: string | null, proven: boolean) {
    this.#context = context;
    this.#token = token;
    this.#proven = proven;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = this.#refusal(request);
    if (refusal !== null) return answerText(response, refusal.status, `${refusal.text}\n`);
    const words = wordsOf(request.url ?? '');
    const name = words.get('command') ?? '';
    const commands = this.#context.commands(name);
    if (commands.length === 0)
      return answerText(
        response,
        404,
        `no plugin in this configuration provides ${JSON.stringify(name)}\n`,
      );
    if (this.#busy) {
      response.setHeader('retry-after', '1');
      return answerText(response, 503, 'another command is running\n');
    }
    this.#busy = true;
    try {
      const results = await Promise.all(commands.map((run) => run(words)));
      answerText(response, 200, JSON.stringify({ results }), 'application/json');
    } catch (error) {
      if (error instanceof Problem) return answerText(response, 400, `${error.message}\n`);
      this.#context.log.error(`${name}: ${bugText(error)}`);
      answerText(response, 500, 'internal error\n');
    } finally {
      this.#busy = false;
    }
  }

  /** Returns why the request is rejected, or null if it is accepted. */
  #refusal({ method, headers }: IncomingMessage): { status: number; text: string } | null {
    const given = headers[HEADER];
    if (given === undefined) {
      const what = this.#token === null ? 'with any value' : 'with the token';
      return { status: 401, text: `the ${HEADER} header is missing; send it ${what}` };
    }
    if (this.#token !== null) {
      const wanted = readSecretOrLog(this.#token, this.#context.log);
      if (wanted === null) return { status: 503, text: 'the token of this server cannot be read' };
      if (!isSameSecret(String(given), wanted))
        return { status: 403, text: 'this is not the token' };
    }
    // After DNS rebinding, a web page can send the header, but its Host is still the page's own host name.
    if (!this.#proven && !isLoopbackHost(hostOf(headers.host ?? '')))
      return {
        status: 403,
        text: 'without a token, the host must be localhost or a loopback address',
      };
    if (method !== 'POST') return { status: 405, text: 'send commands with POST' };
    return null;
  }
}

function httpTls(
  { certificate, key, authority }: NonNullable<Options<typeof syntax>['tls']>,
  context: ControlContext,
): HttpTls {
  const load = (): { cert: Buffer; key: Buffer; ca?: Buffer } => ({
    cert: readCertificateFile(certificate, context),
    key: readCertificateFile(key, context),
    ...(authority !== null && { ca: readCertificateFile(authority, context) }),
  });
  const { ca, ...own } = load();
  checkCertificate(own, { certificate, key });
  if (ca !== undefined) checkAuthority(ca, authority!);
  const asks = authority !== null;
  return {
    key: JSON.stringify([certificate, key, authority]),
    load,
    requestCert: asks,
    rejectUnauthorized: asks,
    welcome: () => true,
  };
}

function open(where: string, at: Place): Problem {
  const text = `${where} is reachable from other machines, and any client could send commands there`;
  return pluginRemark('admin', at, text, {
    code: 'admin-open',
    remedy:
      'Write admin without an address (localhost:9154), with `token_file FILE`, or with `tls CERT KEY CA`.',
  });
}

/** Returns the host part of `localhost:9154` or `[::1]:9154`. */
function hostOf(text: string): string {
  return text
    .replace(/:\d{0,5}$/, '')
    .replace(/^\[([^\]]*)\]$/, '$1')
    .toLowerCase();
}

/** Parses the query string; if a parameter is repeated, the last value wins. */
function wordsOf(target: string): ReadonlyMap<string, string> {
  const at = target.indexOf('?');
  return new Map(new URLSearchParams(at < 0 ? '' : target.slice(at + 1)));
}
