/**
 * Checks that a nonexistent cluster name immediately gets NXDOMAIN. Because of search paths, that is how most client
 * queries are answered.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import {
  allServers,
  askOne,
  mustBeMissing,
  observe,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional } from '../../../server/kube/manifests/yaml-shape.ts';
import { domainName } from '../parameters.ts';

export const negative: CheckKind = checkKind({
  name: 'negative',
  summary: 'a missing cluster name gets NXDOMAIN',
  needs: 'any',
  parameters: {
    zone: optional(domainName, 'default.svc.cluster.local.', 'domain of the random name'),
  },
  run({ zone }, context) {
    return Promise.all(
      allServers(context).map(async (server) => {
        const name = `ndots-check-${context.random.integer(0xffff_ffff).toString(36)}.${zone}`;
        const result = await askOne(context, server, question(name, TYPE.A));
        return observe(serverText(server), [result], mustBeMissing(result, name, TYPE.A));
      }),
    );
  },
});
