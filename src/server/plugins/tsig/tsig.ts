/** `tsig`: verifies signed queries and signs the replies to them (RFC 8945). */
import { Problem } from '../../base/problem.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { required, zones } from '../../corefile/positions.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { custom, each, list, type PropertySchema, type Refuse } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { domainName, token, word } from '../../corefile/word-values.ts';
import { TsigKeys, type ReplySeal, type TsigProof } from '../../transport/tsig-keys.ts';
import type { NamedFiles } from '../../engine/contract/named-files.ts';
import { definePlugin, type Next, type Plugin } from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { EDE, OPCODE, RCODE, typeName, typeNumber } from '../../wire/iana.ts';
import { printName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import type { QuerySignature, TsigKey } from '../../wire/tsig.ts';
import { makeKey, readKeyFile } from '../../zone/tsig-key.ts';

/** Types or opcodes that have to be signed, or `all`. */
type Required = ReadonlySet<number> | 'all';

const nothing: Required = new Set();

const syntax = directive({
  name: 'tsig',
  summary: 'verifies TSIG signatures on queries and signs replies (RFC 8945)',
  repeat: 'once',
  args: { zones: zones({ help: 'queries for names outside these zones are not checked' }) },
  properties: {
    secrets: each(
      'secret',
      { name: required(domainName('NAME')), secret: required(token('KEY')) },
      { help: 'a key, given as a name and a base64 secret' },
    ),
    files: list('secrets', word('FILE'), {
      max: 1,
      help: 'all keys in a file in `named.conf` format, as printed by `tsig-keygen`',
    }),
    types: requirement('require', 'QTYPE', typeNumber, 'unknown query type', {
      help: 'query types that must be signed, or `all`, or `none`',
    }),
    opcodes: requirement('require_opcode', 'OPCODE', opcodeNumber, 'unknown opcode', {
      help: 'opcodes that must be signed (`QUERY`, `NOTIFY` …), or `all`, or `none`',
    }),
  },
  check: ({ secrets }) => {
    const names = secrets.map(({ name }) => name);
    return secrets.flatMap(({ name, secret: { text, place } }, index) => {
      if (names.indexOf(name) < index)
        return [pluginProblem('tsig', place, `key "${name}" redefined`)];
      const made = makeKey(name, text, passed);
      if (typeof made !== 'string') return [];
      return [
        pluginProblem('tsig', place, made, {
          hint: 'tsig-keygen NAME creates a key and prints it.',
        }),
      ];
    });
  },
  warn: ({ secrets, files }, at) =>
    secrets.length + files.length > 0
      ? secrets.flatMap(({ name, secret: { text, place } }) => {
          const remarks: Problem[] = [];
          makeKey(name, text, (why) => {
            const hint = 'tsig-keygen NAME creates a key and prints it.';
            remarks.push(
              pluginRemark('tsig', place, `${why}, so no signature with it can be valid`, {
                code: 'directive-warning',
                hint,
              }),
            );
          });
          return remarks;
        })
      : [
          pluginRemark('tsig', at, 'there is no key, so no signature can be valid', {
            code: 'directive-warning',
            hint: 'Keys apply to their own server block: write `secret` or `secrets` in each.',
          }),
        ],
});

type TsigOptions = Options<typeof syntax>;

export const tsig: Plugin = definePlugin({
  syntax,
  control(options, context) {
    // Unreadable files have to be reported before the server starts.
    keysOf(options, context, (why) =>
      context.log.warning(`${why}; signatures with it are never valid`),
    );
  },

  setup(options, context, next): Next {
    const keys = keysOf(options, context, passed);
    const zone = new ZoneMatch(options.zones);
    const { types, opcodes } = options;
    const { clock, log } = context;
    const counted = context.metrics.counter(
      'ndots_tsig_queries_total',
      'Number of queries that have or need a signature, by result: signed, missing, BADKEY, BADSIG, BADTIME, BADTRUNC, or FORMERR.',
      ['result'],
    );
    const missing = counted.with('missing');
    const now = (): number => Math.floor(clock.wall() / 1000);

    const sealed = (reply: Reply, on: Sealing): Reply => {
      const { rest } = reply;
      if (rest === null) return reply;
      return reply.with({
        rest: () => {
          const more = rest();
          if (more === null) return null;
          const following = on.seal.next(now());
          on.signature.seal = following;
          return sealed(more, { signature: on.signature, seal: following });
        },
      });
    };

    const refuse = ({ verdict, rcode, key }: TsigProof, query: Query): Reply => {
      const what = `${query.name} ${typeName(query.type)}`;
      log.debug(`TSIG validation failed: ${what}: ${verdict}, key "${key}"`);
      return failure(rcode, 'tsig');
    };

    const isRequired = ({ type, opcode, depth }: Query): boolean =>
      depth === 0 &&
      (types === 'all' || types.has(type) || opcodes === 'all' || opcodes.has(opcode));

    return (query) => {
      const { signature } = query;
      if (signature === null) {
        if (!isRequired(query) || !zone.holds(query)) return next(query);
        missing.add(1);
        log.debug(`rejecting '${typeName(query.type)}' request without TSIG`);
        return unsigned;
      }
      // If it replaces another query, it has already been verified.
      if (signature.seal !== null || !zone.holds(query)) return next(query);
      const proof = keys.prove(signature, now());
      const { seal } = proof;
      counted.with(proof.verdict).add(1);
      signature.seal = seal;
      if (proof.verdict !== 'signed' || seal === null) return refuse(proof, query);
      const reply = next(query);
      const on = { signature, seal };
      return isLater(reply) ? andThen(reply, sealed, on) : sealed(reply, on);
    };
  },
});

/** Parses `WORD all|none|NAME…`. */
function requirement(
  word: string,
  show: string,
  numberOf: (name: string) => number | null,
  unknown: string,
  help: { readonly help: string },
): PropertySchema<Required> {
  const read = (words: readonly Token[], refuse: Refuse): Required => {
    if (words.length === 0) return refuse('Wrong argument count or unexpected line ending');
    if (words[0]!.text === 'all') return 'all';
    if (words[0]!.text === 'none') return nothing;
    return new Set(
      words.map(
        ({ text, place }) =>
          numberOf(text) ??
          refuse(`${unknown} '${text}'`, place, {
            hint: 'Write the names used in the RFCs, or all, or none.',
          }),
      ),
    );
  };
  return custom(word, `all|none|${show}…`, read, {
    ...help,
    default: nothing,
    defaultText: 'none',
  });
}

function opcodeNumber(name: string): number | null {
  return new Map<string, number>(Object.entries(OPCODE)).get(name.toUpperCase()) ?? null;
}

const passed = (): void => undefined;

/**
 * Returns all keys given in the Corefile and in files.
 * @throws Problem
 */
function keysOf(
  { secrets, files }: TsigOptions,
  named: NamedFiles,
  broken: (why: string) => void,
): TsigKeys {
  const keys = secrets.map(({ name, secret }) => makeKey(name, secret.text, passed) as TsigKey);
  const names = new Set(keys.map(({ name }) => printName(name)));
  for (const file of files) {
    for (const key of readKeyFile(file, 'plugin/tsig: ', named, broken)) {
      const name = printName(key.name);
      if (names.has(name))
        throw new Problem({
          code: 'directive-value',
          text: `plugin/tsig: key "${name}" redefined`,
          hint: `${named.path(file)} has a key whose name is already in use.`,
          remedy: 'Keep one of them, or give the other a different name.',
        });
      names.add(name);
      keys.push(key);
    }
  }
  return new TsigKeys(keys);
}

const unsigned = failure(RCODE.REFUSED, 'tsig', null, [
  { code: EDE.PROHIBITED, text: 'this query must be signed (TSIG)' },
]);

interface Sealing {
  readonly signature: QuerySignature;
  readonly seal: ReplySeal;
}
