/** Resolves the arguments of `bind` to addresses. */
import { networkInterfaces } from 'node:os';
import { isIP } from '../../base/ip.ts';
import { nearest, Problem } from '../../base/problem.ts';
import { interfaceAddresses } from '../../runtime/interfaces.ts';
import { LibcMissing } from '../../runtime/libc.ts';

/**
 * Returns the IP addresses given to `bind`, which are literal addresses and those of named interfaces.
 * @returns empty only if there are no arguments, which means all addresses
 * @throws Problem (`bind-unknown-interface`, `bind-no-address`)
 */
export function bindAddresses(
  words: readonly string[],
  except: readonly string[],
): readonly string[] {
  const left = new Set(words.flatMap(addressesOf));
  for (const address of except.flatMap(addressesOf)) left.delete(address);
  if (left.size === 0 && words.length > 0) throw nothingLeft(words, except);
  return [...left];
}

function addressesOf(word: string): readonly string[] {
  if (isIP(word.replace(/%.*/s, '')) !== 0) return [word];
  // The runtime lists only interfaces that are up, which is usually enough. Querying the kernel for the others uses
  // memory that is never released.
  const running = runningAddresses(networkInterfaces()[word], word);
  if (running !== null) return running;
  const all = allInterfaces();
  const found = all?.get(word);
  if (found !== undefined) return found;
  throw unknown(word, all);
}

function unknown(word: string, all: ReadonlyMap<string, unknown> | null): Problem {
  const names = [...(all?.keys() ?? Object.keys(networkInterfaces()))];
  const meant = nearest(word, names);
  const list = all === null ? 'Interfaces that are up' : 'Interfaces of this machine';
  return new Problem({
    code: 'bind-unknown-interface',
    text: `plugin/bind: not a valid IP address or interface name: '${word}'`,
    hint: `${meant === null ? '' : `Did you mean '${meant}'? `}${list}: ${names.join(', ')}.`,
    remedy:
      all === null
        ? `If it exists but is down, list its addresses instead ("ip address show ${word}" prints them).`
        : undefined,
  });
}

function runningAddresses(
  list: ReturnType<typeof networkInterfaces>[string],
  name: string,
): readonly string[] | null {
  if (list === undefined) return null;
  return list.map(({ address, scopeid }) =>
    address.startsWith('fe80:') && scopeid ? `${address}%${name}` : address,
  );
}

/** Returns all interfaces, including those without a carrier, or null if they cannot be listed on this machine. */
function allInterfaces(): ReadonlyMap<string, readonly string[]> | null {
  try {
    return interfaceAddresses();
  } catch (error) {
    if (error instanceof LibcMissing) return null;
    throw error;
  }
}

/** Reports that `except` leaves no address to listen on. In CoreDNS, such a block silently serves nothing. */
function nothingLeft(words: readonly string[], except: readonly string[]): Problem {
  const named = words.join(' ');
  return new Problem({
    code: 'bind-no-address',
    text:
      except.length === 0
        ? `plugin/bind: ${named} has no address`
        : `plugin/bind: ${named} has no addresses left without ${except.join(' ')}`,
    hint: 'The block would not be served anywhere.',
    remedy: 'Give the interface an address before the server starts, or list other addresses.',
  });
}
