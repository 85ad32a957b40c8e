package bufsize

import (
	"context"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("bufsize", func(_ context.Context, h any, _ *dns.Msg) record.State {
		return record.State{Lines: fmt.Sprintf("bufsize %d", h.(Bufsize).Size)}
	})
}
