import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { serveAnswers } from '../../../test/kit/local-answers.ts';
import { runCommand } from '../../../test/kit/trace-command.ts';
import { loadVerb } from './verbs.ts';
import type { VerbName } from './verb-names.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-wrong-'));
after(() => rmSync(directory, { recursive: true, force: true }));
function written(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}
const bad = written('bad.yaml', 'a: [\n');
const noKey = written('key', '# no key\n');
const binary = written('binary', '\0'.repeat(100));
const mapping = written('mapping.yaml', 'a: 1\n');
mkdirSync(join(directory, 'dir'));

const ofManifests = ['trace', 'a', '--manifests', 'examples/cluster'];

/** Command lines, each with the expected exit code and message. */
const cases: readonly (readonly [words: readonly string[], code: number, told: RegExp])[] = [
  [['trace', 'a', '-c', ''], 3, /^ndots trace: -c needs the name of a client/],
  [['trace', 'a', '-c', ','], 3, /-c needs the name of a client/],
  [
    ['trace', 'a', '--resolver', 'musl'],
    3,
    /unknown option --resolver\n {2}Did you mean --client\?/,
  ],
  [['lint', '--format', 'json'], 3, /unknown option --format\n {2}Did you mean --output\?/],
  [
    ['doctor', 'nd3013'],
    3,
    /nd3013 is the code of a finding, .*\n {2}To explain it: ndots doctor --explain ND3013/,
  ],
  [
    ['lint', 'CF34'],
    3,
    /CF34 is the code of a rule, .*\n {2}To explain it: ndots lint --explain CF34/,
  ],
  [
    ['trace', 'a', '--answers', bad],
    2,
    /bad\.yaml is not valid YAML: Flow sequence[^\n]*\] \[bad-answers-file\]\n {2}at /,
  ],
  [
    ['trace', 'a', '-n', 'b ad', '--manifests', 'examples/cluster'],
    3,
    /-n takes the name of a namespace, not "b ad"/,
  ],
  [['doctor', 'cluster', '-n', 'Kube_System'], 3, /-n takes the name of a namespace/],
  [['exec', 'web', '-n', '', '--', 'trace', 'a'], 3, /-n takes the name of a namespace, not ""/],
  [
    ['exec', 'web', '--', 'cat', '/etc/hosts'],
    3,
    /no verb 'cat'\n {2}After --, give an ndots verb,/,
  ],
  [['node', '--', 'version'], 3, /node needs a node\n {2}Example: ndots node node1 -- capture/],
  [['node', 'node1'], 3, /node needs a command after --/],
  [['node', 'Node_1', '--', 'version'], 3, /"Node_1" is not the name of a node/],
  [['node', 'node1', '--', 'captur'], 3, /Did you mean 'capture'\?/],
  [
    ['query', 'a.b', 'TYPE99999'],
    3,
    /"TYPE99999" is not a record type\n {2}Type numbers go up to /,
  ],
  [['query', '@nohost.invalid', 'a.b'], 2, /does not resolve: nohost\.invalid: the name /],
  [['query', 'a.b', '-k', noKey], 2, /key contains no key \[bad-key-file\]/],
  [['webhook', 'serve', '--advice', mapping], 2, /"a: 1" is not NAMESPACE\/WORKLOAD: NDOTS/],
  [['doctor', '--rbac', 'extra.pcap'], 3, /--rbac does not accept input: omit "extra\.pcap"/],
  [
    ['doctor', '--explain', 'ND3001', 'x.pcap'],
    3,
    /--explain does not accept input: omit "x\.pcap"/,
  ],
  [['webhook', 'policy', '--advice', 'x'], 3, /--advice needs serve/],
  [['webhook', 'policy', '--mode', 'enforce'], 3, /--mode needs serve/],
  [['webhook', 'serve', '--name', 'x'], 3, /--name needs policy/],
  [
    ['etcd', 'get', 'a.b', '--cacert', '/nowhere', '--endpoints', 'https://127.0.0.1:1'],
    2,
    /cannot read \/nowhere: no such file or directory \[etcd\]\n {2}Check the --cacert, --cert and --key files/,
  ],
  [['size', '--follow'], 3, /--follow needs --namespace, --configmap and --target/],
  [['lab', 'rules', '--manifests', 'examples/cluster', '-o', 'json'], 3, /rules does not take -o/],
  [['lab', 'down', '-o', 'json'], 3, /down does not take -o/],
  [
    [...ofManifests, '--from', 'deploy/web', '--context', 'foo', '--kubeconfig', '/nonexistent'],
    3,
    /--manifests cannot be combined with --cluster/,
  ],
  [[...ofManifests, '--as-group', 'x'], 3, /--manifests cannot be combined with --cluster/],
  [[...ofManifests, '-n', 'nosuch'], 2, /there is no namespace nosuch in examples\/cluster/],
  [['trace', 'a', '--manifests', binary], 2, /binary is not YAML: it is binary/],
  [['trace', 'a', '--as-group', 'x'], 3, /--as-group needs a pod/],
  [['trace', 'a', '--replay', 'x.json'], 3, /--replay prints a saved trace and does not take "a"/],
  [['trace', '--replay', 'x.json', '--plan'], 3, /does not take "--plan"/],
  [['webhook', 'policy', '--kubeconfig', 'x'], 3, /--kubeconfig needs serve/],
  [['webhook', 'policy', '--as', 'x'], 3, /--as needs serve/],
  [['webhook', 'policy', '--as-group', 'x'], 3, /--as-group needs serve/],
  [['lint', '--explain', 'CF01', 'foo'], 3, /--explain does not accept input: omit "foo"/],
  [['lint', '--rules', 'foo'], 3, /--rules does not accept input: omit "foo"/],
  [['lint', '--rules', '--only', 'CF01'], 3, /--rules does not accept input: omit "--only"/],
  [['lint', '--explain', 'CF01', '--context', 'x'], 3, /omit "--context"/],
  [['lint', '--fix', '--context', 'x'], 3, /work on files, not on standard input or the cluster/],
  [['doctor', '--explain', 'ND3001', '--cluster'], 3, /does not accept input: omit "--cluster"/],
  [['doctor', 'x.pcap', '--name', 'a.b'], 3, /--name needs a cluster/],
  [['check', 'list', '-f', 'x'], 3, /list does not take --file/],
  [['check', 'init', '-o', 'json'], 3, /init does not take --output/],
  [['check', 'run', '--listen', ':1'], 3, /run does not take --listen/],
  [['check', 'serve', '--nagios'], 3, /serve does not take --nagios/],
  [['check', 'serve', '--keep-failed', '1'], 3, /--keep-failed needs --kuberhealthy/],
  [['lab', 'run', 'all', '--context', 'x'], 3, /run does not take --context/],
  [['lab', 'list', '--corefile', 'x'], 3, /list does not take --corefile/],
  [['size', '--nodes', '1', '--cores', '1', '--cpu', '1'], 3, /--cpu needs --metrics or --follow/],
  [['size', '--follow', '--nodes', '1'], 3, /--follow does not take --nodes/],
  [['etcd', 'get', 'a.b', '--ttl', '5'], 3, /get does not take --ttl/],
  [['etcd', 'put', 'a.b', '10.0.0.1', '--below'], 3, /put does not take --below/],
  [['cache', 'flush', '--all', '-n', 'x'], 3, /--namespace needs --cluster/],
  [['lint', 'x', '--timeout', '5s'], 3, /--timeout needs --live\n/],
  [['check', 'run', '--context', 'x'], 3, /--context needs --service, --file or /],
  [['check', 'serve', '--kuberhealthy', '--vip', '10.0.0.1'], 3, /--vip needs a check file/],
  [
    ['check', 'run', '-o', 'nagios', '--fail-on', 'warning'],
    3,
    /--fail-on cannot be combined with -o nagios/,
  ],
  [['doctor', 'x.pcap', '--for', '5s'], 3, /--for needs -i, --interface, --netns, /],
  [['doctor', 'cluster', '--evidence', 'x'], 3, /--evidence needs a capture/],
  [['doctor', 'cluster', '--port', '5353'], 3, /--port needs a capture/],
  [['capture', 'x.pcap', '--netns', '/nowhere'], 3, /files cannot be combined with a live capture/],
  [
    ['capture', '--dnstap', 'tcp:127.0.0.1:1', '--pid', '1'],
    3,
    /--dnstap cannot listen in another network/,
  ],
  [['capture', 'join', 'a', 'b', '--count', '5'], 3, /join does not take --count/],
  [
    ['cache', 'flush', '--all', '--cluster', '--ca', 'x'],
    3,
    /does not verify the pods’ certificates/,
  ],
  [['etcd', 'list', '--password', 'x'], 3, /--password needs --user/],
  [
    ['lab', 'run', 'all', '--model', '--pcap', 'x'],
    3,
    /--model sends no packets and does not take --pcap/,
  ],
  [
    ['rollout', 'rehearse', '--model', '-m', 'nftables'],
    3,
    /--model does not use kube-proxy rules, so --mode does not apply/,
  ],
  [['trace', 'a', '--cgo'], 3, /--cgo needs --client\n/],
  [['trace', 'a', '--compare'], 3, /--compare needs --client or --replay/],
  [['trace', 'a', '--plan', '--port', '5353'], 3, /--port has no effect, because nothing is sent/],
  [
    ['trace', 'a', '--from', 'deploy/web', '--resolv-conf', 'x'],
    3,
    /--from POD cannot be combined with --resolv-conf/,
  ],
  [['serve', '-x'], 3, /flag provided but not defined: -x\n/],
];

describe('reports the error, and the exit code distinguishes usage from failure:', () => {
  for (const [words, code, told] of cases)
    test(words.join(' ').replaceAll(`${directory}/`, ''), async () => {
      const [verb = '', ...rest] = words;
      const ran = await runCommand(await loadVerb(verb as VerbName), rest);
      assert.match(ran.err, told);
      assert.equal(ran.code, code);
      assert.equal(ran.out, '');
    });
});

test('prints warnings about manifests once, with and without a Corefile', async () => {
  const trace = await loadVerb('trace');
  const corefile = written('Corefile', '.:53 {\n kubernetes cluster.local\n}\n');
  for (const more of [[], ['--corefile', corefile]]) {
    const { err } = await runCommand(trace, ['a', '--manifests', bad, ...more]);
    assert.equal(err.split('this is not YAML').length, 2, err);
  }
});

test('the report of bench fits a terminal of 40 columns', async () => {
  const server = await serveAnswers({ rules: [] });
  const words = [`127.0.0.1:${server.port}`, '--for', '1', '--rate', '100'];
  const { out } = await runCommand(await loadVerb('bench'), words, {}, { columns: 40 });
  await server.close();
  assert.match(out, /^sent [^]*up to .* #+ /m);
  for (const line of out.split('\n')) assert.ok(line.length <= 40, line);
});

test('rbac of the cluster is also printed with the word cluster', async () => {
  const { code } = await runCommand(await loadVerb('doctor'), ['cluster', '--rbac']);
  assert.equal(code, 0);
});
