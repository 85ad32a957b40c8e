/** `-y` and `-k`: the TSIG key for a query (RFC 8945), in dig's syntax. */
import { FILE_MAX, readFileBytes } from '../../../server/base/read-file.ts';
import { Problem } from '../../../server/base/problem.ts';
import { algorithmNamed, type TsigSigningKey } from '../../../server/transport/tsig-keys.ts';
import type { NamedFiles } from '../../../server/engine/contract/named-files.ts';
import { algorithmOrWhy, makeKey, readKeyFile } from '../../../server/zone/tsig-key.ts';
import type { OptionValue } from '../option.ts';
import { usage } from '../option-values.ts';

const USUAL = 'hmac-sha256';
const example = 'Example: -y hmac-sha256:transfer.example:BASE64, which tsig-keygen prints';

/** `[ALGORITHM:]NAME:SECRET`. */
export const writtenKey: OptionValue<TsigSigningKey> = {
  placeholder: '[HMAC:]NAME:KEY',
  read(given, name) {
    const parts = given.split(':');
    const [secret = '', keyName = ''] = parts.reverse();
    if (parts.length < 2 || parts.length > 3)
      throw usage(`${name} needs a key’s name and secret, separated by a colon`, example);
    const algorithm = algorithmOrWhy(parts[2] ?? USUAL);
    if (typeof algorithm === 'string') throw usage(`${name}: ${algorithm}`);
    const key = makeKey(keyName, secret);
    if (typeof key === 'string') throw usage(`${name}: ${key}`, example);
    return { ...key, algorithm };
  },
};

const onDisk: NamedFiles = {
  path: (file) => file,
  file: (name) => readFileBytes(name, FILE_MAX.small),
};

/**
 * The first key in a file.
 * @throws Problem
 */
export function keyOfFile(file: string): TsigSigningKey {
  const [key] = readKeyFile(file, '', onDisk);
  if (key === undefined)
    throw new Problem({
      code: 'bad-key-file',
      text: `${file} contains no key`,
      remedy: 'tsig-keygen NAME prints such a file.',
    });
  return { ...key, algorithm: key.algorithm ?? algorithmNamed(USUAL)! };
}
