/** Checks the name of a trace: what a program can look up, and what was probably meant otherwise. */
import { isIP } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { byteLength } from '../../../tools/resolver/search-list.ts';

/** The name as given. @throws Problem if no program would look it up */
export function checkedName(name: string | null): string {
  if (name === null || name === '') {
    throw new Problem({
      code: 'usage',
      text: 'which name?',
      remedy: 'As in: ndots trace redis.cache',
    });
  }
  if (name.includes('\uFFFD')) {
    throw new Problem({
      code: 'usage',
      text: 'the name is not valid UTF-8',
      remedy: 'Names outside ASCII go into DNS in their xn-- form.',
    });
  }
  // A name that no client can send is still worth a trace, but not one that is not even close to a
  // name.
  if (byteLength(name) > 4096) {
    throw new Problem({
      code: 'usage',
      text: `the name is ${byteLength(name)} bytes long; DNS knows names up to 255`,
    });
  }
  // eslint-disable-next-line no-control-regex -- that is what is looked for
  if (/[\u0000-\u0020\u007f]/.test(name)) {
    throw new Problem({ code: 'usage', text: 'the name holds a blank or a control character' });
  }
  const host = hostWithin(name);
  if (host !== null)
    throw new Problem({
      code: 'usage',
      text: `${name} is more than a name: programs look up its host alone`,
      hint: isIP(host) === 0 ? `Did you mean '${host}'?` : addressHint(host),
    });
  return name;
}

/** The host of a URL, of `host:port`, `user@host` or `host/path`; null: it is none of these. */
function hostWithin(text: string): string | null {
  if (isIP(text) !== 0 || text.endsWith('.arpa') || text.endsWith('.arpa.')) return null;
  const parts =
    /^(?:[a-z][a-z\d+.-]{0,30}:\/\/)?(?:[^@/?#]{0,256}@)?(\[[^\]]{1,64}\]|[^:/?#@[\]]{1,256})(?::[^/?#]{0,256})?(?:[/?#].*)?$/i.exec(
      text,
    );
  const host = parts?.[1]?.replace(/^\[|\]$/g, '') ?? text;
  return host === text ? null : host;
}

/** What a person who gave an address probably wants. */
export function addressHint(address: string): string {
  return `${address} is an address: nothing is looked up for it. Its name: ndots query -x ${address}`;
}
