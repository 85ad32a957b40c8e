/**
 * Checks that every replica answers at its own address. It is hard to spot one bad replica among many behind the
 * service address.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import { askOne, mustHaveData, observe, question, serverText } from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, recordType } from '../parameters.ts';

export const replicaAnswers: CheckKind = checkKind({
  name: 'replica-answers',
  summary: 'every replica answers at its own address',
  needs: 'replicas',
  parameters: {
    name: optional(domainName, 'kubernetes.default.svc.cluster.local.', 'what is asked'),
    type: optional(recordType, TYPE.A, 'type of records'),
  },
  run({ name, type }, context) {
    const asked = question(name, type);
    return Promise.all(
      context.replicas.map(async (replica) => {
        const result = await askOne(context, replica, asked);
        return observe(serverText(replica), [result], mustHaveData(result, asked));
      }),
    );
  },
});
