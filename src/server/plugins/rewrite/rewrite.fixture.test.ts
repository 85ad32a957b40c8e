import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { FLAG, RCODE, typeName } from '../../wire/iana.ts';
import { writeRecord, type DnsRecord } from '../../wire/message.ts';
import { printName } from '../../wire/name.ts';
import { printRecord } from '../../wire/print.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { parseRecord } from '../../wire/zone-text.ts';
import { optionsOf } from './changed-query.ts';

/**
 * The answers at the end of the chain: records by `NAME TYPE`. A line that starts with `+` is an additional record, and
 * one that starts with `!` is a failure.
 */
export type Answers = Readonly<Record<string, readonly string[]>>;

export interface Stub {
  readonly plugin: Plugin;
  /**
   * The questions received, as `NAME CLASS TYPE` in the original spelling, followed by `CODE=HEX` for each EDNS option.
   */
  readonly seen: string[];
}

/** A plugin with fixed answers at the end of the chain, which returns promises if `later` is set. */
export function stub(answers: Answers, later = false): Stub {
  const seen: string[] = [];
  const plugin = definePlugin({
    syntax: directive({ name: 'stub', summary: 'answers of a test', repeat: 'once' }),
    setup(_options, { writer }) {
      return (query) => {
        const name = printName(query.wireName);
        const options = optionsOf(query).map(
          ({ code, data }) => ` ${code}=${Buffer.from(data).toString('hex')}`,
        );
        seen.push(
          `${name} ${query.class === 1 ? '' : `CLASS${query.class} `}${typeName(query.type)}${options.join('')}`,
        );
        const found = answers[`${query.name} ${typeName(query.type)}`];
        const answer = (): Reply => {
          if (found?.[0]?.startsWith('!') === true)
            return failure(Number(found[0].slice(1)), 'stub', new Error('broken'));
          writer.reply(query, FLAG.AA);
          for (const line of found ?? []) {
            const section = line.startsWith('+')
              ? SECTION.additional
              : line.startsWith('@')
                ? SECTION.authority
                : SECTION.answer;
            writeRecord(writer, section, parseRecord(line.replace(/^[+@]/, '')));
          }
          return writer.finish(found === undefined ? RCODE.NXDOMAIN : RCODE.NOERROR, 'stub');
        };
        if (!later) return answer();
        const kept = query.keep();
        return Promise.resolve().then(() => {
          query = kept;
          return answer();
        });
      };
    },
  });
  return { plugin, seen };
}

/** Formats each record as `NAME TTL TYPE DATA`. */
export function texts(records: readonly DnsRecord[]): string[] {
  return records.map((record) =>
    printRecord(record)
      .replace(/\sIN\s+/, ' ')
      .replaceAll(/\s+/g, ' '),
  );
}
