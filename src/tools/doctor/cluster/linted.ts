/** Lints a running cluster’s configuration: its ConfigMaps, workloads and pod settings. */
import { child, type JsonObject } from '../../../server/base/json-object.ts';
import type { GivenFile } from '../../lint/gather.ts';
import type { LintReport } from '../../lint/lint.ts';
import { fileOf, type ReadList } from './objects.ts';
import type { ClientGroup } from './pods.ts';

/**
 * The linter's problems; null if there is nothing to lint. @param cluster its name in messages.
 * @param clients kinds of clients with non-default settings
 */
export async function lintOf(
  {
    cluster,
    lint,
  }: {
    readonly cluster: string;
    readonly lint: (files: readonly GivenFile[]) => Promise<LintReport>;
  },
  lists: readonly ReadList[],
  clients: readonly ClientGroup[],
): Promise<LintReport | null> {
  const files = lists
    .filter(({ wanted, failure }) => failure === null && isLinted(wanted.kind, wanted.namespace))
    .map(({ wanted, items }) =>
      fileOf(
        cluster,
        wanted.kind,
        wanted.kind === 'ConfigMap' ? items.filter(holdsCorefile) : items,
      ),
    );
  if (clients.length > 0)
    files.push(
      fileOf(
        cluster,
        'Pod',
        clients.map(({ sample }) => sample),
      ),
    );
  const report = await lint(files);
  return report.subject.corefiles.length === 0 && report.findings.length === 0 ? null : report;
}

/** Only Services in the DNS namespace are linted. Those in other namespaces are only queried. */
function isLinted(kind: string, namespace: string | null): boolean {
  return kind === 'Service'
    ? namespace !== null
    : !['Pod', 'EndpointSlice', 'Node', 'HorizontalPodAutoscaler'].includes(kind);
}

function holdsCorefile(object: JsonObject): boolean {
  return Object.keys(child(object, 'data')).some((key) =>
    /corefile|\.(override|server)$/i.test(key),
  );
}
