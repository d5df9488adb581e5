package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const testFormat = "fleetdeck.reservations/1"

func parse(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text), testFormat)
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return d
}

// lines makes a document of its lines as a file has them.
func lines(entries ...string) string {
	all := append([]string{`"$format": "fleetdeck.reservations/1"`}, entries...)
	return "{\n" + strings.Join(all, ",\n") + "\n}\n"
}

func wantBytes(t *testing.T, d *Document, want string) {
	t.Helper()
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("document differs (-want +got):\n%s", diff)
	}
	if !json.Valid(d.Bytes()) {
		t.Error("the document is no JSON")
	}
}

func TestNewDocument(t *testing.T) {
	d := NewDocument(testFormat)
	wantBytes(t, d, lines())
	if d.Len() != 0 {
		t.Errorf("Len = %d, want 0", d.Len())
	}
	wantBytes(t, parse(t, string(d.Bytes())), lines())
}

func TestDocumentIsKeptByteForByte(t *testing.T) {
	text := lines(
		`"$later": {"unknown": [1, 2]}`,
		`"/src/api": {"id":"01JE", "odd":  1.50e+3, "unknown":{"a":null}}`,
		`"/src/a\/b\u00e9": {"id":"01JF"}`,
		`"/src/é\n\"": "<&>"`,
		`"number": 12`,
	)
	d := parse(t, text)
	wantBytes(t, d, text)
	if d.Len() != 4 {
		t.Errorf("Len = %d, want 4: keys with $ are no entries", d.Len())
	}
	var keys []string
	for key, value := range d.All() {
		keys = append(keys, key)
		if got, ok := d.Get(key); !ok || !bytes.Equal(got, value) {
			t.Errorf("Get(%q) = %s, %t, want %s", key, got, ok, value)
		}
	}
	if diff := cmp.Diff([]string{"/src/api", "/src/a/bé", "/src/é\n\"", "number"}, keys); diff != "" {
		t.Error(diff)
	}
	if value, ok := d.Get("$later"); !ok || string(value) != `{"unknown": [1, 2]}` {
		t.Errorf("Get($later) = %s, %t", value, ok)
	}
}

func TestAChangeTouchesItsOwnLineOnly(t *testing.T) {
	d := parse(t, lines(`"/a": {"x": 1}`, `"/b": {"x": 2}`, `"/c": {"x": 3}`))
	d.Set("/b", json.RawMessage("{\n  \"y\": [1,\n 2],\n \"t\": \"a b\\n\"}"))
	d.Set("/d <&>\"\\", json.RawMessage(`true`))
	wantBytes(t, d, lines(`"/a": {"x": 1}`, `"/b": {"y":[1,2],"t":"a b\n"}`, `"/c": {"x": 3}`, `"/d <&>\"\\": true`))
	if !d.Delete("/a") || d.Delete("/a") || d.Delete("/none") {
		t.Error("Delete reports wrongly what was there")
	}
	if _, ok := d.Get("/a"); ok || d.Len() != 3 {
		t.Errorf("after Delete: there %t, Len %d, want 3", ok, d.Len())
	}
	wantBytes(t, d, lines(`"/b": {"y":[1,2],"t":"a b\n"}`, `"/c": {"x": 3}`, `"/d <&>\"\\": true`))
	d.Set("/a", json.RawMessage(`0`))
	wantBytes(t, d, lines(`"/b": {"y":[1,2],"t":"a b\n"}`, `"/c": {"x": 3}`, `"/d <&>\"\\": true`, `"/a": 0`))
}

func TestLoopOverEntriesMayEndEarlyAndDelete(t *testing.T) {
	d := parse(t, lines(`"/a": 1`, `"/b": 2`, `"/c": 3`))
	for key := range d.All() {
		d.Delete(key)
		if key == "/b" {
			break
		}
	}
	wantBytes(t, d, lines(`"/c": 3`))
}

func TestEveryLayoutIsReadAndWrittenOneEntryALine(t *testing.T) {
	want := lines(`"/a": {"id":"1"}`, `"/b": []`)
	for name, text := range map[string]string{
		"one line":             `{"$format": "fleetdeck.reservations/1", "/a": {"id":"1"}, "/b": []}`,
		"indented":             "{\n  \"$format\": \"fleetdeck.reservations/1\",\n  \"/a\": {\n    \"id\": \"1\"\n  },\n  \"/b\": [\n\n ]\n}\n",
		"windows line ends":    "{\r\n\"$format\": \"fleetdeck.reservations/1\",\r\n\"/a\": {\r\n\"id\":\"1\"},\r\n\"/b\": []}\r\n",
		"bare carriage return": "\r{\"$format\":\"fleetdeck.reservations/1\",\"/a\":{\r\"id\":\"1\"},\"/b\":[]}\t\r",
		"format last":          `{"/a":{"id":"1"},"/b":[],"$format":"fleetdeck.reservations/1"}`,
		"no format":            `{"/a":{"id":"1"},"/b":[]}`,
	} {
		t.Run(name, func(t *testing.T) { wantBytes(t, parse(t, text), want) })
	}
}

func TestCorruptDocumentsAreRefusedWithTheirLine(t *testing.T) {
	deep := strings.Repeat("[", maxDepth)
	for _, test := range []struct {
		name, text string
		line       int
		why        string
	}{
		{"zero bytes", "", 1, "empty"},
		{"white space", " \n\t\r\n", 1, "white space"},
		{"NUL bytes", "\x00\x00\x00", 1, "NUL"},
		{"NUL bytes at the end", lines(`"/a": 1`) + "\x00\x00", 5, "behind the end"},
		{"NUL bytes inside", "{\n\"/a\": \x00\x00}", 2, "NUL"},
		{"NUL byte in a string", "{\n\"/a\x00\": 1}", 2, "NUL"},
		{"array", "[]", 1, "not a JSON object"},
		{"null", "null", 1, "not a JSON object"},
		{"number", "\n5", 2, "not a JSON object"},
		{"string", `"x"`, 1, "not a JSON object"},
		{"text", "hello", 1, "not a JSON object"},
		{"byte order mark", "\ufeff{}", 1, "byte order mark"},
		{"trailing text", "{}\n{}", 2, "behind the end"},
		{"the rest of a longer version", lines(`"/a": 1`) + "}\n", 5, "behind the end"},
		{"cut after a brace", "{", 1, "ends where a key"},
		{"cut in a string", "{\n\"/a", 2, "ends inside a string"},
		{"cut in an escape", "{\n\"/a\\", 2, "ends where an escape"},
		{"cut in a value", "{\n\"/a\": tru", 2, "ends where true"},
		{"cut after an entry", "{\n\"/a\": 1,\n", 3, "ends where a key"},
		{"comma at the end", "{\n\"/a\": 1,\n}", 3, "a key should be"},
		{"no comma", "{\n\"/a\": 1\n\"/b\": 2\n}", 3, "a comma"},
		{"no colon", "{\n\"/a\" 1}", 2, "a colon"},
		{"no value", "{\n\"/a\": }", 2, "a value"},
		{"key without quotes", "{\na: 1}", 2, "a key"},
		{"duplicate key", lines(`"/a": 1`, `"/b": 2`, `"/a": 3`), 5, `duplicate key "/a"`},
		{"duplicate key otherwise spelt", lines(`"/a": 1`, `"\u002fa": 3`), 4, "duplicate key"},
		{"duplicate format", "{\"$format\": \"fleetdeck.reservations/1\",\n\"$format\": \"x/9\"}", 2, "duplicate key"},
		{"not UTF-8", "{\n\n\"/\xff\": 1}", 3, "UTF-8"},
		{"not UTF-8 in a value", "{\n\"/a\": \"\xc3\"}", 2, "UTF-8"},
		{"line end in a string", "{\n\"/a\n\": 1}", 2, "control character"},
		{"bad escape", "{\n\"/a\": \"\\x\"}", 2, "escape"},
		{"bad unicode escape", "{\n\"/a\": \"\\u12g4\"}", 2, "hexadecimal"},
		{"leading zero", "{\n\"/a\": 01}", 2, "a comma"},
		{"bare minus", "{\n\"/a\": -}", 2, "a digit"},
		{"no fraction", "{\n\"/a\": 1.}", 2, "a digit"},
		{"no exponent", "{\n\"/a\": 1e+}", 2, "a digit"},
		{"not a number", "{\n\"/a\": NaN}", 2, "a value"},
		{"array without comma", "{\n\"/a\": [1\n2]}", 3, "a comma"},
		{"array without value", "{\n\"/a\": [1,]}", 2, "a value"},
		{"nested too deep", `{"/a": ` + deep + strings.Repeat("]", maxDepth) + "}", 1, "too deep"},
		{"format is no string", "{\n\"$format\": 1}", 2, "$format is no string"},
		{"format is null", "{\n\"$format\": null}", 2, "$format is no string"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text), testFormat)
			corrupt, ok := errors.AsType[*CorruptError](err)
			if !ok || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("Parse = %v, want a CorruptError", err)
			}
			if corrupt.Line != test.line || !strings.Contains(corrupt.Why, test.why) {
				t.Errorf("Parse = %v, want line %d and %q", err, test.line, test.why)
			}
		})
	}
}

func TestOtherAndNewerFormatsAreRefused(t *testing.T) {
	for _, test := range []struct {
		have, want string
		ok         bool
	}{
		{"fleetdeck.reservations/1", "fleetdeck.reservations/1", true},
		{"fleetdeck.reservations/1", "fleetdeck.reservations/2", true},
		{"fleetdeck.reservations/2", "fleetdeck.reservations/1", false},
		{"fleetdeck.reservations/10", "fleetdeck.reservations/9", false},
		{"fleetdeck.members/1", "fleetdeck.reservations/1", false},
		{"fleetdeck.reservations", "fleetdeck.reservations/1", false},
		{"fleetdeck.reservations/", "fleetdeck.reservations/1", false},
		{"fleetdeck.reservations/0", "fleetdeck.reservations/1", false},
		{"fleetdeck.reservations/-1", "fleetdeck.reservations/1", false},
		{"", "fleetdeck.reservations/1", false},
	} {
		text := fmt.Sprintf("{\"$format\": %q, \"/a\": 1}", test.have)
		d, err := Parse([]byte(text), test.want)
		if test.ok {
			if err != nil {
				t.Errorf("Parse of %q as %q: %v", test.have, test.want, err)
			} else if !bytes.Contains(d.Bytes(), []byte(test.have)) {
				t.Errorf("Parse of %q as %q changed the format: %s", test.have, test.want, d.Bytes())
			}
			continue
		}
		format, ok := errors.AsType[*FormatError](err)
		if !ok || !errors.Is(err, ErrFormat) || errors.Is(err, ErrCorrupt) || format.Have != test.have || format.Want != test.want {
			t.Errorf("Parse of %q as %q = %v, want a FormatError", test.have, test.want, err)
		}
	}
}

func TestKeysThatCannotBeWritten(t *testing.T) {
	if err := CheckKey("/src/\xff"); !errors.Is(err, ErrKey) {
		t.Errorf("CheckKey = %v, want ErrKey", err)
	}
	if err := CheckKey("/src/é \n\""); err != nil {
		t.Errorf("CheckKey = %v", err)
	}
	for name, set := range map[string]func(*Document){
		"key":   func(d *Document) { d.Set("\xff", json.RawMessage("1")) },
		"value": func(d *Document) { d.Set("/a", json.RawMessage("{")) },
		"empty": func(d *Document) { d.Set("/a", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDocument(testFormat)
			defer func() {
				if recover() == nil {
					t.Error("Set did not panic")
				}
				wantBytes(t, d, lines())
			}()
			set(d)
		})
	}
}

func TestValuesCannotGrowIntoTheirNeighbours(t *testing.T) {
	d := parse(t, lines(`"/a": {"x":1}`, `"/b": 2`))
	value, _ := d.Get("/a")
	_ = append(value, "overwritten"...)
	wantBytes(t, d, lines(`"/a": {"x":1}`, `"/b": 2`))
}

func TestFields(t *testing.T) {
	type field struct{ Key, Value string }
	fields := func(object string) (all []field) {
		for key, value := range Fields(json.RawMessage(object)) {
			all = append(all, field{key, string(value)})
		}
		return all
	}
	got := fields(` {"id": "01JE", "n\u0069l" : null,"o":{"a":[1,{"b":"}"}]},"s":"\"}"}`)
	want := []field{{"id", `"01JE"`}, {"nil", "null"}, {"o", `{"a":[1,{"b":"}"}]}`}, {"s", `"\"}"`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"", "{}", "[1]", "null", "5", `"x"`} {
		if got := fields(none); got != nil {
			t.Errorf("Fields(%q) = %v, want none", none, got)
		}
	}
	for key := range Fields(json.RawMessage(`{"a":1,"b":2}`)) {
		if key != "a" {
			t.Errorf("loop went on to %q", key)
		}
		break
	}
}

func TestFieldsCopyNoValue(t *testing.T) {
	object := json.RawMessage(`{"a":{"deep":[1,2,3]},"b":"text"}`)
	var values []json.RawMessage
	for _, value := range Fields(object) {
		values = append(values, value)
	}
	copy(object, bytes.Repeat([]byte{'x'}, len(object)))
	if got := fmt.Sprintf("%s", values); strings.Trim(got, "[]x ") != "" {
		t.Errorf("values are %s, copies from before the object changed", got)
	}
}

// isDocument says what Parse must accept, by encoding/json.
func isDocument(data []byte) bool {
	if !json.Valid(data) || !utf8.Valid(data) || bytes.TrimLeft(data, " \t\r\n")[0] != '{' {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.Token()
	for seen := map[string]bool{}; dec.More(); {
		key, err := dec.Token()
		if err != nil || seen[key.(string)] {
			return false
		}
		seen[key.(string)] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return false
		}
		if _, isString := key.(string); isString && key == formatKey && value[0] != '"' {
			return false
		}
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "null", " {\n} ", "{\"a\":1,}", "\ufeff{}", "{}{}", "{}\n\x00",
		lines(`"/a": {"id":"01JE"}`, `"/b": [1, -0.5e+7, true, false, null, {}, [], "\u00e9\\\"\/\b\f\n\r\t"]`),
		`{"a":1,"\u0061":2}`, `{"a":1,"a":2}`, "{\"\xff\":1}", "{\"a\x00\":1}", `{"\ud800":1}`, `{"a":"\ud83d\ude00"}`,
		`{"$format":"fleetdeck.reservations/2"}`, `{"$format":5}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`,
		"{\"a\":\"0123456\x1f\"}", "{\"a\":\"01234567\\\"89abcdef\"}", "{\"a\":[[[[{}]]]],\r\"b\":\r1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		original := bytes.Clone(data)
		d, err := Parse(data, testFormat)
		if !bytes.Equal(data, original) {
			t.Fatal("Parse changed its input")
		}
		if errors.Is(err, ErrFormat) {
			if !isDocument(data) {
				t.Fatalf("Parse = %v of what is no document", err)
			}
			return
		}
		if (err == nil) != isDocument(data) {
			t.Fatalf("Parse = %v, want accepted: %t", err, isDocument(data))
		}
		if err != nil {
			corrupt, ok := errors.AsType[*CorruptError](err)
			if !ok || corrupt.Line < 1 || corrupt.Line > 1+bytes.Count(data, []byte{'\n'}) {
				t.Fatalf("Parse = %#v, want a CorruptError with a line of the text", err)
			}
			return
		}
		wantSameMeaning(t, data, d.Bytes())
		again, err := Parse(d.Bytes(), testFormat)
		if err != nil || !bytes.Equal(again.Bytes(), d.Bytes()) {
			t.Fatalf("written and read again: %v\n%s\n%s", err, d.Bytes(), again.Bytes())
		}
		d.Set("fuzz/é", json.RawMessage(`{"a" : 1}`))
		d.Delete("fuzz/é")
		wantSameMeaning(t, again.Bytes(), d.Bytes())
	})
}

// wantSameMeaning demands that two documents say the same, but for a format that was not there.
func wantSameMeaning(t *testing.T, before, after []byte) {
	t.Helper()
	var was, is map[string]any
	if err := decode(before, &was); err != nil {
		t.Fatal(err)
	}
	if err := decode(after, &is); err != nil {
		t.Fatalf("%v in %q", err, after)
	}
	if _, had := was[formatKey]; !had {
		delete(is, formatKey)
	}
	delete(was, "fuzz/é")
	if diff := cmp.Diff(was, is); diff != "" {
		t.Fatal(diff)
	}
}

func decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(into)
}
