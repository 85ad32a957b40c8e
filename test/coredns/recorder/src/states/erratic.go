package erratic

import (
	"context"
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("erratic", func(_ context.Context, h any, _ *dns.Msg) record.State {
		e := h.(*Erratic)
		large := ""
		if e.large {
			large = "large\n"
		}
		return record.State{
			Lines: fmt.Sprintf("erratic {\ndrop %d\ntruncate %d\ndelay %d %s\n%s}", e.drop, e.truncate, e.delay, e.duration, large),
		}
	})
}
