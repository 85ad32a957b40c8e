import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownConfiguration } from './shown-configuration.ts';

const shown = (text: string): string | undefined =>
  shownConfiguration(new Map([['Corefile', text]]))[0]?.text;

test('secrets written in a Corefile are hidden, and the rest is unchanged', () => {
  const corefile = `. {
    tsig {
        secret client.example. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=
        # secret old.example. bm90IHVzZWQ=
        secrets keys
    }
    etcd {
        credentials dns hunter2
    }
    secondary example.org {
        key transfer.example. c2VjcmV0 hmac-sha512
        key transfer.key
    }
    dnssec {
        key file Kexample.org.+013+45330
    }
    forward . {$UPSTREAM}
}
`;
  assert.equal(
    shown(corefile),
    corefile
      .replace('NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=', '(hidden)')
      .replace('bm90IHVzZWQ=', '(hidden)')
      .replace('hunter2', '(hidden)')
      .replace('c2VjcmV0 hmac-sha512', '(hidden)'),
  );
});

test('a secret is hidden in a file with CRLF, and after an opening brace', () => {
  for (const text of [
    'tsig {\r\n secret a. bm90IHVzZWQ=\r\n}\r\n',
    'tsig { secret a. bm90IHVzZWQ=\n}\n',
    'tsig {\n\tsecret "a." "bm90IHVzZWQ="\n}\n',
  ])
    assert.doesNotMatch(shown(text) ?? '', /bm90/);
});

test('a configuration that is too large is not sent', () => {
  assert.deepEqual(shownConfiguration(new Map([['Corefile', '#'.repeat(1 << 20)]])), []);
});
