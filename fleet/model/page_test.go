package model_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/model.md"

// section is the text of the page under a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// column gives the code words of a column of the tables in text, row by row.
func column(text string, n int) [][]string {
	code := regexp.MustCompile("`([^`]+)`")
	var rows [][]string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < n+2 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		var words []string
		for _, m := range code.FindAllStringSubmatch(cells[n], -1) {
			words = append(words, m[1])
		}
		rows = append(rows, words)
	}
	return rows
}

// functions are the functions of the program, "name" or "type.name".
func functions(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, root := range []string{"..", "../../lockfile"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parse %s: %w", path, err)
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					known[qualified(f)] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return known
}

func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if name, ok := recv.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func TestThePageNamesFunctionsThatExist(t *testing.T) {
	known, named := functions(t), 0
	for _, words := range column(section(t, "Steps and functions"), 2) {
		for _, name := range words {
			if named++; !known[name] {
				t.Errorf("%s names %s, which is no function of the program", page, name)
			}
		}
	}
	if named < 30 {
		t.Errorf("%s names %d functions only: is its table where it was?", page, named)
	}
}

func TestThePageNamesStepsOfTheModel(t *testing.T) {
	text, err := os.ReadFile("fleetdeck.pml")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range column(section(t, "Steps and functions"), 1) {
		for _, name := range words {
			defined := regexp.MustCompile(`(?m)^(proctype|inline) ` + regexp.QuoteMeta(name) + `\(`)
			if !defined.Match(text) && !strings.Contains(string(text), `"`+name+" %d:") {
				t.Errorf("%s names %s, which is nothing in fleetdeck.pml", page, name)
			}
		}
	}
}

func TestThePageNamesTheMutantsThatAreTried(t *testing.T) {
	listed := map[string]bool{}
	for _, words := range column(section(t, "Mutants"), 1) {
		if len(words) > 0 {
			listed[words[0]] = true
		}
	}
	for _, m := range mutants {
		if !listed[m.macro] {
			t.Errorf("%s does not tell of mutant %s", page, m.macro)
		}
		delete(listed, m.macro)
	}
	for name := range listed {
		t.Errorf("%s tells of mutant %s, which no test tries", page, name)
	}
}

// The invariants of the page are the words with which a counterexample ends.
func TestThePageTellsTheInvariantsOfTheModel(t *testing.T) {
	text, err := os.ReadFile("fleetdeck.pml")
	if err != nil {
		t.Fatal(err)
	}
	invariants := section(t, "Invariants")
	all := regexp.MustCompile(`"BROKEN: (.*)\\n"`).FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		t.Fatal("fleetdeck.pml has no invariants")
	}
	for _, m := range all {
		if !strings.Contains(invariants, "| "+m[1]+" |") {
			t.Errorf("%s does not tell of the invariant %q", page, m[1])
		}
	}
}
