/** `local`: localhost and its reverse zones. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { onOff, worded } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { RCODE, TYPE, typeName } from '../../wire/iana.ts';
import { parseName, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter, type Section } from '../../wire/writer.ts';

const syntax = directive({
  name: 'local',
  summary: 'answers queries for localhost and its reverse zones',
  repeat: 'merge',
  properties: {
    prefix: setting(
      'localhost_prefix',
      worded(
        onOff(),
        (word) => `localhost_prefix expects 'on' or 'off', got ${JSON.stringify(word)}`,
      ),
      {
        default: true,
        help: 'whether names that begin with `localhost.` also resolve to the loopback addresses',
      },
    ),
  },
});

const TTL_SECONDS = 604_800;
const localhost = parseName('localhost.');
const label = localhost.subarray(0, localhost.length - 1);
const mailbox = parseName('root.localhost.');
const reverseZones = ['0.in-addr.arpa.', '127.in-addr.arpa.', '255.in-addr.arpa.'].map(parseName);
const loopbackPointer = parseName('1.0.0.127.in-addr.arpa.');
const v4 = Uint8Array.of(127, 0, 0, 1);
const v6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

/**
 * Answers localhost, everything below it and its reverse zones locally (RFC 6761 section 6.3), so that they never reach
 * an upstream.
 */
export const local: Plugin = definePlugin({
  syntax,
  setup(options, context, next) {
    const { writer, log } = context;
    const count = context.metrics.counter(
      'coredns_local_localhost_requests_total',
      'Counter of localhost.<domain> requests.',
    );
    return (query) => {
      const { folded, nameLength } = query;
      const below = suffixAt(folded, localhost, nameLength);
      const prefixed = options.prefix && nameLength > localhost.length && holdsAt(folded, 0, label);
      if (below > 0 || prefixed) {
        count.add(1);
        log.debug(
          () =>
            `Intercepting localhost query for "${query.name.toLowerCase()}" ${typeName(query.type)}, from ${query.client}`,
        );
        return answerHost(writer, query);
      }
      if (below === 0) return answerHost(writer, query, true);
      for (const zone of reverseZones) {
        const at = suffixAt(folded, zone, nameLength);
        if (at >= 0) return answerReverse(writer, query, at);
      }
      return next(query);
    };
  },
});

/** Answers localhost and everything below it with the loopback addresses. */
function answerHost(writer: MessageWriter, query: Query, apex = false): Reply {
  writer.reply(query, 0);
  if (query.type === TYPE.A) writer.record(SECTION.answer, null, TYPE.A, TTL_SECONDS, v4);
  else if (query.type === TYPE.AAAA)
    writer.record(SECTION.answer, null, TYPE.AAAA, TTL_SECONDS, v6);
  else if (!apex || !writeApex(writer, query)) writeSoa(writer, SECTION.authority, null);
  return writer.finish(RCODE.NOERROR, 'local');
}

/** Answers in a reverse zone that starts at offset `at` in the name. Only 127.0.0.1 has a name. */
function answerReverse(writer: MessageWriter, query: Query, at: number): Reply {
  writer.reply(query, 0);
  if (at === 0) {
    if (!writeApex(writer, query)) writeSoa(writer, SECTION.authority, null);
    return writer.finish(RCODE.NOERROR, 'local');
  }
  const zone = query.wireName.subarray(at);
  const { folded, nameLength } = query;
  if (nameLength !== loopbackPointer.length || !holdsAt(folded, 0, loopbackPointer)) {
    writeSoa(writer, SECTION.authority, zone);
    return writer.finish(RCODE.NXDOMAIN, 'local');
  }
  if (query.type === TYPE.PTR) writer.named(SECTION.answer, null, TYPE.PTR, TTL_SECONDS, localhost);
  else writeSoa(writer, SECTION.authority, zone);
  return writer.finish(RCODE.NOERROR, 'local');
}

/** Writes SOA and NS records for a zone's apex. Returns false if the query is for another type. */
function writeApex(writer: MessageWriter, query: Query): boolean {
  if (query.type === TYPE.SOA) writeSoa(writer, SECTION.answer, null);
  else if (query.type === TYPE.NS)
    writer.named(SECTION.answer, null, TYPE.NS, TTL_SECONDS, localhost);
  else return false;
  return true;
}

function writeSoa(writer: MessageWriter, section: Section, owner: WireName | null): void {
  writer.soa(section, owner, TTL_SECONDS, localhost, mailbox, [1, 0, 0, 0, TTL_SECONDS]);
}
