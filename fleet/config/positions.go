package config

import (
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions gives the line of each key below the table named table, however it is spelt there: in a table of its own, dotted
// or in line. Keys are joined by dots, without the table's name; the table itself is "".
func positions(data []byte, table string) map[string]int {
	pos := map[string]int{}
	var p unstable.Parser
	note := func(key []string, line int) {
		if key[0] != table {
			return
		}
		// The first line that opens a table is where the table is.
		for n := 1; n <= len(key); n++ {
			if name := strings.Join(key[1:n], "."); pos[name] == 0 {
				pos[name] = line
			}
		}
	}
	var keyValue func(prefix []string, n *unstable.Node)
	keyValue = func(prefix []string, n *unstable.Node) {
		key, line := keyOf(&p, n)
		key = append(prefix[:len(prefix):len(prefix)], key...)
		note(key, line)
		if n.Value().Kind == unstable.InlineTable {
			for it := n.Value().Children(); it.Next(); {
				keyValue(key, it.Node())
			}
		}
	}
	p.Reset(data)
	var in []string
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			in, line = keyOf(&p, n)
			note(in, line)
		case unstable.KeyValue:
			keyValue(in, n)
		}
	}
	return pos
}

// keyOf gives the parts of n's key and the line on which it begins.
func keyOf(p *unstable.Parser, n *unstable.Node) (key []string, line int) {
	for it := n.Key(); it.Next(); {
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
		key = append(key, string(it.Node().Data))
	}
	return key, line
}
