package external

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("k8s_external", func(context.Context, any, *dns.Msg) record.State {
		return record.State{Beyond: "the cluster is one of the test, asked by k8s_external.test.ts"}
	})
}
