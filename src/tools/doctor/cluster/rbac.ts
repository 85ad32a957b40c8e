/**
 * The rights to examine a cluster, as objects for `kubectl apply`: made from the lists that are
 * read, so that both agree.
 */
import { configured, running, type WantedResource } from './wanted.ts';

/** A service account in the namespace of the DNS pods, with all that is read and nothing else. */
export function rbacManifest(namespace: string): string {
  const all = [...configured(namespace), ...running(namespace)];
  const everywhere = all.filter((each) => each.namespace === null);
  // A resource that may be listed everywhere needs no right for one namespace.
  const inside = all.filter(
    (each) =>
      each.namespace !== null &&
      !everywhere.some(({ group, plural }) => group === each.group && plural === each.plural),
  );
  return `# What "ndots doctor cluster" reads: kubectl apply -f -
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ndots-doctor
  namespace: ${namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ndots-doctor
rules:
${rulesOf(everywhere)}
  # Whether a DNS pod that is not ready may list and watch what it answers from.
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: ndots-doctor
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ndots-doctor
subjects:
  - kind: ServiceAccount
    name: ndots-doctor
    namespace: ${namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ndots-doctor
  namespace: ${namespace}
rules:
${rulesOf(inside)}
  # Metrics of the DNS pods, where they are not reached by their addresses.
  - apiGroups: [""]
    resources: [pods/proxy]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ndots-doctor
  namespace: ${namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ndots-doctor
subjects:
  - kind: ServiceAccount
    name: ndots-doctor
    namespace: ${namespace}
`;
}

function rulesOf(wanted: readonly WantedResource[]): string {
  const groups = Map.groupBy(wanted, ({ group }) => group);
  return [...groups]
    .map(
      ([group, list]) =>
        `  - apiGroups: ["${group}"]\n    resources: [${list.map(({ plural }) => plural).join(', ')}]\n    verbs: [list]`,
    )
    .join('\n');
}
