/**
 * Checks that forward and reverse lookups agree, so that an address's PTR name resolves back to that address. Logs and
 * Kerberos depend on it.
 */
import { parseAddress } from '../../../server/base/ip.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { nameOfAddress } from '../../../server/wire/reverse-name.ts';
import {
  allServers,
  askOne,
  brief,
  dataOfAnswer,
  failed,
  observe,
  outcome,
  question,
  serverText,
  type ProbeVerdict,
} from '../probe-queries.ts';
import { checkKind, type CheckKind, type Observation, type ProbeContext } from '../check.ts';
import type { ProbeResult, ProbeServer } from '../network.ts';
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, KNOWN_NAME, several } from '../parameters.ts';

export const ptr: CheckKind = checkKind({
  name: 'ptr',
  summary: 'the reverse names of Services and pods lead back to their addresses',
  needs: 'any',
  parameters: {
    names: optional(
      several(domainName),
      [KNOWN_NAME],
      'services, or pods by their names in a headless service',
    ),
  },
  async run({ names }, context) {
    const found: Observation[] = [];
    for (const server of allServers(context))
      for (const name of names) {
        const asked: ProbeResult[] = [];
        const verdict = await compare(name, server, context, asked);
        found.push(observe(`${serverText(server)} ${name}`, asked, verdict));
      }
    return found;
  },
});

/** @param asked collects all results */
async function compare(
  name: string,
  server: ProbeServer,
  context: ProbeContext,
  asked: ProbeResult[],
): Promise<ProbeVerdict> {
  const ask = async (which: string, type: number): Promise<ProbeResult> => {
    const result = await askOne(context, server, question(which, type, 1232));
    asked.push(result);
    return result;
  };
  const addresses: string[] = [];
  for (const type of [TYPE.A, TYPE.AAAA])
    addresses.push(...dataOfAnswer(await ask(name, type), type));
  if (addresses.length === 0)
    return failed(`${name}: ${outcome(asked[0]!, TYPE.A)}, so there is no address to look up`);
  // A few addresses are enough to check a large service.
  for (const address of addresses.slice(0, 4)) {
    const type = address.includes(':') ? TYPE.AAAA : TYPE.A;
    const reverse = nameOfAddress(parseAddress(address)!);
    const result = await ask(reverse, TYPE.PTR);
    const back = dataOfAnswer(result, TYPE.PTR);
    if (back.length === 0) return failed(`${address} has no name: ${outcome(result, TYPE.PTR)}`);
    let agrees = false;
    for (const each of back.slice(0, 4))
      agrees ||= each === name || dataOfAnswer(await ask(each, type), type).includes(address);
    if (!agrees)
      return failed(`${address} is called ${brief(back)}, which does not have that address`);
  }
  return { state: 'ok', text: `${name} ${brief(addresses)} and back` };
}
