package tsig

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("tsig", func(context.Context, any, *dns.Msg) record.State {
		return record.State{Beyond: "signatures are those of the test, not of a message"}
	})
}
