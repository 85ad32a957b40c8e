/**
 * Reads resolv.conf like Go's resolver (net/dnsconfig_unix.go), with three name servers, the last `search` or `domain`
 * line, and unlimited attempts. If there is an unknown keyword or option, a program built with cgo leaves the lookup to
 * libc.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { Settings } from './client.ts';
import type { GoTraits } from './go-releases.ts';
import { isLinkLocal } from './glibc-conf.ts';
import { withoutZone } from './myhostname.ts';
import {
  domainOf,
  linesOf,
  newConf,
  remark,
  wordsOf,
  type MutableConf,
  type ResolvConf,
} from './resolv-conf.ts';

const mostServers = 3;

export function readGoConf(settings: Settings, traits: GoTraits): ResolvConf {
  const conf = newConf();
  linesOf(settings.resolvConf).forEach((line, index) => readLine(conf, line, index + 1, traits));
  if (conf.servers.length === 0) {
    conf.servers = ['127.0.0.1', '::1'];
    remark(conf, 0, 'no usable name server: 127.0.0.1 and ::1 are used');
  }
  if (conf.search.length === 0) {
    const domain = domainOf(settings.host.hostname);
    if (domain !== null) conf.search = [rooted(domain)];
  }
  return conf;
}

function readLine(conf: MutableConf, line: string, number: number, traits: GoTraits): void {
  if (line.startsWith(';') || line.startsWith('#')) return;
  const [keyword, ...words] = wordsOf(line);
  switch (keyword) {
    case undefined:
    case 'lookup':
      return;
    case 'nameserver':
      return readServer(conf, words[0], number);
    case 'domain':
      if (words[0] !== undefined) conf.search = [rooted(words[0])];
      return;
    case 'search':
      conf.search = words.map(rooted).filter((name) => !traits.skipsRootDomain || name !== '.');
      return;
    case 'options':
      for (const word of words) readOption(conf, word, number, traits);
      return;
    default:
      conf.unknown ??= keyword;
      remark(conf, number, `unknown keyword "${keyword}"`);
  }
}

function readServer(conf: MutableConf, word: string | undefined, number: number): void {
  if (word === undefined) return;
  if (conf.servers.length >= mostServers) {
    remark(conf, number, `ignored: only ${mostServers} name servers`);
  } else if (parseAddress(withoutZone(word)) !== null) {
    conf.servers.push(isLinkLocal(word) ? word : withoutZone(word));
  } else remark(conf, number, `ignored: "${word}" is not an IP address`);
}

function readOption(conf: MutableConf, word: string, number: number, traits: GoTraits): void {
  if (word.startsWith('ndots:')) conf.ndots = Math.min(15, digits(word.slice(6)));
  else if (word.startsWith('timeout:')) conf.timeoutMs = Math.max(1, digits(word.slice(8))) * 1000;
  else if (word.startsWith('attempts:')) conf.attempts = Math.max(1, digits(word.slice(9)));
  else if (word === 'rotate') conf.rotate = true;
  else if (word === 'single-request' || word === 'single-request-reopen') conf.singleRequest = true;
  else if (word === 'use-vc' || word === 'usevc' || word === 'tcp') conf.useVc = true;
  else if (traits.newOptions && word === 'trust-ad') conf.trustAd = true;
  else if (traits.newOptions && (word === 'edns0' || word === 'no-reload')) return;
  else {
    conf.unknown ??= word;
    remark(conf, number, `option "${word}" is unknown to this Go`);
  }
}

/** The leading digits as a number, or 0 if there are none. Go's parser stops at 16777215. */
function digits(text: string): number {
  return Math.min(0xffffff, Number(/^\d{1,9}/.exec(text)?.[0] ?? 0));
}

function rooted(name: string): string {
  return name.endsWith('.') ? name : `${name}.`;
}
