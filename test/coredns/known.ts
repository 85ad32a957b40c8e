/**
 * The known differences between ndots and CoreDNS's tests. Some are intended and quote the documentation. Others come
 * from tests that examine something other than a server's behaviour.
 */
export interface Known {
  readonly plugin: string;
  readonly test: string;
  /**
   * Matches the directive, the configuration or the difference. If omitted, it covers all of the test's differences.
   */
  readonly like?: RegExp;
  /** The page where an intended difference is documented. */
  readonly intended?: string;
  /** Why a test does not apply. */
  readonly inapplicable?: string;
}

/** Directives in CoreDNS's tests. */
export const knownSetups: readonly Known[] = [
  {
    plugin: 'tls',
    test: 'TestParseACMETLS',
    intended: 'docs/coredns.md, what is not there: certificates by ACME',
  },
  {
    plugin: 'trace',
    test: 'TestTraceParse',
    like: /datadog/,
    intended:
      "src/server/plugins/trace/trace.md: the protocol of Datadog's agent is not spoken, OTLP is",
  },
  {
    plugin: 'trace',
    test: 'TestStartup_Datadog',
    intended:
      "src/server/plugins/trace/trace.md: the protocol of Datadog's agent is not spoken, OTLP is",
  },
  {
    plugin: 'erratic',
    test: 'TestParseErratic',
    like: /erraric/,
    inapplicable: 'a mistyped directive that the test passes to the parser',
  },
  {
    plugin: 'minimal',
    test: 'TestSetup',
    like: /minimal-response/,
    inapplicable: 'a mistyped directive that the test passes to the parser',
  },
  {
    plugin: 'dnssec',
    test: 'TestSetupDnssec',
    like: /Kcluster\.local/,
    intended: 'docs/coredns.md, on the wire: RSASHA1 is refused',
  },
  {
    plugin: 'forward',
    test: 'TestSetTapPlugin',
    inapplicable: 'dnstap is another plugin',
  },
  {
    plugin: 'forward',
    test: 'TestSetupResolverWithProxyOptions',
    inapplicable: 'the resolver is a server of the test',
  },
  {
    plugin: 'loop',
    test: 'TestParseServerBlockKeys',
    inapplicable: 'the key is not one of a server block',
  },
  {
    plugin: 'kubernetes',
    test: 'TestKubernetesParse',
    like: /kubeconfig file/,
    inapplicable: 'CoreDNS, too, ends when the file is not there, after it has read the Corefile',
  },
  {
    plugin: 'loadbalance',
    test: 'TestSetup',
    like: /weighted wf/,
    inapplicable: 'CoreDNS, too, ends when the file is not there, after it has read the Corefile',
  },
  {
    plugin: 'file',
    test: 'TestFileParse',
    like: /tmpfile/,
    intended: "src/server/plugins/file/file.md: the SOA record is that of the zone's own name",
  },
  {
    plugin: 'file',
    test: 'TestParseReload',
    like: /tmpfile/,
    intended: "src/server/plugins/file/file.md: the SOA record is that of the zone's own name",
  },
  {
    plugin: 'k8s_external',
    test: 'TestSetup',
    inapplicable: 'CoreDNS, too, ends without kubernetes, after it has read the Corefile',
  },
  {
    plugin: 'dnstap',
    test: 'TestConfig',
    like: /path\/to\/cert/,
    inapplicable: 'CoreDNS, too, ends when the file is not there, after it has read the Corefile',
  },
  {
    plugin: 'pprof',
    test: 'TestPProf',
    like: /1\.2\.3\.4/,
    inapplicable: 'CoreDNS, too, ends on the address, after it has read the Corefile',
  },
  {
    plugin: 'health',
    test: 'TestSetupHealth',
    like: /bla:a/,
    inapplicable: 'CoreDNS, too, ends on the port, after it has read the Corefile',
  },
];

/** Queries in CoreDNS's plugin tests. */
export const knownExchanges: readonly Known[] = [
  {
    plugin: 'dnssec',
    test: 'TestLookupZone',
    like: /^authority: .* NSEC .* instead of .* NSEC /,
    intended: 'docs/coredns.md, on the wire: types that a proof claims, proofs at zone cuts',
  },
  {
    plugin: 'grpc',
    test: 'TestProxyUnix',
    inapplicable: 'the upstream is a server of the test',
  },
  {
    plugin: 'kubernetes',
    test: 'TestPreserveCase',
    like: /^additional: \S*sVc1\.TeStNs\.SvC/,
    intended: 'docs/coredns.md, on the wire: owners that equal the question follow its spelling',
  },
  {
    plugin: 'kubernetes',
    test: 'TestServeDNSApex',
    like: /127\.0\.0\.1/,
    inapplicable: 'neither server ever names a loopback address; the test puts it there',
  },
  {
    plugin: 'template',
    test: 'TestHandler',
    like: /^target\.example\.com\. 1 is asked for$/,
    inapplicable: 'the test has no upstream; CoreDNS with one looks the target up, too',
  },
  {
    plugin: 'acl',
    test: 'TestACLServeDNS',
    like: /^REFUSED instead of silence$|^options (?:15=0014[0-9a-f]+)? instead of 15=000f$/,
    inapplicable:
      'a name that is not in the zones of the server block does not come to its plugins',
  },
  {
    plugin: 'erratic',
    test: 'TestAxfr',
    like: /SOA/,
    inapplicable: 'what the test demands holds: the first record is SOA; the zone is invented',
  },
  {
    plugin: 'file',
    test: 'TestTransferInCatalogMigratesMemberZoneWithSameID',
    like: /192\.0\.2\.1 instead of .*192\.0\.2\.2/,
    inapplicable: 'the zone changes while the test asks',
  },
  {
    plugin: 'file',
    test: 'TestLookupApex',
    like: /NOERROR instead of NXDOMAIN/,
    intended: 'src/server/plugins/file/file.md: the apex exists, whatever else the zone holds',
  },
  {
    plugin: 'file',
    test: 'TestLookup',
    like: /^answer: mIeK\.NL\./,
    intended: 'docs/coredns.md, on the wire: owners that equal the question follow its spelling',
  },
  {
    plugin: 'file',
    test: 'TestLookup',
    like: /^example\.com\. 1 is asked for$/,
    inapplicable: 'the test has no upstream; CoreDNS with one looks the target up, too',
  },
  {
    plugin: 'file',
    test: 'TestLookupWildcard',
    like: /NSEC a\.dnssex\.nl\./,
    intended: 'src/server/plugins/file/file.md: proofs of wildcards are whole',
  },
  {
    plugin: 'forward',
    test: 'TestProxyHTTPS',
    inapplicable: "an HTTPS server of the test's; https.test.ts has such upstreams",
  },
];

/** The whole-server tests. */
export const knownServers: readonly Known[] = [
  {
    plugin: 'chaos',
    test: 'TestChaos',
    like: /Expected version to be CoreDNS/,
    intended: 'docs/coredns.md, switching with care: versions begin with ndots-',
  },
  {
    plugin: 'transfer',
    test: 'TestLargeAXFR',
    like: /unexpected number of RRs: 6557/,
    intended:
      'docs/coredns.md, on the wire: queries of one connection are answered as they are ready',
  },
  {
    plugin: 'file',
    test: 'TestZoneExternalCNAMELookupWithProxy',
    like: /Expected 2 RRs in answer section got 1/,
    inapplicable: 'it needs a resolver on the Internet',
  },
  {
    plugin: 'https',
    test: 'TestHTTPSConnectionLimit',
    like: /Connection beyond limit should have timed out/,
    intended:
      'docs/coredns.md, operation: at the limit the connection that has been idle for longest goes',
  },
  {
    plugin: 'rewrite',
    test: 'TestRewrite',
    like: /Expected EDNS0 options but got none/,
    intended: 'src/server/plugins/rewrite/rewrite.md: a client that sent no EDNS gets none back',
  },
  {
    plugin: 'tls',
    test: 'TestACMEDNS01CertificateManagement',
    intended: 'docs/coredns.md, what is not there: certificates by ACME',
  },
  {
    plugin: 'prometheus',
    test: 'TestMetricsRewriteRequestSize',
    like: /Expected all requests to go to le=100 bucket/,
    inapplicable: 'counters of two servers are added up in one process',
  },
  {
    plugin: 'multisocket',
    test: 'TestMultisocket',
    inapplicable: 'sockets are counted in the process of the test',
  },
  {
    plugin: 'multisocket',
    test: 'TestMultisocket_Restart',
    inapplicable: 'sockets are counted in the process of the test',
  },
  {
    plugin: 'ready',
    test: 'TestReloadUnreadyPlugin',
    inapplicable: 'a plugin that the test registers',
  },
  {
    plugin: 'ready',
    test: 'TestReloadTwoServerBlocksUnreadyPlugin',
    inapplicable: 'a plugin that the test registers',
  },
  {
    plugin: 'debug',
    test: 'TestMultiZoneBlockConfigs',
    inapplicable: 'fields of a Go structure',
  },
];

/** Returns the known explanation of a difference if it covers the whole difference. */
export function knownAs(
  known: readonly Known[],
  plugin: string | null,
  test: string,
  texts: readonly string[],
): Known | null {
  const fits = (one: Known): boolean =>
    one.test === test &&
    (plugin === null || one.plugin === plugin) &&
    (one.like === undefined || texts.some((text) => one.like!.test(text)));
  return known.find(fits) ?? null;
}
