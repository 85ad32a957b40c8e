// Wraps the functions in a copy of CoreDNS so that its own tests record what they do (src/record.go).
//
//	recorder FOLDER PLUGIN…
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

const record = `"github.com/coredns/coredns/plugin/pkg/record"`

// Functions of rewrite that build a rule from its words, and the word that each one drops.
var ruleKinds = map[string]*string{
	"newRule":      word(""),
	"newClassRule": word("class"),
	"newCNAMERule": word("cname"),
	"newEdns0Rule": word("edns0"),
	"newNameRule":  word("name"),
	"newRCodeRule": word("rcode"),
	"newTTLRule":   word("ttl"),
	"newTypeRule":  word("type"),
}

func word(text string) *string { return &text }

func main() {
	folder := os.Args[1]
	for _, plugin := range os.Args[2:] {
		must(wrapFolder(filepath.Join(folder, "plugin", plugin), plugin))
	}
	// The handlers that tests put behind a plugin.
	must(wrapFile(filepath.Join(folder, "plugin", "plugin.go"), "", nil))
	must(wrapFile(filepath.Join(folder, "plugin", "test", "helpers.go"), "", nil))
	must(wrapServers(filepath.Join(folder, "plugin", "pkg", "dnstest", "server.go")))
}

// wrapServers makes the tests' upstreams record their queries.
func wrapServers(path string) error {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "f dns.HandlerFunc) *Server {", "return &Server{"
	text := string(bytes)
	if strings.Count(text, begin) != 2 || strings.Count(text, end) != 2 {
		return fmt.Errorf("%s: servers are made in another way", path)
	}
	text = strings.ReplaceAll(text, begin, begin+"\n\taddress := new(string)\n\tf = record.Upstream(address, f)")
	text = strings.ReplaceAll(text, end, "*address = s2.Listener.Addr().String()\n\t"+end)
	text = strings.Replace(text, "import (", "import (\n\t"+record+"\n", 1)
	return os.WriteFile(path, []byte(text), 0o644)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func wrapFolder(folder, plugin string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	mains := false
	name := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mains = mains || bytes.Contains(text, []byte("func TestMain("))
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_record.go") {
			label := ""
			if err := wrapFile(file, label, &name); err != nil {
				return err
			}
		} else if err := wrapFile(file, plugin, &name); err != nil {
			return err
		}
	}
	if mains {
		return fmt.Errorf("%s has a TestMain", folder)
	}
	main := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"testing\"\n\n\t%s\n)\n\nfunc TestMain(m *testing.M) {\n\tcode := m.Run()\n\trecord.Flush()\n\tos.Exit(code)\n}\n", name, record)
	return os.WriteFile(filepath.Join(folder, "main_record_test.go"), []byte(main), 0o644)
}

// wrapFile wraps the functions in one file. plugin is empty for code that takes the place of the rest of the chain.
func wrapFile(path, plugin string, name *string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	if name != nil && !strings.HasSuffix(file.Name.Name, "_test") {
		*name = file.Name.Name
	}
	var added bytes.Buffer
	changed := false
	if strings.HasSuffix(path, "_test.go") {
		if replaceController(file) {
			changed = true
			added.WriteString("\nvar _ = caddy.NewTestController\n")
		}
	}
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		switch {
		case function.Recv != nil && function.Name.Name == "ServeDNS":
			changed = true
			receiver := print(set, function.Recv.List[0].Type)
			fmt.Fprintf(&added, `
func (recorded %s) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return record.Serve(recorded, %q, ctx, w, r, recorded.serveRecorded)
}
`, receiver, plugin)
			function.Name.Name = "serveRecorded"
		case function.Recv != nil && function.Name.Name == "Lookup" && strings.HasSuffix(path, "_test.go"):
			changed = true
			fmt.Fprintf(&added, `
func (recorded %s) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	reply, err := recorded.lookupRecorded(ctx, state, name, typ)
	record.Lookup(ctx, name, typ, reply, err)
	return reply, err
}
`, print(set, function.Recv.List[0].Type))
			function.Name.Name = "lookupRecorded"
		case function.Recv == nil && plugin != "" && readsDirectives(function):
			changed = true
			added.WriteString(wrapper(set, function, plugin))
			function.Name.Name += "Recorded"
		case function.Recv == nil && plugin == "rewrite" && ruleKinds[function.Name.Name] != nil:
			changed = true
			kind := ruleKinds[function.Name.Name]
			params, words := "args ...string", "args"
			call := "args..."
			if *kind != "" {
				params, call = "action string, args ...string", "action, args..."
				words = fmt.Sprintf("append([]string{action, %q}, args...)", *kind)
			}
			fmt.Fprintf(&added, `
func %[1]s(%[2]s) (Rule, error) {
	rule, err := %[1]sRecorded(%[3]s)
	if err == nil {
		record.Mark(rule, %[4]s)
	}
	record.Words("rewrite", %[4]s, err)
	return rule, err
}
`, function.Name.Name, params, call, words)
			function.Name.Name += "Recorded"
		}
	}
	if !changed {
		return nil
	}
	var text bytes.Buffer
	if err := format.Node(&text, set, file); err != nil {
		return err
	}
	text.Write(added.Bytes())
	result := text.String()
	imports := record + "\n"
	if strings.Contains(added.String(), "context.Context") && !strings.Contains(result, "\"context\"") {
		imports += "\"context\"\n"
	}
	result = strings.Replace(result, "package "+file.Name.Name+"\n", "package "+file.Name.Name+"\n\nimport (\n"+imports+")\n", 1)
	if !strings.Contains(added.String(), "record.") && !strings.Contains(result, "record.NewTestController") {
		return fmt.Errorf("%s: nothing to record", path)
	}
	return os.WriteFile(path, []byte(result), 0o644)
}

func replaceController(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "NewTestController" {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == "caddy" {
			of.Name = "record"
			found = true
		}
		return true
	})
	return found
}

func readsDirectives(function *ast.FuncDecl) bool {
	results := function.Type.Results
	if results == nil || len(results.List) == 0 || controllerOf(function) == "" {
		return false
	}
	last, ok := results.List[len(results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

// controllerOf returns the name of the parameter that is a controller.
func controllerOf(function *ast.FuncDecl) string {
	for _, field := range function.Type.Params.List {
		star, ok := field.Type.(*ast.StarExpr)
		if !ok || len(field.Names) == 0 {
			continue
		}
		selector, ok := star.X.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == "Controller" {
			return field.Names[0].Name
		}
	}
	return ""
}

func wrapper(set *token.FileSet, function *ast.FuncDecl, plugin string) string {
	params, args := []string{}, []string{}
	for _, field := range function.Type.Params.List {
		for _, each := range field.Names {
			params = append(params, each.Name+" "+print(set, field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				args = append(args, each.Name+"...")
			} else {
				args = append(args, each.Name)
			}
		}
	}
	results, names := []string{}, []string{}
	for _, field := range function.Type.Results.List {
		for range max(1, len(field.Names)) {
			name := fmt.Sprintf("result%d", len(names))
			names = append(names, name)
			results = append(results, name+" "+print(set, field.Type))
		}
	}
	return fmt.Sprintf(`
func %s(%s) (%s) {
	done := record.SetupOf(%s, %q)
	%s = %sRecorded(%s)
	done(%s)
	return
}
`, function.Name.Name, strings.Join(params, ", "), strings.Join(results, ", "), controllerOf(function), plugin,
		strings.Join(names, ", "), function.Name.Name, strings.Join(args, ", "), names[len(names)-1])
}

func print(set *token.FileSet, node ast.Node) string {
	var text bytes.Buffer
	must(format.Node(&text, set, node))
	return text.String()
}
