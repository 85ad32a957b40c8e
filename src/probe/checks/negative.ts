/** A name of the cluster that is not there: NXDOMAIN at once. Clients with a search path get more of these than of anything else. */
import { TYPE } from '../../wire/iana.ts';
import { allServers, askOne, mustBeMissing, observe, question, serverText } from '../asking.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional } from '../../kube/manifests/yaml-shape.ts';
import { domainName } from '../parameters.ts';

/** The check `negative`. */
export const negative: CheckKind = checkKind({
  name: 'negative',
  summary: 'a name of the cluster that is not there is NXDOMAIN',
  needs: 'any',
  parameters: {
    zone: optional(domainName, 'default.svc.cluster.local.', 'below which a name is made up'),
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
