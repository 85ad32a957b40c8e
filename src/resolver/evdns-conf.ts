/** resolv.conf as libevent's evdns reads it: no limit on servers or domains, no caps; `domain` and `search` replace each other. */
import { parseAddress } from '../base/ip.ts';
import type { Settings } from './client.ts';
import {
  domainOf,
  leadingInteger,
  linesOf,
  newConf,
  wordsOf,
  type ResolvConf,
} from './resolv-conf.ts';

export function readEvdnsConf(settings: Settings): ResolvConf {
  const conf = newConf();
  conf.attempts = 3;
  let searched = false;
  linesOf(settings.resolvConf).forEach((line, index) => {
    const [keyword, ...words] = wordsOf(line);
    if (keyword === 'nameserver' && words[0] !== undefined) {
      if (parseAddress(words[0]) !== null) conf.servers.push(words[0]);
      else conf.remarks.push({ line: index + 1, text: `ignored: "${words[0]}" is no IP address` });
    } else if (keyword === 'search' || (keyword === 'domain' && words[0] !== undefined)) {
      conf.search = keyword === 'search' ? words : words.slice(0, 1);
      searched = true;
    } else if (keyword === 'options') {
      for (const word of words) {
        const value = leadingInteger(word.slice(word.indexOf(':') + 1));
        if (word.startsWith('ndots:')) conf.ndots = value;
        else if (word.startsWith('timeout:') && value > 0) conf.timeoutMs = value * 1000;
        else if (word.startsWith('attempts:')) conf.attempts = Math.min(255, value);
        else conf.remarks.push({ line: index + 1, text: `evdns ignores option "${word}"` });
      }
    }
  });
  const domain = domainOf(settings.host.hostname);
  if (!searched && domain !== null) conf.search = [domain];
  if (conf.servers.length === 0)
    conf.remarks.push({ line: 0, text: 'no name server: evdns fails without a query' });
  return conf;
}
