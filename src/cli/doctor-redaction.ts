/** Names and addresses of a capture replaced wherever they stand in a text. */
import type { Observations } from '../capture/evidence/observations.ts';
import type { Redaction } from '../capture/redaction.ts';

/** What a name or an address is made of; punctuation at its end is not of it. */
const WORD = /[\w:*-][\w.:*-]*/g;

/** @returns a function that replaces all that the capture names, and leaves other words alone */
export function hiddenText(observed: Observations, redaction: Redaction): (text: string) => string {
  const names = new Set<string>();
  const addresses = new Set<string>();
  for (const { name, addresses: found } of observed.names.list) {
    for (const address of found) addresses.add(address);
    // A name, what stands in front of its search domain, and what it ends in.
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      names.add(name.slice(0, dot));
      names.add(name.slice(dot + 1, -1));
    }
  }
  for (const list of [observed.clients.list, observed.servers.list, observed.backends.list])
    for (const { address } of list) addresses.add(address);
  for (const { stray } of observed.strays) addresses.add(stray!.address);
  return (text) =>
    text.replaceAll(WORD, (word) => {
      let end = word.length;
      while (word[end - 1] === '.' || word[end - 1] === ':') end--;
      const bare = word.slice(0, end);
      const rest = word.slice(bare.length);
      if (addresses.has(bare)) return redaction.address(bare) + rest;
      // Single words may be of the text itself; a label among them is replaced only where a dot shows that it is one.
      if (names.has(bare) && (bare.includes('.') || rest.startsWith('.')))
        return redaction.name(bare) + rest;
      return word;
    });
}
