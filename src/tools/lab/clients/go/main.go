// Calls LookupIP the way a program does: lookup NAME FAMILY(0|4|6) COUNT. Prints one line of JSON per lookup.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

func main() {
	network := "ip"
	if os.Args[2] != "0" {
		network += os.Args[2]
	}
	count, _ := strconv.Atoi(os.Args[3])
	for i := 0; i < count; i++ {
		start := time.Now()
		found, err := net.DefaultResolver.LookupIP(context.Background(), network, os.Args[1])
		ms := float64(time.Since(start).Microseconds()) / 1000
		addrs := []string{}
		for _, address := range found {
			addrs = append(addrs, address.String())
		}
		text := ""
		if dns, ok := err.(*net.DNSError); ok {
			text = fmt.Sprintf("%s (notfound=%v timeout=%v temporary=%v)", dns.Err, dns.IsNotFound, dns.IsTimeout, dns.IsTemporary)
		} else if err != nil {
			text = err.Error()
		}
		line, _ := json.Marshal(map[string]any{"err": text, "ms": ms, "addrs": addrs})
		fmt.Println(string(line))
	}
}
