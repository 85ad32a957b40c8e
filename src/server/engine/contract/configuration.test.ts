import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plugins } from '../../../../test/kit/plugins.ts';
import { parseCorefile } from '../../corefile/parse.ts';
import { bindConfiguration, forWorkers } from './configuration.ts';

test('lines needed only by control parts are not sent to workers, which bind the rest in the same way', () => {
  const text = `. {
    hosts example.hosts example.org {
      10.0.0.1 a.example.org
      ttl 60
      10.0.0.2 b.example.org
      fallthrough
    }
    rewrite name a b
    cache {
      success 10
    }
  }`;
  const { corefile, problems } = parseCorefile({
    file: 'Corefile',
    text,
    dnsPort: 53,
    env: {},
    directives: plugins.map(({ name }) => name),
    readFile: () => '',
    glob: () => [],
  });
  assert.deepEqual(problems, []);
  const sent = forWorkers(corefile, plugins);
  assert.equal(sent.fingerprint, corefile.fingerprint);
  const [whole, part] = [corefile, sent].map((tree) => bindConfiguration(tree, plugins));
  assert.deepEqual(part!.problems, []);
  const options = (bound: typeof whole): readonly object[] =>
    bound!.blocks[0]!.instances.map(({ plugin, options }) =>
      plugin.name === 'hosts' ? { ...(options as object), inline: [] } : options,
    );
  assert.deepEqual(options(part), options(whole));
  assert.deepEqual(
    sent.blocks[0]!.directives[0]!.block!.map(({ name }) => name.text),
    ['ttl', 'fallthrough'],
  );
  assert.equal(corefile.blocks[0]!.directives[0]!.block!.length, 4);
});
