/**
 * Checks TCP on the DNS port. Clients need it for any answer too large for UDP, but network policies often forget it.
 */
import { allServers, mustHaveData, observeEach, question } from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { askedName, askedType } from '../parameters.ts';

export const tcp: CheckKind = checkKind({
  name: 'tcp',
  summary: 'the service address and the replicas answer over TCP',
  needs: 'any',
  parameters: { name: askedName, type: askedType },
  run: ({ name, type }, context) =>
    observeEach(context, allServers(context), question(name, type), mustHaveData, {
      protocol: 'tcp',
    }),
});
