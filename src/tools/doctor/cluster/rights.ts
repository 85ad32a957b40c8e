/** Permissions that DNS pods lack. A server that may not list Services never becomes ready. */
import { child, asObject } from '../../../server/base/json-object.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { sendJson } from '../../../server/kube/api/get-json.ts';
import type { Subject } from '../../lint/subject.ts';
import type { DnsPod } from './pods.ts';
import { RIGHTS_WAIT_MS } from '../thresholds/cluster.ts';

/** A permission that a service account does not have. */
export interface MissingRight {
  /** `system:serviceaccount:NAMESPACE:NAME`. */
  readonly account: string;
  readonly verb: string;
  /** `services`, `endpointslices.discovery.k8s.io`. */
  readonly resource: string;
}

/** A cluster’s DNS pods use one or two accounts. */
const ACCOUNTS_MAX = 4;

const always = [
  ['', 'services'],
  ['', 'namespaces'],
  ['discovery.k8s.io', 'endpointslices'],
] as const;

/**
 * The permissions that running DNS pods without the Ready condition lack.
 * @returns null if unknown, because this account may not create SubjectAccessReviews
 */
export async function missingRights(
  client: ApiClient,
  servers: readonly DnsPod[],
  subject: Subject | null,
  signal: AbortSignal,
): Promise<readonly MissingRight[] | null> {
  const stuck = servers.filter(
    ({ role, ready, leaving, waiting }) => role === 'server' && !ready && !leaving && !waiting,
  );
  const accounts = new Set(stuck.map(({ namespace, account }) => `${namespace}:${account}`));
  const resources = [...always, ...(subject !== null && readsPods(subject) ? PODS : [])];
  const missing: MissingRight[] = [];
  try {
    for (const each of [...accounts].slice(0, ACCOUNTS_MAX)) {
      const account = `system:serviceaccount:${each}`;
      for (const [group, plural] of resources)
        for (const verb of ['list', 'watch']) {
          if (await isAllowed(client, { account, verb, group, plural }, signal)) continue;
          missing.push({ account, verb, resource: group === '' ? plural : `${plural}.${group}` });
        }
    }
  } catch (error) {
    if (error instanceof ApiFailure) return null;
    throw error;
  }
  return missing;
}

const PODS = [['', 'pods']] as const;

/** True if a Corefile makes its server watch pods. */
function readsPods({ corefiles }: Subject): boolean {
  return corefiles.some(({ blocks }) =>
    blocks.some(
      (block) =>
        block.directives('autopath').some(({ args }) => args.at(-1)?.text === '@kubernetes') ||
        block
          .directives('kubernetes')
          .some((directive) =>
            (directive.block ?? []).some(
              ({ name, args }) =>
                (name.text === 'pods' && args[0]?.text === 'verified') ||
                (name.text === 'topology' && args[0]?.text === 'pods'),
            ),
          ),
    ),
  );
}

interface Right {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  readonly plural: string;
}

async function isAllowed(
  client: ApiClient,
  { account, verb, group, plural }: Right,
  signal: AbortSignal,
): Promise<boolean> {
  const [, , namespace = ''] = account.split(':');
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: account,
      groups: [
        'system:serviceaccounts',
        `system:serviceaccounts:${namespace}`,
        'system:authenticated',
      ],
      resourceAttributes: { verb, group, resource: plural },
    },
  };
  const answer = await sendJson(client, {
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    task: 'create subjectaccessreviews',
    change: { method: 'POST', contentType: 'application/json', body: JSON.stringify(review) },
    waitMs: RIGHTS_WAIT_MS,
    bytesMax: 64 * 1024,
    signal,
  });
  return child(asObject(answer), 'status')['allowed'] === true;
}
