/**
 * Checks that servers support EDNS with 1232 bytes (or another size), and that replies are no larger. Resolvers have
 * used that size since DNS flag day 2020.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import {
  allServers,
  askOne,
  mustHaveData,
  observe,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional, whole } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, recordType } from '../parameters.ts';

export const edns1232: CheckKind = checkKind({
  name: 'edns-1232',
  summary: 'queries that advertise 1232 bytes with EDNS get EDNS replies of at most that size',
  needs: 'any',
  parameters: {
    name: optional(domainName, 'kubernetes.default.svc.cluster.local.', 'what is asked'),
    type: optional(recordType, TYPE.A, 'type of records'),
    size: optional(whole(512, 4096), 1232, 'bytes that the client accepts'),
  },
  run({ name, type, size: most }, context) {
    const asked = question(name, type, most);
    return Promise.all(
      allServers(context).map(async (server) => {
        const result = await askOne(context, server, asked);
        const verdict = mustHaveData(result, asked);
        const { reply, size } = result;
        if (verdict.state === 'ok' && reply?.edns === null)
          return observe(serverText(server), [result], {
            state: 'failed',
            text: `${name}: the reply has no OPT record, so something on the path removes EDNS`,
          });
        if (verdict.state === 'ok' && size > most)
          return observe(serverText(server), [result], {
            state: 'failed',
            text: `${name}: ${size} bytes for a client that accepts ${most}`,
          });
        return observe(serverText(server), [result], verdict);
      }),
    );
  },
});
