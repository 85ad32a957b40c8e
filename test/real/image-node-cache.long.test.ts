/** The image of the node's cache: the steps of deploy/node-cache/Dockerfile, really run, and what comes of them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test, type TestContext } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { Image, noImages, NoNetwork } from '../kit/image.ts';

const template = `
.:53 {
    errors
    bind __PILLAR__LOCAL__DNS__
    template IN A . {
        answer "{{ .Name }} 60 IN A 192.0.2.9"
    }
}
`;

describe('the image of the node cache', { skip: noImages() ?? false }, () => {
  let image: Image | null = null;
  let offline = false;

  before(async () => {
    try {
      image = await Image.build('deploy/node-cache/Dockerfile');
    } catch (error) {
      if (!(error instanceof NoNetwork)) throw error;
      offline = true;
    }
    image?.put('/etc/coredns/Corefile.base', template);
  });
  after(() => image?.close());

  const built = (t: TestContext): Image | null => {
    if (offline) t.skip('the registries cannot be reached');
    return image;
  };

  const run = (words: readonly string[]): string => {
    const [program = '', ...rest] = words;
    const { stdout, stderr } = spawnSync(program, rest, { encoding: 'utf8', timeout: 20_000 });
    return stdout + stderr;
  };

  test('has the programs that rules are made with', (t) => {
    const of = built(t);
    if (of === null) return;
    const script = 'for program in iptables ip6tables nft ip; do command -v $program; done';
    const text = run(of.container([script], ['sh', '-c']));
    assert.equal(text.trim().split('\n').length, 4, text);
  });

  test('begins with /node-cache, takes the flags of NodeLocal DNSCache, and answers', async (t) => {
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
