/**
 * Reads resolv.conf like musl (src/network/resolvconf.c). Lines over 255 bytes are dropped, options may be anywhere in
 * a line, three name servers are used, and the environment is ignored.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { Settings } from './client.ts';
import { isLinkLocal, shortIPv4 } from './glibc-conf.ts';
import {
  linesOf,
  newConf,
  remark,
  wordsOf,
  type MutableConf,
  type ResolvConf,
} from './resolv-conf.ts';
import { byteLength } from './search-list.ts';

const mostServers = 3;
/** The line buffer has 256 bytes, including newline and NUL. */
const longestLine = 254;

export function readMuslConf(settings: Settings): ResolvConf {
  const conf = newConf();
  const text = settings.resolvConf;
  const lines = linesOf(text);
  const unterminated = text !== null && text !== '' && !text.endsWith('\n');
  lines.forEach((line, index) => {
    const last = unterminated && index === lines.length - 1;
    const whole = last ? line : `${line}\n`;
    if (byteLength(line) > (last ? longestLine + 1 : longestLine)) {
      const kind = /^search\s/.test(line) ? ': pods with this file have no search list' : '';
      remark(conf, index + 1, `longer than 255 bytes: musl drops the whole line${kind}`);
      return;
    }
    readLine(conf, whole, index + 1);
  });
  if (conf.servers.length === 0) {
    conf.servers = ['127.0.0.1'];
    remark(conf, 0, 'no usable name server: 127.0.0.1 is used');
  }
  return conf;
}

function readLine(conf: MutableConf, line: string, number: number): void {
  if (/^options\s/.test(line)) {
    conf.ndots = option(line, 'ndots:', 15) ?? conf.ndots;
    conf.attempts = option(line, 'attempts:', 10) ?? conf.attempts;
    const timeout = option(line, 'timeout:', 60);
    if (timeout !== null) conf.timeoutMs = timeout * 1000;
    for (const word of wordsOf(line).slice(1)) {
      if (!/^(ndots|attempts|timeout):/.test(word)) {
        remark(conf, number, `musl ignores option "${word}"`);
      }
    }
    return;
  }
  if (/^nameserver\s/.test(line)) {
    const word = wordsOf(line.slice(10))[0] ?? '';
    if (conf.servers.length >= mostServers) {
      remark(conf, number, `ignored: only ${mostServers} name servers`);
      return;
    }
    const address = shortIPv4(word) ?? word;
    const [bare = '', zone] = address.split('%');
    const zoned = zone !== undefined && !/^\d+$/.test(zone);
    if (parseAddress(bare) !== null && (!zoned || isLinkLocal(bare))) conf.servers.push(address);
    else remark(conf, number, `ignored: "${word}" is not an IP address`);
    return;
  }
  if (/^(search|domain)\s/.test(line)) {
    conf.search = wordsOf(line.slice(6));
    return;
  }
  if (line.trim() !== '' && !/^[#;]/.test(line)) {
    remark(conf, number, 'ignored: a keyword that musl knows must begin the line');
  }
}

/** The option's first value in the line that starts with a digit, but no more than `most`. */
function option(line: string, key: string, most: number): number | null {
  const at = line.indexOf(key);
  if (at < 0) return null;
  const match = /^\d+/.exec(line.slice(at + key.length));
  return match === null ? null : Math.min(Number(match[0]), most);
}
