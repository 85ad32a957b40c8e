/** `sign`: signs zone files, and writes the results for `file` and `auto` to serve. */
import { whyFailed } from '../../base/why-failed.ts';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { every } from '../../base/clock.ts';
import { Problem, Problems, type Place } from '../../base/problem.ts';
import { required, zones } from '../../corefile/positions.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { lines, setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { word } from '../../corefile/word-values.ts';
import { readKeyPair } from '../../dnssec/key-file.ts';
import { isKeySigning, type KeyPair } from '../../dnssec/key-pair.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { signMetrics } from './sign-metrics.ts';
import { ZoneSigner } from './zone-signer.ts';

/** Interval in milliseconds between checks for changed files and old signatures. */
const LOOK_MS = 60_000;

interface KeySource {
  readonly kind: 'file' | 'directory';
  readonly names: readonly Token[];
}

const syntax = directive({
  name: 'sign',
  summary: 'signs zone files',
  repeat: 'gather',
  args: {
    file: required(word('DBFILE'), { help: 'zone file to sign' }),
    zones: zones({ help: 'zones in the file; each is signed separately' }),
  },
  properties: {
    keys: lines(
      ['key'],
      'file|directory NAME…',
      (name, words, refuse): KeySource => {
        const [kind, ...names] = words;
        if (kind === undefined || names.length === 0)
          return refuse(
            'Wrong argument count or unexpected line ending',
            kind?.place ?? name.place,
          );
        if (kind.text !== 'file' && kind.text !== 'directory')
          return refuse(`unknown key source '${kind.text}'`, kind.place, {
            hint: 'Write: key file KEY, or key directory DIR.',
          });
        return { kind: kind.text, names };
      },
      {
        help: 'key-signing key pairs; in a directory, those named `K<zone>+<algorithm>+<id>`',
      },
    ),
    directory: setting('directory', word('DIR'), {
      default: '/var/lib/coredns',
      help: 'directory where `db.<zone>.signed` is written',
    }),
  },
  warn(all, at) {
    if (all.every(({ keys }) => keys.length > 0)) return [];
    return [
      pluginRemark('sign', at, 'nothing is signed because there is no key to sign with', {
        code: 'directive-warning',
        remedy:
          'Write: key file KEY, with a key from: dnssec-keygen -a ECDSAP256SHA256 -f KSK ZONE',
      }),
    ];
  },
});

/**
 * Signs zone files on the main thread, which answers no queries. The signatures themselves are made in other threads.
 */
export const sign: Plugin = definePlugin({
  syntax,
  async control(options, context) {
    const { clock, random, log } = context;
    const metrics = signMetrics(context.metrics);
    const problems: Problem[] = [];
    const signers: ZoneSigner[] = [];
    for (const { file, zones: names, keys, directory } of options) {
      if (file.includes('\uFFFD')) problems.push(unreadableName(file));
      for (const zone of keys.length === 0 ? [] : names) {
        const pairs = keys.flatMap((source) => readKeys(source, zone, context, problems));
        const source = context.path(file);
        const target = join(context.path(directory), `db.${zone}signed`);
        signers.push(new ZoneSigner({ zone, source, target, pairs, clock, random, log, metrics }));
      }
    }
    if (problems.length > 0) throw new Problems(problems);
    // `file` waits for a zone that cannot be served yet, and reads it afterwards.
    for (const signer of signers) {
      signer.tell();
      if (!signer.isUsable) await signer.refresh();
    }
    context.onStart(() => {
      const look = (): void => {
        for (const signer of signers) void signer.refresh();
      };
      look();
      const ticks = every(clock, LOOK_MS, look);
      context.onStop(() => ticks.cancel());
    });
  },
});

/**
 * Invalid UTF-8 in the Corefile has been replaced, so there cannot be such a file. This is reported even if there is no
 * key that requires reading it.
 */
function unreadableName(file: string): Problem {
  return new Problem({
    code: 'directive-value',
    text: `plugin/sign: dbfile ${JSON.stringify(file)} contains invalid characters`,
    hint: 'The Corefile is not UTF-8 there.',
    remedy: 'Save it as UTF-8, or give the file an ASCII name.',
  });
}

function readKeys(
  { kind, names }: KeySource,
  zone: string,
  context: ControlContext,
  problems: Problem[],
): readonly KeyPair[] {
  return names.flatMap((name) => {
    try {
      const path = context.path(name.text);
      if (kind === 'file') return [keySigning(readKeyPair(path), name.place)];
      return readDirectory(path, zone, name.place);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problems.push(error);
      return [];
    }
  });
}

function readDirectory(directory: string, zone: string, place: Place): readonly KeyPair[] {
  let files: readonly string[];
  try {
    files = readdirSync(directory);
  } catch (error) {
    throw pluginProblem('sign', place, `open ${directory}: ${whyFailed(error)}`);
  }
  const prefix = `k${zone}+`;
  const own = files
    .filter((file) => file.toLowerCase().startsWith(prefix) && file.endsWith('.key'))
    .toSorted();
  const pairs = own.map((file) => readKeyPair(join(directory, file))).filter(isKeySigning);
  if (pairs.length > 0) return pairs;
  throw pluginProblem('sign', place, `there is no key signing key for ${zone} in ${directory}`, {
    hint: `Its files must be named K${zone}+<algorithm>+<id>.key and .private.`,
    remedy: `dnssec-keygen -K ${directory} -a ECDSAP256SHA256 -f KSK ${zone}`,
  });
}

function keySigning(pair: KeyPair, place: Place): KeyPair {
  if (isKeySigning(pair)) return pair;
  throw pluginProblem('sign', place, `DNSKEY in "${pair.file}.key" is not a CSK/KSK`, {
    hint: 'Its flags are 256; a single key must have flags 257 to sign the whole zone.',
    remedy: 'dnssec-keygen -a ECDSAP256SHA256 -f KSK ZONE',
  });
}
