/** `dnssec`: signs replies on the fly (RFC 4033 to 4035) and generates a denial proof for each query. */
import { MinuteDigest } from '../../base/minute-digest.ts';
import { cpuCount } from '../../base/cpu-count.ts';
import { Problem, Problems } from '../../base/problem.ts';
import { zones } from '../../corefile/positions.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { chained, lines, setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { byteSize, integer } from '../../corefile/word-values.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { readKeyPair } from '../../dnssec/key-file.ts';
import type { KeyPair } from '../../dnssec/key-pair.ts';
import { isQuick, signerFor } from '../../dnssec/signer.ts';
import { definePlugin, type Next, type Plugin } from '../../engine/contract/plugin.ts';
import { parseName, printName, suffixAt } from '../../wire/name.ts';
import { DnssecMetrics } from './dnssec-counters.ts';
import { DnssecLink } from './link.ts';
import { Signatures } from './signatures.ts';
import { SignedReplies } from './signed-replies.ts';
import { SignedZones } from './zones.ts';

const syntax = directive({
  name: 'dnssec',
  summary: 'signs replies on the fly with DNSSEC',
  repeat: 'once',
  args: { zones: zones({ help: 'zones to sign' }) },
  properties: {
    keys: lines(
      ['key'],
      'file KEY…',
      (name, words, refuse): readonly Token[] => {
        const [source, ...files] = words;
        if (source?.text === 'aws_secretsmanager')
          refuse('keys in AWS Secrets Manager are not supported', source.place, {
            hint: 'Reading them requires account credentials.',
            remedy:
              'Mount the secret as files (a Secret, the Secrets Store CSI driver) and write: key file KEY',
          });
        if (source !== undefined && source.text !== 'file')
          refuse(`unknown key source '${source.text}'`, source.place, {
            hint: 'Keys are read from files: key file KEY',
          });
        if (files.length === 0)
          return refuse(
            'Wrong argument count or unexpected line ending',
            source?.place ?? name.place,
          );
        return files;
      },
      {
        help: 'key pairs created with `dnssec-keygen`, with or without the extension `.key` or `.private`',
      },
    ),
    capacity: chained(
      setting('cache_capacity', integer('CAPACITY', { min: 0 }), {
        default: 10_000,
        help: 'number of RRsets whose signatures each worker caches, and also the number of complete replies',
      }),
    ),
    replyBytes: setting('max_bytes', byteSize('SIZE', { min: 0, max: 2 ** 40 }), {
      default: 16 * 2 ** 20,
      help: 'memory for complete replies in each worker',
    }),
    signing: setting('max_signing', integer('COUNT', { min: 1, max: 1_000_000 }), {
      default: 1000,
      help: 'number of RRsets that each worker signs at a time; further queries are refused',
    }),
  },
  warn({ keys }, at) {
    if (keys.length > 0) return [];
    return [
      pluginRemark('dnssec', at, 'there are no keys, so nothing is signed', {
        code: 'directive-warning',
        remedy: 'Write: key file KEY, with a key from: dnssec-keygen -a ECDSAP256SHA256 ZONE',
      }),
    ];
  },
});

/** Number of RRsets to sign before serving queries again, which takes well under a millisecond. */
const IN_A_TURN = 8;

/**
 * Signs replies. The main thread reads the keys. Each worker makes signatures with fast algorithms itself, and the
 * runtime's threads make the others.
 */
export const dnssec: Plugin = definePlugin({
  syntax,
  control({ keys, zones: names }, context) {
    const problems: Problem[] = [];
    const pairs: KeyPair[] = [];
    for (const { text, place } of keys.flat()) {
      try {
        const pair = readKeyPair(context.path(text));
        const fits = names.some((zone) => suffixAt(parseName(zone), pair.owner) >= 0);
        if (fits) pairs.push(pair);
        else {
          const key = `${printName(pair.owner)} (keyid: ${pair.tag})`;
          const zone = names.join(' ');
          problems.push(
            pluginProblem('dnssec', place, `key ${key} can not sign any of the zones`, {
              hint: `The zones are ${zone}; a key's name must be one of them, or a parent.`,
            }),
          );
        }
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        problems.push(error);
      }
    }
    if (problems.length > 0) throw new Problems(problems);
    context.onJoin(() => [pairs]);
  },

  setup({ zones: names, capacity, replyBytes, signing }, context, next) {
    const metrics = new DnssecMetrics(context.metrics);
    const refusals = new MinuteDigest(context.clock, (count) => {
      const queries = count === 1 ? '1 query was' : `${count} queries were`;
      context.log.warning(
        `too many RRsets are being signed (max_signing ${signing}): ${queries} refused`,
      );
    });
    context.onStop(() => {
      metrics.close();
      refusals.stop();
    });
    let link: Next = next;
    context.onMessage((message) => {
      const pairs = message as readonly KeyPair[];
      if (pairs.length === 0) return;
      const processors = cpuCount();
      const inTurns = processors === 1 || pairs.every(isQuick);
      const made = new DnssecLink({
        zones: new SignedZones(names),
        pairs,
        signatures: new Signatures({
          signers: pairs.map((pair) => signerFor(pair)),
          capacity,
          most: signing,
          atOnce: inTurns ? IN_A_TURN : Math.floor(processors / 2),
          clock: context.clock,
          onBusy: (change) => metrics.signing.add(change),
        }),
        replies: new SignedReplies(capacity, replyBytes),
        metrics,
        clock: context.clock,
        writer: context.writer,
        next,
        onRefused: () => refusals.note(),
      });
      ({ link } = made);
    });
    return (query) => link(query);
  },
});
