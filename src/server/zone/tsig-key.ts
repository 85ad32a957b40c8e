/** Reads TSIG keys written by hand in a Corefile, or in files like those that `tsig-keygen` creates. */
import { randomBytes } from 'node:crypto';
import { Problem, type Place } from '../base/problem.ts';
import { whyFailed } from '../base/why-failed.ts';
import { algorithmNamed } from '../transport/tsig-keys.ts';
import type { NamedFiles } from '../engine/contract/named-files.ts';
import { parseBase64 } from '../wire/encoding.ts';
import { foldName, parseNameOrNull } from '../wire/name.ts';
import type { TsigAlgorithm, TsigKey } from '../wire/tsig.ts';

/** A key from a file, with its algorithm if the file specifies one. */
export interface FileKey extends TsigKey {
  readonly algorithm: TsigAlgorithm | null;
}

/**
 * Creates the key with this name and secret (base64), or returns what is wrong with them.
 * @param broken receives a secret that is not base64, so that no signature matches the key; if null, that is an error
 */
export function makeKey(
  name: string,
  secret: string,
  broken: ((why: string) => void) | null = null,
): TsigKey | string {
  const wire = parseNameOrNull(name.endsWith('.') ? name : `${name}.`);
  if (wire === null) return `"${name}" is not a key name`;
  const bytes = parseBase64(secret);
  if (bytes !== null && bytes.length > 0) return { name: foldName(wire), secret: bytes };
  const why = `the secret of key "${name}" is not base64`;
  if (broken === null) return why;
  broken(why);
  return { name: foldName(wire), secret: randomBytes(SECRET_BYTES) };
}

const SECRET_BYTES = 64;

/** Returns the algorithm with this name, or why it is not known. */
export function algorithmOrWhy(name: string): TsigAlgorithm | string {
  const found = algorithmNamed(name);
  if (found !== undefined) return found;
  return name.toLowerCase().startsWith('hmac-md5')
    ? 'hmac-md5 must no longer be used (RFC 8945 section 6); create a key with hmac-sha256'
    : `there is no algorithm "${name}"; known: hmac-sha256, hmac-sha512, hmac-sha384, hmac-sha224, hmac-sha1`;
}

/**
 * Reads a file with any number of keys in `named.conf` format: `key NAME { algorithm NAME; secret TEXT; };`.
 * @param file as written in the Corefile
 * @param by the reader, as a prefix for messages: `plugin/tsig: `
 * @param broken as for `makeKey`; it also receives unknown algorithms
 * @throws Problem with the line
 */
export function readKeyFile(
  file: string,
  by: string,
  files: NamedFiles,
  broken: ((why: string) => void) | null = null,
): readonly FileKey[] {
  const path = files.path(file);
  let text: string;
  try {
    text = files.file(file).toString('utf8');
  } catch (error) {
    throw new Problem({
      code: 'file-unreadable',
      text: `${by}key file ${path} cannot be read: ${whyFailed(error)}`,
      remedy: `Check the path and its permissions: ls -l ${path}`,
      cause: error,
    });
  }
  const fail = (line: number, why: string): Problem => {
    const place: Place = { file: path, line, column: 0 };
    return new Problem({
      code: 'tsig-key',
      text: `${by}${path}:${line}: ${why}`,
      place,
      remedy:
        'Write keys as tsig-keygen does: key "NAME" { algorithm hmac-sha256; secret "BASE64"; };',
    });
  };
  const tell =
    broken === null ? null : (line: number, why: string): void => broken(`${path}:${line}: ${why}`);
  return parseKeys(text, fail, tell);
}

interface KeyWord {
  readonly text: string;
  readonly line: number;
}

/**
 * Parses keys in `named.conf` format.
 * @throws the error created by `fail`
 */
function parseKeys(
  text: string,
  fail: (line: number, why: string) => Error,
  broken: ((line: number, why: string) => void) | null,
): readonly FileKey[] {
  const words = wordsOf(text);
  const end: KeyWord = { text: '', line: words.at(-1)?.line ?? 1 };
  let at = 0;
  const take = (): KeyWord => words[at++] ?? end;
  const expect = (what: string): void => {
    const { text: found, line } = take();
    if (found !== what) throw fail(line, `expected "${what}" but found "${found}"`);
  };
  const keys: FileKey[] = [];
  const names = new Set<string>();
  while (at < words.length) {
    const first = take();
    if (first.text === ';') continue;
    if (first.text !== 'key') throw fail(first.line, `unexpected token "${first.text}"`);
    const name = take();
    if (names.has(name.text)) throw fail(name.line, `key "${name.text}" redefined`);
    names.add(name.text);
    expect('{');
    let algorithm: TsigAlgorithm | null = null;
    let secret: KeyWord | null = null;
    for (let word = take(); word.text !== '}'; word = take()) {
      const value = word.text === '' ? end : take();
      if (word.text === 'secret') secret = value;
      else if (word.text === 'algorithm') {
        const found = algorithmOrWhy(value.text);
        if (typeof found === 'string') {
          const why = `key "${name.text}": ${found}`;
          if (broken === null) throw fail(value.line, why);
          broken(value.line, why);
        } else algorithm = found;
      } else throw fail(word.line, `unexpected token "${word.text}"`);
      if (words[at]?.text === ';') at++;
    }
    if (secret === null) throw fail(name.line, `expected secret for key "${name.text}"`);
    const { text: written, line } = secret;
    const tell = broken === null ? null : (why: string): void => broken(line, why);
    const key = makeKey(name.text, written, tell);
    if (typeof key === 'string') throw fail(line, key);
    keys.push({ ...key, algorithm });
  }
  return keys;
}

/** Returns words, quoted texts, braces and semicolons, omitting comments. */
function wordsOf(text: string): readonly KeyWord[] {
  const words: KeyWord[] = [];
  let line = 1;
  const parts = /\n|\/\*(?:[^*]|\*(?!\/))*\*\/|(?:#|\/\/)[^\n]*|"([^"\n]*)"|[{};]|[^\s{};"]+/g;
  for (const [found, quoted] of text.matchAll(parts)) {
    if (found === '\n') line++;
    else if (found.startsWith('/*')) line += found.split('\n').length - 1;
    else if (!found.startsWith('#') && !found.startsWith('//'))
      words.push({ text: quoted ?? found, line });
  }
  return words;
}
