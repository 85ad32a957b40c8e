/** The initial contents of the page. */

const resolvConf = `nameserver 10.96.0.10
search shop.svc.cluster.local svc.cluster.local cluster.local
options ndots:5
`;

const answers = `rules:
  - name: api.example.com.
    answer: 192.0.2.7
`;

const corefile = `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough
        ttl 30
    }
    prometheus :9153
    forward . 10.0.0.2 10.0.0.3 {
        max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
corp.example:53 {
    forward . 10.9.0.1
    cache 3600
}
`;

const before = `.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . 10.0.0.2
    cache 30
}
`;

const after = `.:53 {
    errors
    rewrite name exact db.corp.example web.shop.svc.cluster.local
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods disabled
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . 10.0.0.2
    cache 30
}
`;

export const examples: Readonly<
  Record<'name' | 'resolvConf' | 'answers' | 'corefile' | 'before' | 'after', string>
> = { name: 'api.example.com', resolvConf, answers, corefile, before, after };
