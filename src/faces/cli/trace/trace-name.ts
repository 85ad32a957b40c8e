/** Validates a name to be traced, and suggests the one that was probably meant. */
import { isIP } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { byteLength } from '../../../tools/resolver/search-list.ts';
import { usage } from '../option-values.ts';

/**
 * Returns the name unchanged.
 * @throws Problem if no program would look it up
 */
export function checkedName(name: string | null): string {
  if (name === null || name === '')
    throw new Problem({
      code: 'usage',
      text: 'which name?',
      remedy: 'Example: ndots trace redis.cache',
    });
  if (name.includes('\uFFFD'))
    throw new Problem({
      code: 'usage',
      text: 'the name is not valid UTF-8',
      remedy: 'Write non-ASCII names in their xn-- form.',
    });
  // A name that no client can send is still worth tracing, whereas text that does not look like a name is not.
  if (byteLength(name) > 4096)
    throw usage(`the name is ${byteLength(name)} bytes long; the DNS limit is 255`);
  // eslint-disable-next-line no-control-regex -- matches control characters
  if (/[\u0000-\u0020\u007f]/.test(name))
    throw usage('the name contains a blank or a control character');
  const host = hostWithin(name);
  if (host !== null)
    throw usage(
      `${name} is not a host name: programs look up only its host part`,
      isIP(host) === 0 ? `Did you mean '${host}'?` : addressHint(host),
    );
  return name;
}

/** The host part of a URL, `host:port`, `user@host` or `host/path`. Null for other text. */
function hostWithin(text: string): string | null {
  if (isIP(text) !== 0 || text.endsWith('.arpa') || text.endsWith('.arpa.')) return null;
  const parts =
    /^(?:[a-z][a-z\d+.-]{0,30}:\/\/)?(?:[^@/?#]{0,256}@)?(\[[^\]]{1,64}\]|[^:/?#@[\]]{1,256})(?::[^/?#]{0,256})?(?:[/?#].*)?$/i.exec(
      text,
    );
  const host = parts?.[1]?.replace(/^\[|\]$/g, '') ?? text;
  return host === text ? null : host;
}

/** Suggests what was meant by an address. */
export function addressHint(address: string): string {
  return `${address} is an address, so nothing is looked up for it. To find its name: ndots query -x ${address}`;
}
