// Package record records what CoreDNS's tests do: each directive they set up and whether it was accepted, each query they
// pass to a plugin, the queries that the plugin's neighbours received, and the final reply.
//
// It is copied into the module next to its plugins. The wrappers that ../main.go puts around their functions call it.
package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// State is the configuration, as in a Corefile, that would give a plugin its present state.
type State struct {
	// Keys of the server block; none: the root zone.
	Keys []string `json:"keys,omitempty"`
	// Lines of the server block.
	Lines string `json:"lines"`
	// Files that the lines refer to.
	Files map[string]string `json:"files,omitempty"`
	// Objects of the Kubernetes API.
	Objects []any `json:"objects,omitempty"`
	// True if the plugin has nothing to report yet.
	Unsynced bool `json:"unsynced,omitempty"`
	// The time on the plugin's clock, in Unix milliseconds; 0: it has none.
	Now int64 `json:"now,omitempty"`
	// The part of the state that a Corefile cannot express.
	Beyond string `json:"beyond,omitempty"`
	// Metadata that the test has put into the context.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Written is a query and the reply written for it.
type Written struct {
	Plugin  string   `json:"plugin"`
	Query   []byte   `json:"query"`
	Replies [][]byte `json:"replies"`
	Rcode   int      `json:"rcode"`
	Error   string   `json:"error,omitempty"`
	// True if a message could not be packed.
	Garbled bool `json:"garbled,omitempty"`
	// Milliseconds that it took.
	Took float64 `json:"took,omitempty"`
	// Queries to other handlers in that time.
	Next []*Written `json:"next,omitempty"`

	mutex sync.Mutex
}

// Exchange is a query that a test passed to a plugin.
type Exchange struct {
	Kind    string `json:"kind"`
	Test    string `json:"test"`
	Place   string `json:"place"`
	Handler int    `json:"handler"`
	State   State  `json:"state"`
	Remote  string `json:"remote"`
	Local   string `json:"local"`
	Log     string `json:"log,omitempty"`
	Panic   string `json:"panic,omitempty"`
	// Concurrent exchanges of one handler have the same number.
	Together int `json:"together"`
	// Queries to upstreams in that time; Plugin is their address.
	Upstreams []*Written `json:"upstreams,omitempty"`
	*Written
}

// Setup is a directive that a test tried to set up.
type Setup struct {
	Kind   string   `json:"kind"`
	Test   string   `json:"test"`
	Place  string   `json:"place"`
	Plugin string   `json:"plugin"`
	Input  string   `json:"input"`
	Keys   []string `json:"keys,omitempty"`
	Error  string   `json:"error,omitempty"`
	// True if it was refused.
	Refused bool `json:"refused"`
	depth   int
	done    bool
	// The contents of the files named in Input.
	Files map[string]string `json:"files,omitempty"`
}

var (
	mutex     sync.Mutex
	inputs    = map[*caddy.Controller]*Setup{}
	latest    = map[string]*Setup{}
	exchanges []*Exchange
	active    = map[int]int{}
	batch     = map[int]int{}
	batches   int
	// Exchanges with upstreams that are in progress.
	forwarding = map[*Exchange]bool{}
	handlers   = map[any]int{}
	describe   = map[string]func(context.Context, any, *dns.Msg) State{}
	marks      = map[any][]string{}
	out        io.Writer
	parentKey  = struct{ name string }{"record"}
)

func init() {
	if folder := os.Getenv("RECORD_FOLDER"); folder != "" {
		file, err := os.CreateTemp(folder, "events-*.jsonl")
		if err != nil {
			panic(err)
		}
		out = file
	}
}

// Describer describes a plugin's state.
func Describer(plugin string, f func(context.Context, any, *dns.Msg) State) { describe[plugin] = f }

// Mark remembers the words that something was built from.
func Mark(thing any, words []string) {
	mutex.Lock()
	defer mutex.Unlock()
	if thing != nil && reflect.TypeOf(thing).Comparable() {
		marks[thing] = words
	}
}

// Marked returns the words passed to Mark.
func Marked(thing any) ([]string, bool) {
	mutex.Lock()
	defer mutex.Unlock()
	if thing == nil || !reflect.TypeOf(thing).Comparable() {
		return nil, false
	}
	words, ok := marks[thing]
	return words, ok
}

// Quote writes a word so that a Corefile returns it unchanged.
func Quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"#{}\\") {
		return word
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}

// NewTestController replaces caddy's function.
func NewTestController(server, input string) *caddy.Controller {
	c := caddy.NewTestController(server, input)
	test, place := caller()
	mutex.Lock()
	inputs[c] = &Setup{Kind: "setup", Test: test, Place: place, Input: input}
	mutex.Unlock()
	return c
}

// SetupOf is called when a function starts reading directives; the function it returns, when it ends.
func SetupOf(c *caddy.Controller, plugin string) func(error) {
	mutex.Lock()
	defer mutex.Unlock()
	s, ok := inputs[c]
	if !ok {
		return func(error) {}
	}
	s.Plugin = plugin
	s.depth++
	for _, word := range strings.Fields(s.Input) {
		word = strings.Trim(word, `"`)
		// A key pair is named without its suffixes.
		for _, name := range []string{word, word + ".key", word + ".private"} {
			if text, err := os.ReadFile(name); err == nil {
				if s.Files == nil {
					s.Files = map[string]string{}
				}
				s.Files[name] = string(text)
			}
		}
	}
	latest[s.Test] = s
	return func(err error) {
		mutex.Lock()
		defer mutex.Unlock()
		s.depth--
		if s.depth > 0 || s.done {
			return
		}
		s.Keys = c.ServerBlockKeys
		if err != nil {
			s.Refused, s.Error, s.done = true, err.Error(), true
		}
	}
}

// Words treats the words that a test passes to a parsing function as a setup.
func Words(plugin string, words []string, err error) {
	pcs := make([]uintptr, 1)
	frame, _ := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]).Next()
	if !strings.HasSuffix(frame.File, "_test.go") {
		return
	}
	test, place := caller()
	quoted := []string{plugin}
	for _, word := range words {
		quoted = append(quoted, Quote(word))
	}
	s := &Setup{Kind: "setup", Test: test, Place: place, Plugin: plugin, Input: strings.Join(quoted, " "), Refused: err != nil}
	if err != nil {
		s.Error = err.Error()
	}
	write(s)
}

// Flush writes this process's setups.
func Flush() {
	mutex.Lock()
	all := make([]*Setup, 0, len(inputs))
	for _, s := range inputs {
		all = append(all, s)
	}
	mutex.Unlock()
	for _, s := range all {
		write(s)
	}
	for _, e := range exchanges {
		write(e)
	}
}

func write(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	mutex.Lock()
	defer mutex.Unlock()
	if out != nil {
		_, _ = out.Write(append(line, '\n'))
	}
}

var testName = regexp.MustCompile(`\.(Test[A-Za-z0-9_]*)(\.func.*)?$`)

// caller returns the running test and its position.
func caller() (string, string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	place := ""
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			if place == "" {
				place = fmt.Sprintf("%s:%d", frame.File, frame.Line)
			}
			if found := testName.FindStringSubmatch(frame.Function); found != nil {
				return found[1], place
			}
		}
		if !more {
			return "", place
		}
	}
}

type writer struct {
	dns.ResponseWriter
	written *Written
}

func pack(m *dns.Msg) ([]byte, bool) {
	copied := m.Copy()
	copied.Compress = true
	if bytes, err := copied.Pack(); err == nil {
		return bytes, true
	}
	// Tests accept names without the trailing dot, which are not valid on the wire.
	for at := range copied.Question {
		copied.Question[at].Name = dns.Fqdn(copied.Question[at].Name)
	}
	for _, section := range [][]dns.RR{copied.Answer, copied.Ns, copied.Extra} {
		for _, record := range section {
			record.Header().Name = dns.Fqdn(record.Header().Name)
			if cname, ok := record.(*dns.CNAME); ok {
				cname.Target = dns.Fqdn(cname.Target)
			}
		}
	}
	bytes, err := copied.Pack()
	return bytes, err == nil
}

func (w *writer) WriteMsg(m *dns.Msg) error {
	bytes, ok := pack(m)
	w.written.mutex.Lock()
	w.written.Replies = append(w.written.Replies, bytes)
	w.written.Garbled = w.written.Garbled || !ok
	w.written.mutex.Unlock()
	return w.ResponseWriter.WriteMsg(m)
}

func (w *writer) Write(b []byte) (int, error) {
	w.written.mutex.Lock()
	w.written.Replies = append(w.written.Replies, bytes.Clone(b))
	w.written.mutex.Unlock()
	return w.ResponseWriter.Write(b)
}

func (w *writer) SetPlugin(name string) {
	if tracker, ok := w.ResponseWriter.(interface{ SetPlugin(string) }); ok {
		tracker.SetPlugin(name)
	}
}

func (w *writer) GetPlugin() string {
	if tracker, ok := w.ResponseWriter.(interface{ GetPlugin() string }); ok {
		return tracker.GetPlugin()
	}
	return ""
}

// Serve wraps a handler.
func Serve(
	handler any, plugin string,
	ctx context.Context, w dns.ResponseWriter, r *dns.Msg,
	serve func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error),
) (int, error) {
	parent, _ := ctx.Value(parentKey).(*Written)
	if (parent == nil && plugin == "") || out == nil {
		return serve(ctx, w, r)
	}
	query, ok := pack(r)
	written := &Written{Plugin: plugin, Query: query, Garbled: !ok}
	inner := context.WithValue(ctx, parentKey, written)
	if parent != nil {
		parent.mutex.Lock()
		parent.Next = append(parent.Next, written)
		parent.mutex.Unlock()
		began := time.Now()
		rcode, err := serve(inner, &writer{w, written}, r)
		note(written, began, rcode, err)
		return rcode, err
	}
	test, place := caller()
	began := time.Now()
	event := &Exchange{Kind: "serve", Test: test, Place: place, Handler: identity(handler), Written: written}
	mutex.Lock()
	exchanges = append(exchanges, event)
	if active[event.Handler] == 0 {
		batches++
		batch[event.Handler] = batches
	}
	active[event.Handler]++
	if plugin == "forward" {
		forwarding[event] = true
	}
	event.Together = batch[event.Handler]
	mutex.Unlock()
	event.State = stateOf(ctx, handler, plugin, test, r)
	if a := w.RemoteAddr(); a != nil {
		event.Remote = a.Network() + " " + a.String()
	}
	if a := w.LocalAddr(); a != nil {
		event.Local = a.(net.Addr).String()
	}
	var lines bytes.Buffer
	usual := log.Writer()
	if plugin == "log" || plugin == "errors" {
		log.SetOutput(io.MultiWriter(usual, &lines))
	}
	defer func() {
		mutex.Lock()
		active[event.Handler]--
		delete(forwarding, event)
		mutex.Unlock()
		if plugin == "log" || plugin == "errors" {
			log.SetOutput(usual)
		}
		event.Log = lines.String()
		failed := recover()
		if failed != nil {
			event.Panic = fmt.Sprint(failed)
		}
		if failed != nil {
			panic(failed)
		}
	}()
	rcode, err := serve(inner, &writer{w, written}, r)
	note(written, began, rcode, err)
	return rcode, err
}

// Upstream wraps the handler of a server that a test started.
func Upstream(address *string, handle dns.HandlerFunc) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		query, ok := pack(r)
		written := &Written{Plugin: *address, Query: query, Garbled: !ok}
		mutex.Lock()
		for event := range forwarding {
			event.Upstreams = append(event.Upstreams, written)
		}
		mutex.Unlock()
		began := time.Now()
		handle(&writer{w, written}, r)
		note(written, began, 0, nil)
	}
}

// Lookup is a lookup that a plugin made, and its result.
func Lookup(ctx context.Context, name string, typ uint16, reply *dns.Msg, err error) {
	parent, _ := ctx.Value(parentKey).(*Written)
	if parent == nil {
		return
	}
	question := new(dns.Msg)
	question.SetQuestion(name, typ)
	query, _ := pack(question)
	written := &Written{Plugin: "upstream", Query: query}
	if err != nil {
		written.Error = err.Error()
	} else if bytes, ok := pack(reply); ok {
		written.Replies = append(written.Replies, bytes)
	}
	parent.mutex.Lock()
	parent.Next = append(parent.Next, written)
	parent.mutex.Unlock()
}

func note(written *Written, began time.Time, rcode int, err error) {
	written.mutex.Lock()
	defer written.mutex.Unlock()
	written.Took = float64(time.Since(began).Microseconds()) / 1000
	written.Rcode = rcode
	if err != nil {
		written.Error = err.Error()
	}
}

func identity(handler any) int {
	if reflect.TypeOf(handler).Kind() != reflect.Pointer {
		return 0
	}
	mutex.Lock()
	defer mutex.Unlock()
	if _, ok := handlers[handler]; !ok {
		handlers[handler] = len(handlers) + 1
	}
	return handlers[handler]
}

func stateOf(ctx context.Context, handler any, plugin, test string, r *dns.Msg) State {
	if f, ok := describe[plugin]; ok {
		return f(ctx, handler, r)
	}
	mutex.Lock()
	defer mutex.Unlock()
	if s, ok := latest[test]; ok {
		return State{Keys: s.Keys, Lines: s.Input}
	}
	return State{Beyond: "nobody knows how it was set up"}
}

// Millis converts a time to the format of State.Now.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Metadata returns the values in a context by calling each of its functions.
func Metadata[F ~func() string](_ context.Context, functions map[string]F) map[string]string {
	values := map[string]string{}
	for label, value := range functions {
		values[label] = value()
	}
	return values
}
