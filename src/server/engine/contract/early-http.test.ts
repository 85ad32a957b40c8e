import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { probeAddresses } from './early-http.ts';

const plugins = new Map([
  ['health', 8080],
  ['ready', 8181],
]);

describe('probe addresses, before a Corefile is read', () => {
  const addresses = (text: string): readonly string[] =>
    probeAddresses(text, plugins).map(({ host, port }) => `${host}:${port}`);

  for (const [what, text, wanted] of [
    ['usual ones', '. {\n  health {\n    lameduck 5s\n  }\n  ready\n}', [':8080', ':8181']],
    [
      'ones of their own',
      '. {\n health 127.0.0.1:1\n ready :82 { # x\n }\n}',
      ['127.0.0.1:1', ':82'],
    ],
    ['every address', '. {\n ready 0.0.0.0:82\n health localhost:83\n}', [':82', '127.0.0.1:83']],
    ['one in two blocks', '. {\n ready\n}\na. {\n ready\n}', [':8181']],
    ['comments', '. {\n # ready\n health # here\n}', [':8080']],
    ['what only begins so', '. {\n readyness\n forward . 1.1.1.1 {\n  health_check 5s\n }\n}', []],
    [
      'what the parser has to see',
      '. {\n ready {$AT}\n health [::1]:80\n ready "x"\n ready :x\n}',
      [],
    ],
    ['ports that cannot be', '. {\n ready :0\n health :65536\n}', []],
    ['line ends of Windows', '. {\r\n ready\r\n}\r\n', [':8181']],
  ] as const)
    test(what, () => assert.deepEqual(addresses(text), wanted));
});
