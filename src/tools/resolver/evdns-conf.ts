/**
 * Reads resolv.conf like libevent's evdns. There are no limits on servers, domains or values, and `domain` and `search`
 * lines replace each other.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { Settings } from './client.ts';
import { withoutZone } from './myhostname.ts';
import { domainOf, linesOf, newConf, remark, type ResolvConf } from './resolv-conf.ts';

/** A server's address. It may include a port, but the model only supports port 53. */
function serverIn(word: string): string | null {
  const bare = withoutZone(word.replace(/^\[(.*)\](:53)?$/, '$1').replace(/^([\d.]+):53$/, '$1'));
  return parseAddress(bare) === null ? null : bare;
}

export function readEvdnsConf(settings: Settings): ResolvConf {
  const conf = newConf();
  conf.attempts = 3;
  let searched = false;
  linesOf(settings.resolvConf).forEach((line, index) => {
    // A carriage return counts as part of the last word.
    const [keyword, ...words] = line.split(/[ \t]+/).filter((word) => word !== '');
    if (keyword === 'nameserver' && words[0] !== undefined) {
      const server = serverIn(words[0]);
      if (server !== null && !conf.servers.includes(server)) conf.servers.push(server);
      else if (server !== null) {
        remark(conf, index + 1, 'ignored: duplicate name server');
      } else remark(conf, index + 1, `ignored: "${words[0]}" is not an IP address`);
    } else if (keyword === 'search' || (keyword === 'domain' && words[0] !== undefined)) {
      const domains = keyword === 'search' ? words : words.slice(0, 1);
      conf.search = domains.map((domain) => domain.replace(/^\.+/, ''));
      searched = true;
      // A new search list resets ndots to 1, regardless of earlier lines.
      if (conf.ndots !== 1) {
        remark(conf, index + 1, 'sets ndots back to 1');
      }
      conf.ndots = 1;
    } else if (keyword === 'options') {
      for (const word of words) {
        const [key = '', value = ''] = word.split(/:(.*)/s);
        const whole = /^[+-]?\d{1,9}$/.test(value) ? Number(value) : value === '' ? 0 : -1;
        const seconds = /^\d{1,9}(\.\d{0,6})?$/.test(value) ? Number(value) : 0;
        if (key === 'ndots' && whole !== -1) conf.ndots = whole;
        else if (key === 'timeout' && seconds >= 0.001) conf.timeoutMs = seconds * 1000;
        else if (key === 'attempts' && whole !== -1) {
          conf.attempts = Math.min(255, whole);
        } else remark(conf, index + 1, `evdns ignores option "${word}"`);
      }
    }
  });
  const domain = domainOf(settings.host.hostname);
  if (!searched && domain !== null) conf.search = [domain];
  if (conf.servers.length === 0)
    remark(conf, 0, 'no name server, so evdns fails without sending a query');
  return conf;
}
