package dnstap

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("dnstap", func(context.Context, any, *dns.Msg) record.State {
		return record.State{Beyond: "nothing of it is to be seen in a reply"}
	})
}
