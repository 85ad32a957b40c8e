/** `whoami`: answers with the client's address. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { joinNames, parseName } from '../../wire/name.ts';
import { SECTION } from '../../wire/writer.ts';

const syntax = directive({
  name: 'whoami',
  summary: "answers with the client's address, port and transport",
  repeat: 'first',
});

const udp = parseName('_udp.');
const tcp = parseName('_tcp.');

/**
 * Ends the chain for any name and type. The answer section remains empty, and all records are in the additional
 * section.
 */
export const whoami: Plugin = definePlugin({
  syntax,
  setup(_options, context) {
    const { writer } = context;
    return (query) => {
      const { family, peer, peerAt, peerPort } = query;
      writer.reply(query, FLAG.AA);
      writer.open(SECTION.additional, null, family === 4 ? TYPE.A : TYPE.AAAA, 0, query.class);
      writer.bytes(peer, peerAt, family === 4 ? 4 : 16);
      writer.close();
      const label = query.overStream ? tcp : udp;
      const owner = joinNames(label, query.wireName);
      if (owner !== null) {
        writer.open(SECTION.additional, owner, TYPE.SRV, 0, query.class);
        writer.u32(0); // priority and weight
        writer.u16(peerPort);
        writer.u8(0); // the target is the root: there is no host name
        writer.close();
      }
      return writer.finish(RCODE.NOERROR, 'whoami');
    };
  },
});
