package tui

import "strings"

// term is one part of a filter: a word, or the value of a field, and whether it must be there or must not.
type term struct {
	field, word string
	not         bool
}

// parse takes a filter apart: words that a row must hold, `!word` that it must not, and `field:value` for the rows whose
// field begins so. A field that the list does not have is part of a word.
func (l *list[T]) parse(query string) []term {
	var out []term
	for _, w := range strings.Fields(strings.ToLower(query)) {
		t := term{word: w}
		t.word, t.not = strings.CutPrefix(w, "!")
		if name, value, ok := strings.Cut(t.word, ":"); ok && l.fields[name] != nil {
			t.field, t.word = name, value
		}
		if t.word != "" {
			out = append(out, t)
		}
	}
	return out
}

// agrees reports whether the ith of all rows is what the filter asks for.
func (l *list[T]) agrees(i int) bool {
	for _, t := range l.terms {
		var has bool
		if t.field != "" {
			has = strings.HasPrefix(strings.ToLower(l.fields[t.field](l.all[i])), t.word)
		} else {
			has = strings.Contains(l.lower(i), t.word)
		}
		if has == t.not {
			return false
		}
	}
	return true
}

// lower is the text of the ith of all rows in lower case, made once as long as the rows stay as they are.
func (l *list[T]) lower(i int) string {
	if l.hay == nil {
		l.hay = make([]string, len(l.all))
	}
	if l.hay[i] == "" {
		l.hay[i] = strings.ToLower(l.text(l.all[i]))
	}
	return l.hay[i]
}
