/** The files that examples in `tools/coredns/properties.ts` refer to as `@/NAME`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCertificate, testKey } from '../certificate.ts';
import { makeMmdb } from '../mmdb.ts';

/** The key that signs zones, in `NAME.key` and `NAME.private`. */
export const keyName = 'Kexample.org.+013+55648';

export function writeExampleFiles(directory: string): void {
  const zone = '$TTL 300\n@ IN SOA ns host 1 7200 3600 86400 60\n@ IN NS ns\nns IN A 192.0.2.53\n';
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'cert.pem': testCertificate,
    'key.pem': testKey,
    'db.example.org': zone,
    'zones/db.example.org': zone,
    'resolv.conf': 'nameserver 192.0.2.53\nsearch example.org\n',
    hosts: '192.0.2.1 a.example.org\n',
    weights: 'a.example.org\n192.0.2.1 3\n',
    'web.yaml': 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n',
    'tsig.keys':
      'key "k.example." {\n algorithm hmac-sha256;\n secret "NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=";\n};\n',
    kubeconfig: `apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n`,
    'test.mmdb': makeMmdb('GeoLite2-City', { '192.0.2.0/24': { country: { iso_code: 'DE' } } }),
    // The example from RFC 6605, section 6.1.
    [`${keyName}.key`]:
      'example.org. IN DNSKEY 257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==\n',
    [`${keyName}.private`]:
      'Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=\n',
  };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
}
