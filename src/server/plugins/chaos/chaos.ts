/** `chaos`: version, authors and host name in class CH. */
import { hostname } from 'node:os';
import { optional, rest } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import type { Random } from '../../base/random.ts';
import { ownVersion } from '../../engine/contract/own-version.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { CLASS, RCODE, TYPE } from '../../wire/iana.ts';
import { SECTION } from '../../wire/writer.ts';

const syntax = directive({
  name: 'chaos',
  summary: "answers queries about the server's version and identity (class CH)",
  repeat: 'first',
  unread: ['braces'],
  args: {
    version: optional(word('VERSION'), {
      help: 'answer to `version.bind` and `version.server` (default: `ndots-` and its version number)',
    }),
    authors: rest(word('AUTHORS'), { help: 'answer to `authors.bind`' }),
  },
});

/** Maximum length of a character string. */
const TEXT_MAX = 255;

/**
 * Answers `version.bind`, `version.server`, `authors.bind`, `hostname.bind` and `id.server`, and passes everything else
 * on.
 */
export const chaos: Plugin = definePlugin({
  syntax,
  plan(_options, plan) {
    plan.anyClass = true;
  },
  setup(options, { writer, random }, next) {
    const version = [characters(options.version ?? `ndots-${ownVersion()}`)];
    const names = options.authors.length === 0 ? ['the ndots authors'] : options.authors;
    const authors = [...new Set(names)].toSorted().map(characters);
    const host = [characters(hostname() || 'localhost')];
    const texts: Readonly<Record<string, readonly Uint8Array[]>> = {
      'version.bind.': version,
      'version.server.': version,
      'authors.bind.': authors,
      'hostname.bind.': host,
      'id.server.': host,
    };
    return (query) => {
      if (query.class !== CLASS.CH || query.type !== TYPE.TXT) return next(query);
      const { name } = query;
      if (!Object.hasOwn(texts, name)) return next(query);
      writer.reply(query, 0);
      for (const text of shuffled(texts[name]!, random)) {
        writer.open(SECTION.answer, null, TYPE.TXT, 0, CLASS.CH);
        writer.bytes(text);
        writer.close();
      }
      return writer.finish(RCODE.NOERROR, 'chaos');
    };
  },
});

/** Encodes a text as one character string, which is a length byte followed by the text's bytes. */
function characters(text: string): Uint8Array {
  const bytes = Buffer.from(text).subarray(0, TEXT_MAX);
  return Uint8Array.of(bytes.length, ...bytes);
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  const out = [...items];
  for (let left = out.length; left > 1;) {
    const drawn = random.integer(left--);
    [out[left], out[drawn]] = [out[drawn]!, out[left]!];
  }
  return out;
}
