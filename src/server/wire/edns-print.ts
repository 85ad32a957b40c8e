import { oneLine } from '../base/visible.ts';
import type { Edns, EdnsOption } from './edns.ts';
import { readOption } from './edns-option.ts';
import { printHex } from './encoding.ts';
import { errorName, optionName } from './iana.ts';

/** Prints OPT like `dig`. */
export function printEdns(edns: Edns): string {
  let text = `;; OPT PSEUDOSECTION:\n; EDNS: version: ${edns.version}, flags:${edns.dnssecOk ? ' do' : ''}`;
  if (edns.z === undefined) text += `; udp: ${edns.udpSize}\n`;
  else text += `; MBZ: 0x${edns.z.toString(16).padStart(4, '0')}, udp: ${edns.udpSize}\n`;
  for (const option of edns.options) text += `; ${printOption(option)}\n`;
  return text;
}

/** `COOKIE: 0123456789abcdef`, `EDE: 15 (Blocked): (text)` … */
export function printOption(option: EdnsOption): string {
  const name = optionName(option.code);
  const content = readOption(option);
  switch (content.kind) {
    case 'ecs':
      return `${name}: ${content.address}/${content.source}/${content.scope}`;
    case 'cookie':
      return `${name}: ${printHex(option.data)}`;
    case 'keepalive':
      return content.timeout === null
        ? `${name}:`
        : `${name}: ${(content.timeout / 10).toFixed(1)} secs`;
    case 'padding':
      return content.length === 0 ? `${name}:` : `${name}: (${content.length} bytes)`;
    case 'ede': {
      const known = errorName(content.code);
      return `${name}: ${content.code}${known === null ? '' : ` (${known})`}${content.text === '' ? '' : `: (${oneLine(content.text)})`}`;
    }
    case 'expire':
      return content.seconds === null
        ? `${name}:`
        : `${name}: ${content.seconds} (${printSpan(content.seconds)})`;
    case 'dau':
    case 'dhu':
    case 'n3u':
      return `${name}: ${content.algorithms.join(' ')}`.trimEnd();
    case 'key-tag':
      return `${name}: ${content.tags.join(', ')}`.trimEnd();
    case 'nsid':
    case 'other':
      return option.data.length === 0 ? `${name}:` : `${name}: ${printBytes(option.data)}`;
  }
}

const units = [
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** `1 week 2 days` */
function printSpan(seconds: number): string {
  const words: string[] = [];
  let left = seconds;
  for (const [unit, size] of units) {
    const count = Math.floor(left / size);
    left %= size;
    if (count > 0) words.push(`${count} ${unit}${count === 1 ? '' : 's'}`);
  }
  return words.length === 0 ? '0 seconds' : words.join(' ');
}

/** `61 62 00 ("ab.")` */
function printBytes(data: Uint8Array): string {
  const hex = Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  const text = Array.from(data, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.',
  ).join('');
  return `${hex} ("${text}")`;
}
