/** Actually executes the steps in deploy/node-cache/Dockerfile and tests the resulting node cache image. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { helmTemplate, noHelm } from '../kit/helm.ts';
import { noImages } from '../kit/image.ts';
import { imageForTests, ended } from '../kit/image-suite.ts';
import { containersOf } from '../kit/our-containers.ts';

const template = `
.:53 {
    errors
    bind __PILLAR__LOCAL__DNS__
    template IN A . {
        answer "{{ .Name }} 60 IN A 192.0.2.9"
    }
}
`;

const chart = { nodeCache: { enabled: true }, service: { clusterIP: '10.0.0.10' } };

describe('the image of the node cache', { skip: noImages() ?? false }, () => {
  const built = imageForTests('deploy/node-cache/Dockerfile', {
    '/etc/coredns/Corefile.base': template,
  });
  const run = (words: readonly string[]): string => ended(words, 20_000).text;

  test('has the programs that rules are made with', (t) => {
    const of = built(t);
    if (of === null) return;
    const script = 'for program in iptables ip6tables nft ip; do command -v $program; done';
    const text = run(of.container([script], ['sh', '-c']));
    assert.equal(text.trim().split('\n').length, 4, text);
  });

  for (const container of [
    ...containersOf(readFileSync('deploy/node-cache/node-local-dns.yaml', 'utf8')),
    ...(noHelm() === null ? containersOf(helmTemplate(chart)) : []).filter(({ image }) =>
      image.startsWith('ndots-node-cache'),
    ),
  ])
    test(`runs in the security context of ${container.name}`, async (t) => {
      const of = built(t);
      if (of === null) return;
      const { command, args, security, podSecurity } = container;
      if (command?.[0] === '/bin/sh') {
        of.put('/run/teardown/.made', '');
        const child = start('teardown', of.container(args, command, {}, security, podSecurity));
        t.after(() => child.stop());
        // The commands that the node cache leaves in the pipe are executed when it closes its end.
        const directory = '/run/teardown';
        const leave = `until [ -p ${directory}/pipe ]; do sleep 0.1; done; echo 'echo gone > ${directory}/done' > ${directory}/pipe`;
        const read = `until [ -s ${directory}/done ]; do sleep 0.1; done; cat ${directory}/done; rm ${directory}/done ${directory}/pipe`;
        assert.equal(run(of.container([`${leave}; ${read}`], ['sh', '-c'], {}, {})), 'gone\n');
        child.signal('SIGTERM');
        assert.equal(await child.exitCode, 0, child.output());
        return;
      }
      assert.match(run(of.container(['-version'], command, {}, security, podSecurity)), /^ndots-/);
    });

  for (const capabilities of [
    { drop: ['ALL'] },
    { drop: ['ALL'], add: ['NET_ADMIN', 'NET_BIND_SERVICE'] },
  ])
    test(`runs with the capabilities ${JSON.stringify(capabilities)}`, (t) => {
      const of = built(t);
      if (of === null) return;
      const security = { allowPrivilegeEscalation: false, capabilities };
      assert.match(run(of.container(['-version'], null, {}, security)), /^ndots-/);
    });

  test('begins with /node-cache, accepts the flags of NodeLocal DNSCache, and answers', async (t) => {
    const of = built(t);
    if (of === null) return;
    const where = ['-localip', '127.0.0.53', '-setupinterface=false', '-setupiptables=false'];
    const files = ['-conf', '/tmp/Corefile', '-basecorefile', '/etc/coredns/Corefile.base'];
    const child = start('node-cache', of.container([...where, ...files]));
    t.after(() => child.stop());
    await printed(child, /^ndots-\d/m, 30_000);
    const asked = ['a.test', '+short', '+time=3', '+tries=2'];
    for (const way of ['+notcp', '+tcp'])
      assert.equal(run(of.beside('dig', '@127.0.0.53', ...asked, way)).trim(), '192.0.2.9');
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0, child.output());
  });
});
