package nsid

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("nsid", func(_ context.Context, h any, _ *dns.Msg) record.State {
		return record.State{Lines: "nsid " + record.Quote(h.(Nsid).Data)}
	})
}
