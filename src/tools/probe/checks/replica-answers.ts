/**
 * Every replica answers at its own address: behind the service's address one bad replica of many is
 * hard to see.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import { askOne, mustHaveData, observe, question, serverText } from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName, recordType } from '../parameters.ts';

/** The check `replica-answers`. */
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
