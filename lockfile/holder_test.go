package lockfile

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestHoldersProgramCannotDriveATerminal(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"arguments", "python3\x00dispatch.py\x00", "python3 dispatch.py"},
		{"escape sequence", "sh\x1b[31m\x00-c\x1b]0;title\x07", "sh [31m -c ]0;title"},
		{"C1 control", "a\u009b31mb", "a 31mb"},
		{"lines", "a\nb\r\nc", "a b c"},
		{"right to left override", "a\u202eb", "a b"},
		{"not UTF-8", "a\xff\xfeb", "a b"},
		{"nothing", "\x00\x00", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := printable(test.text); got != test.want {
				t.Errorf("printable(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
	if n := utf8.RuneCountInString(printable(strings.Repeat("é", 500))); n != maxProgram {
		t.Errorf("a long command line gives %d runes, want %d", n, maxProgram)
	}
}

func TestHolderIsDatedByProcessNotByPid(t *testing.T) {
	var o observations
	at := func(sec int64, p process) time.Time {
		return o.date([]sighting{{Holder: Holder{Pid: p.pid}, process: p}}, time.Unix(sec, 0))[0].Since
	}
	if since := at(1, process{7, "100"}); since != time.Unix(1, 0) {
		t.Errorf("first seen at %v", since)
	}
	if since := at(2, process{7, "100"}); since != time.Unix(1, 0) {
		t.Errorf("still there, since %v", since)
	}
	if since := at(3, process{7, "200"}); since != time.Unix(3, 0) {
		t.Errorf("another process with the pid, since %v", since)
	}
	o.date(nil, time.Unix(4, 0))
	if since := at(5, process{7, "200"}); since != time.Unix(5, 0) {
		t.Errorf("came back, since %v", since)
	}
}

func TestBusyErrorNamesAFewHolders(t *testing.T) {
	err := &BusyError{Path: "/state/reservations.json", Holders: []Holder{
		{Pid: 4242, Program: "python3 dispatch.py"}, {Pid: 2}, {Pid: 3}, {Pid: 4}, {Pid: 5},
	}}
	for n, want := range []string{
		"reservations.json is busy",
		"reservations.json is busy: held by pid 4242 (python3 dispatch.py)",
		"reservations.json is busy: held by pid 4242 (python3 dispatch.py), pid 2",
		"reservations.json is busy: held by pid 4242 (python3 dispatch.py), pid 2, pid 3",
		"reservations.json is busy: held by pid 4242 (python3 dispatch.py), pid 2, pid 3 and 1 more",
	} {
		if got := (&BusyError{Path: err.Path, Holders: err.Holders[:n]}).Error(); got != want {
			t.Errorf("%d holders: %q, want %q", n, got, want)
		}
	}
}
