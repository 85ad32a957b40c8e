/**
 * Rules about names in a configuration: certificates must contain them, hosts must exist, and search domains must not
 * answer.
 */
import { parseAddress } from '../../../server/base/ip.ts';
import { texts, child } from '../../../server/base/json-object.ts';
import type { Token } from '../../../server/corefile/corefile-tree.ts';
import { splitScheme } from '../../../server/corefile/zones.ts';
import { lineOf, type LintedBlock, type Subject } from '../subject.ts';
import { addressOf, forwardTargets, isResolvConf, targetsOf } from '../upstreams.ts';
import { podSpecOf } from '../workload.ts';
import type { Told } from '../lint-rule.ts';
import { askBelow } from '../../probe/checks/suffix-hazards.ts';
import type { ProbeServer } from '../../probe/network.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { liveRule, type LiveRule, type LiveWorld } from './live-rule.ts';

const certificates: LiveRule = liveRule({
  code: 'CF56',
  severity: 'error',
  summary: 'forward over TLS to a server whose certificate cannot be verified',
  async ask({ corefiles }, world, tell) {
    const directives = corefiles
      .flatMap(({ blocks }) => blocks)
      .flatMap((block) => block.directives('forward'));
    for (const directive of directives) {
      const name = lineOf(directive, 'tls_servername')?.args[0];
      if (name === undefined) continue;
      // In `tls CERT KEY CA`, `tls CERT KEY` and `tls CA`, the CA comes last unless there are two words.
      const files = lineOf(directive, 'tls')?.args ?? [];
      const ca = files.length === 2 ? [] : files.slice(-1).map(({ text }) => text);
      await Promise.all(
        targetsOf(directive).map(async (at) => {
          const address = addressOf(at);
          if (address?.scheme !== 'tls') return;
          const server = { host: address.text, port: address.port };
          const why = await world.certificate(server, name.text, ca);
          if (why === null) return;
          tell({
            at: name,
            text: `the certificate of ${at.text} cannot be verified for ${name.text}: ${why}`,
            hint: 'Every query to it fails, and only the server log reports that.',
            remedy: 'Use the name that its operator publishes, or set the CA: tls CA-FILE.',
          });
        }),
      );
    }
  },
});

/** Words that name hosts, with their purpose. */
function hostsIn(
  block: LintedBlock,
  isFile: LiveWorld['isFile'],
): readonly { readonly at: Token; readonly host: string }[] {
  const words: Token[] = [
    ...forwardTargets(block),
    ...block.directives('grpc').flatMap(targetsOf),
    ...block.directives('etcd').flatMap((each) => lineOf(each, 'endpoint')?.args ?? []),
    ...block.directives('kubernetes').flatMap((each) => lineOf(each, 'endpoint')?.args ?? []),
  ];
  return words.flatMap((at) => {
    // A file that lists name servers may have any name.
    const host = isFile(at.text) ? null : hostOf(at);
    return host === null ? [] : [{ at, host }];
  });
}

/**
 * The host name in `tls://dns.example:853` or `https://etcd.example:2379/`. Null for an address, a variable or a usual
 * file.
 */
function hostOf(at: Token): string | null {
  if (isResolvConf(at) || addressOf(at) !== null) return null;
  const url = /^(?:https?|grpc):\/\/([^/:[\]]+)/.exec(at.text)?.[1];
  const bare = url ?? splitScheme(at.text).rest.replace(/:\d+$/, '');
  return /^[a-z0-9]([\w-]*\.)+[a-z][\w-]*\.?$/i.test(bare) && parseAddress(bare) === null
    ? bare
    : null;
}

const hosts: LiveRule = liveRule({
  code: 'CF57',
  severity: 'error',
  summary: 'a host name that does not exist',
  async ask({ corefiles }, { resolve, isFile }, tell) {
    const blocks = corefiles.flatMap((each) => each.blocks);
    const all = blocks.flatMap((block) => hostsIn(block, isFile));
    await Promise.all(
      all.slice(0, 64).map(async ({ at, host }) => {
        // Undetermined names are not reported.
        const found = await resolve(host).catch(() => null);
        if (found === null || found.length > 0) return;
        tell({
          at,
          text: `there is no host ${host}`,
          hint: "Queried from this machine. The server looks it up at startup with its pod's resolver.",
          remedy: 'Use another name or an address.',
        });
      }),
    );
  },
});

/** A search domain, where it was found, and the server to query. */
interface WrittenSearchDomain {
  readonly at: Told['at'];
  readonly domain: string;
  readonly servers: readonly ProbeServer[];
}

function suffixesIn(
  { objects, resolvConfs }: Subject,
  own: readonly ProbeServer[],
): readonly WrittenSearchDomain[] {
  const ofFiles = resolvConfs.flatMap(({ file, text }) => {
    const servers = readNameservers(text).map((host) => ({ host, port: 53 }));
    return text.split('\n').flatMap((line, nth) => {
      const [, list = ''] = /^[ \t]*(?:search|domain)[ \t]+(\S.*)$/.exec(line) ?? [];
      return list.split(/\s+/).flatMap((domain) => {
        const at = { file, line: nth + 1, column: Math.max(1, line.indexOf(domain) + 1) };
        return domain === '' ? [] : [{ at, domain, servers }];
      });
    });
  });
  const ofPods = objects.flatMap((object) => {
    const pods = podSpecOf(object);
    if (pods === null) return [];
    const config = child(pods.spec, 'dnsConfig');
    const servers = texts(config, 'nameservers').map((host) => ({ host, port: 53 }));
    return texts(config, 'searches').map((domain, nth) => ({
      at: { object, path: [...pods.path, 'dnsConfig', 'searches', nth] },
      domain,
      servers: servers.length > 0 ? servers : own,
    }));
  });
  return [...ofFiles, ...ofPods];
}

const wildcards: LiveRule = liveRule({
  code: 'CF58',
  severity: 'error',
  summary: 'a search domain with a wildcard, which answers for any name',
  async ask(subject, { asking, resolvers }, tell) {
    await Promise.all(
      suffixesIn(subject, resolvers)
        .slice(0, 64)
        .map(async ({ at, domain, servers }) => {
          const [server] = servers;
          const suffix = `${domain.toLowerCase().replace(/\.$/, '')}.`;
          if (server === undefined || !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.$/.test(suffix)) return;
          const { wildcard, random } = await askBelow(asking, server, suffix, 'www.example.com.');
          if (wildcard.length === 0) return;
          tell({
            at,
            text: `*.${domain} exists: the made-up name ${random} resolves to ${wildcard[0]!}`,
            hint: 'Names with fewer dots than ndots are first tried with this suffix, so programs connect to that address.',
            remedy: 'Remove it from the search path, or lower ndots.',
          });
        }),
    );
  },
});

export const nameRules: readonly LiveRule[] = [certificates, hosts, wildcards];
