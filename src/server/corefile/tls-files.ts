/** The property `tls [CERT KEY] [CA]`, for plugins that are TLS clients. */
import { custom, type PropertySchema } from './properties.ts';

/** Paths of the PEM files given to `tls`; empty if not given. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

/**
 * Parses a single word as the CA file, and two words as certificate and key.
 * @param tooMany the message for more than three words
 */
export function tlsFiles(
  help: string,
  tooMany: (words: readonly string[]) => string,
): PropertySchema<TlsFiles | null> {
  return custom<TlsFiles>(
    'tls',
    '[CERT KEY] [CA]',
    (words, refuse) => {
      const texts = words.map(({ text }) => text);
      const [one = '', two = '', three = ''] = texts;
      switch (words.length) {
        case 0:
          return { certificate: '', key: '', authority: '' };
        case 1:
          return { certificate: '', key: '', authority: one };
        case 2:
          return { certificate: one, key: two, authority: '' };
        case 3:
          return { certificate: one, key: two, authority: three };
        default:
          return refuse(tooMany(texts));
      }
    },
    { help },
  );
}
