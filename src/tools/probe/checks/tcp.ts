/**
 * Checks TCP on the DNS port. Clients need it for any answer too large for UDP, but network policies often forget it.
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
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, recordType } from '../parameters.ts';

export const tcp: CheckKind = checkKind({
  name: 'tcp',
  summary: 'the service address and the replicas answer over TCP',
  needs: 'any',
  parameters: {
    name: optional(domainName, 'kubernetes.default.svc.cluster.local.', 'what is asked'),
    type: optional(recordType, TYPE.A, 'type of records'),
  },
  run({ name, type }, context) {
    const asked = question(name, type);
    return Promise.all(
      allServers(context).map(async (server) => {
        const result = await askOne(context, server, asked, { protocol: 'tcp' });
        return observe(serverText(server), [result], mustHaveData(result, asked));
      }),
    );
  },
});
