/** Recognises files that are neither captures nor text by their first bytes. */

import { isBinary } from '../../../server/base/binary-text.ts';
import { isPcap } from './packets/pcap.ts';
import { isPcapng } from './packets/pcapng.ts';

/** The type of a file, and what to do with it. */
export interface ForeignFile {
  /** `compressed with xz`. */
  readonly what: string;
  readonly remedy: string | null;
  /** True if another verb reads such files. */
  readonly isOfOtherVerb?: true;
}

const piped = (command: string): string =>
  `Decompress it first (${command}); - reads standard input.`;
const converted = 'Convert it first: editcap -F pcapng FILE NEW.pcapng';
const none =
  'Supported input: a capture (pcap, pcapng), dnstap, a log or a list, optionally compressed with gzip or zstd.';

const ofCaptures = 'To read a capture: ndots capture FILE, ndots doctor FILE or ndots plan FILE';

/** Identified by their first bytes (file(1) knows many more). If several match, the longest comes first. */
const kinds: readonly (readonly [at: number, bytes: string, what: string, remedy: string])[] = [
  [0, '\x1f\x8b', 'compressed with gzip', piped('zcat')],
  [0, '\x28\xb5\x2f\xfd', 'compressed with zstd', piped('zstdcat')],
  [0, '\xfd7zXZ\0', 'compressed with xz', piped('xz -dc')],
  [0, 'BZh', 'compressed with bzip2', piped('bzip2 -dc')],
  [0, '\x04\x22\x4d\x18', 'compressed with lz4', piped('lz4 -dc')],
  [0, '\x1f\x9d', 'compressed with compress', piped('zcat')],
  [0, 'PK\x03\x04', 'a zip archive', piped('unzip -p')],
  [0, '7z\xbc\xaf\x27\x1c', 'a 7z archive', piped('7z x -so')],
  [257, 'ustar', 'a tar archive', piped('tar -xOf')],
  [0, 'snoop\0\0\0', 'a capture of snoop', converted],
  [0, 'GMBU', 'a capture of Network Monitor', converted],
  [0, 'XCP\0', 'a capture of NetXray', converted],
  [0, '\xa1\xb2\xcd\x34', 'a capture in a rare pcap variant', converted],
  [0, '\x34\xcd\xb2\xa1', 'a capture in a rare pcap variant', converted],
  [
    0,
    '\xff\xfe',
    'UTF-16 text, as written by PowerShell',
    'Convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8',
  ],
  [0, '\xfe\xff', 'text in UTF-16', 'Convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8'],
  [0, '\x7fELF', 'a program', none],
  [0, '\x89PNG', 'an image', none],
  [0, '\xff\xd8\xff', 'an image', none],
  [0, '%PDF-', 'a PDF document', none],
  [0, 'SQLite format 3\0', 'an SQLite database', none],
];

const PREFIX_BYTES = 512;
// eslint-disable-next-line no-control-regex -- the zeros are meant
const LEADING_ZEROS = /^\0+/;

/** The number of bytes of a text to read, enough for a licence above the first line that counts. */
const TEXT_PREFIX_BYTES = 4096;
/** True for `.:53 {`, `cluster.local:53 example.org {` and `(snippet) {`. */
function isCorefileBlock(line: string): boolean {
  const words = line.split(/[ \t,]+/);
  const [first = ''] = words;
  if (words.length < 2 || words.at(-1) !== '{' || /[{}"]/.test(words.slice(0, -1).join('')))
    return false;
  return /[.:]/.test(first) || (first.startsWith('(') && first.endsWith(')'));
}

/** Texts that are recognised by their first line other than comments. */
const texts: readonly (readonly [
  isFirst: (line: string) => boolean,
  what: string,
  remedy: string,
])[] = [
  [
    isCorefileBlock,
    'a Corefile',
    'To check it: ndots lint FILE. To see the answers that a change affects: ndots diff FILE NEW',
  ],
  [
    (line) =>
      /^(?:nameserver|search|domain)\s+\S/.test(line) ||
      /^options\s+(?:ndots|timeout|attempts|rotate|edns0)\b/.test(line),
    'a resolv.conf',
    'To see the queries that it causes: ndots trace NAME --resolv-conf FILE',
  ],
  [
    (line) => /^(?:apiVersion|kind):\s+\S/.test(line),
    'a Kubernetes manifest',
    'To check it: ndots lint FILE. To use it for the names of pods: --manifests DIR',
  ],
];

/** Returns the type of a text that another verb reads, or null if it may be a log or a list. */
function foreignText(first: Uint8Array): ForeignFile | null {
  const start = Buffer.from(first.buffer, first.byteOffset, first.length);
  const lines = start.toString('utf8', 0, TEXT_PREFIX_BYTES).split('\n');
  const counting = lines
    .map((line) => line.replace(/[ \t]#.*/, '').trimEnd())
    .find((line) => !/^\s*(?:[#;].*|import\s.*|---)?$/.test(line));
  const found = texts.find(([isFirst]) => isFirst(counting ?? ''));
  return found === undefined ? null : { what: found[1], remedy: found[2], isOfOtherVerb: true };
}

/** Returns the type of a file that is not a capture, after unpacking it once. Null if it may be a log or a list. */
export function foreignFile(first: Uint8Array): ForeignFile | null {
  const found = recognised(first) ?? foreignText(first);
  const isTwice = found?.what === 'compressed with gzip' || found?.what === 'compressed with zstd';
  return isTwice ? { ...found, what: found.what.replace(' with', ' twice, with') } : found;
}

function recognised(first: Uint8Array): ForeignFile | null {
  const start = Buffer.from(first.buffer, first.byteOffset, Math.min(first.length, PREFIX_BYTES));
  const letters = start.toString('latin1');
  const kind = kinds.find(([at, bytes]) => letters.startsWith(bytes, at));
  if (kind !== undefined) return { what: kind[2], remedy: kind[3] };
  // A log that was truncated while being written starts with zeros.
  return isBinary(letters.replace(LEADING_ZEROS, ''))
    ? { what: 'binary data of an unknown kind', remedy: none }
    : null;
}

/** The same for inputs that must be text. Captures and compressed files are rejected as well. */
export function noText(first: Uint8Array): ForeignFile | null {
  if (isPcap(first) || isPcapng(first)) return { what: 'a capture', remedy: ofCaptures };
  const found = recognised(first);
  if (found === null) return null;
  const { what } = found;
  if (what.startsWith('a capture')) return { what, remedy: ofCaptures };
  // Advice meant for commands that read captures does not apply here.
  return { what, remedy: found.remedy === none ? 'Text is expected here.' : found.remedy };
}
