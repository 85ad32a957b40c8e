/** Checks external names, which the servers forward. They are absolute, so the search path does not apply. */
import {
  allServers,
  askOne,
  mustHaveData,
  observe,
  question,
  serverText,
} from '../probe-queries.ts';
import { checkKind, type CheckKind } from '../check.ts';
import { optional, required, word } from '../../../server/kube/manifests/yaml-shape.ts';
import { askedType, domainName, several } from '../parameters.ts';

export const externalNames: CheckKind = checkKind({
  name: 'external-names',
  summary: 'external names have an answer',
  needs: 'any',
  parameters: {
    names: required(several(domainName), 'what is asked'),
    type: askedType,
    at: optional(word(['vip', 'replicas', 'both']), 'vip', 'the servers to query'),
  },
  run({ names, type, at }, context) {
    const servers = at === 'both' ? allServers(context) : context[at];
    return Promise.all(
      servers.flatMap((server) =>
        names.map(async (name) => {
          const asked = question(name, type, 1232);
          const result = await askOne(context, server, asked);
          return observe(`${serverText(server)} ${name}`, [result], mustHaveData(result, asked));
        }),
      ),
    );
  },
});
