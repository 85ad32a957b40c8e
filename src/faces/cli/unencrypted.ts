/** Warns about HTTP servers that other machines can reach. They have no TLS themselves. */
import { isLoopbackHost } from '../../server/base/ip.ts';

/**
 * Returns the warning with the next step, or null if only this machine can connect.
 * @param shown what readers receive in addition to the token: `packets`
 */
export function unencryptedWarning(shown: string, host: string, port: number): string | null {
  if (isLoopbackHost(host)) return null;
  return (
    `connections are not encrypted, so ${shown} and the token can be read in transit. ` +
    `Listen on 127.0.0.1:${port} and forward the port ` +
    `(ssh -L ${port}:127.0.0.1:${port} HOST, or kubectl port-forward POD ${port}), ` +
    'or put a proxy with TLS in front'
  );
}
