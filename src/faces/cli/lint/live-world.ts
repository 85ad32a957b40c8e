/** Gives live rules access to the network and files, using this machine's own. */
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { connect } from 'node:tls';
import { FILE_MAX, readFileBytes } from '../../../server/base/read-file.ts';
import type { ProbeServer } from '../../../tools/probe/network.ts';
import type { LiveWorld } from '../../../tools/lint/live/live-rule.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/**
 * @param asking sends queries
 * @param resolvers this machine's name servers
 */
export function systemWorld(
  asking: LiveWorld['asking'],
  resolvers: readonly ProbeServer[],
): LiveWorld {
  return {
    asking,
    resolvers,
    isFile: existsSync,
    async resolve(host) {
      try {
        return (await lookup(host, { all: true })).map(({ address }) => address);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOTFOUND') return [];
        throw error;
      }
    },
    certificate: (server, name, ca) => shownCertificate(server, name, ca, asking.timeoutMs),
  };
}

/** Why the certificate is not valid for the name, or null if it is. */
function shownCertificate(
  { host, port }: ProbeServer,
  name: string,
  ca: readonly string[],
  timeoutMs: number,
): Promise<string | null> {
  let authorities: Buffer[];
  try {
    authorities = ca.map((file) => readFileBytes(file, FILE_MAX.small));
  } catch {
    // The CA file is on the server's machine, and the certificate cannot be judged without it.
    return Promise.resolve(null);
  }
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      servername: name,
      ...(authorities.length > 0 && { ca: authorities }),
      // The certificate is judged below, and no data is sent over this connection.
      rejectUnauthorized: false,
      ALPNProtocols: ['dot'],
    });
    const end = (why: string | null): void => {
      clearTimeout(timer);
      socket.on('error', () => undefined);
      socket.destroy();
      resolve(why);
    };
    const timer = setTimeout(() => end(`no TLS connection in ${timeoutMs} ms`), timeoutMs);
    socket.once('secureConnect', () => {
      const { authorized, authorizationError } = socket;
      if (authorized) return end(null);
      const names = socket.getPeerCertificate().subjectaltname ?? '';
      end(
        `${wordOf(authorizationError)}${names === '' ? '' : ` (its names: ${names.slice(0, 120)})`}`,
      );
    });
    socket.once('error', (error) => end(whyFailed(error)));
  });
}

function wordOf(error: unknown): string {
  const code =
    error instanceof Error
      ? ((error as NodeJS.ErrnoException).code ?? error.message)
      : String(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'it is valid only for other names';
  if (code === 'CERT_HAS_EXPIRED') return 'it has expired';
  if (/SELF_SIGNED|UNABLE_TO/.test(code)) return `it is not signed by a known CA (${code})`;
  return code;
}
