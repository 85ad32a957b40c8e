/** Checks that a name resolves to exactly these addresses. */
import { TYPE } from '../../../server/wire/iana.ts';
import {
  allServers,
  askOne,
  brief,
  dataOfAnswer,
  observe,
  outcome,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import { address, optional, required, word } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, several } from '../parameters.ts';

export const expectedAddresses: CheckKind = checkKind({
  name: 'expected-addresses',
  summary: 'a name has exactly the expected addresses',
  needs: 'any',
  parameters: {
    name: required(domainName, 'what is asked'),
    addresses: required(several(address), 'the expected addresses: IPv4, IPv6 or both'),
    at: optional(word(['vip', 'replicas', 'both']), 'both', 'the servers to query'),
  },
  async run({ name, addresses, at }, context) {
    const servers = at === 'both' ? allServers(context) : context[at];
    const found: Observation[] = [];
    for (const server of servers) {
      for (const type of [TYPE.A, TYPE.AAAA]) {
        const wanted = addresses.filter((each) => each.includes(':') === (type === TYPE.AAAA));
        if (wanted.length === 0) continue;
        const result = await askOne(context, server, question(name, type, 1232));
        const given = dataOfAnswer(result, type);
        const missing = wanted.filter((each) => !given.includes(each));
        const other = given.filter((each) => !wanted.includes(each));
        const fine = missing.length === 0 && other.length === 0;
        const wrong = [
          ...(missing.length > 0 ? [`missing ${brief(missing)}`] : []),
          ...(other.length > 0 ? [`not expected ${brief(other)}`] : []),
        ].join(', ');
        found.push(
          observe(`${serverText(server)} ${type === TYPE.A ? 'A' : 'AAAA'}`, [result], {
            state: fine ? 'ok' : 'failed',
            text: fine
              ? `${name} ${brief(given)}`
              : given.length === 0
                ? `${name}: ${outcome(result, type)}, expected ${brief(wanted)}`
                : `${name}: ${wrong}`,
          }),
        );
      }
    }
    return found;
  },
});
