package dnssec

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("dnssec", func(_ context.Context, h any, _ *dns.Msg) record.State {
		d := h.(Dnssec)
		lines := []string{"dnssec " + strings.Join(d.zones, " ") + " {"}
		files := map[string]string{}
		for i, k := range d.keys {
			name := fmt.Sprintf("K%d", i)
			files[name+".key"] = k.K.String() + "\n"
			files[name+".private"] = k.K.PrivateKeyString(k.s)
			lines = append(lines, "key file {FOLDER}/"+name)
		}
		lines = append(lines, "}")
		return record.State{Lines: strings.Join(lines, "\n"), Files: files}
	})
}
