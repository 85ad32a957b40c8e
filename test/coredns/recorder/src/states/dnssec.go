package dnssec

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/file"
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
		// In some tests, zone files come after it.
		if f, ok := d.Next.(file.File); ok {
			for i, name := range f.Zones.Names {
				records, err := f.Zones.Z[name].Transfer(0)
				if err != nil {
					continue
				}
				text := ""
				soa := false
				for some := range records {
					for _, rr := range some {
						// It also ends a transfer.
						if rr.Header().Rrtype == dns.TypeSOA {
							if soa {
								continue
							}
							soa = true
						}
						text += rr.String() + "\n"
					}
				}
				files[fmt.Sprintf("db%d", i)] = text
				lines = append(lines, fmt.Sprintf("file {FOLDER}/db%d %s", i, name))
			}
		}
		return record.State{Lines: strings.Join(lines, "\n"), Files: files}
	})
}
