package cluster

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
)

func TestWhyNoEndPointAnswersIsTold(t *testing.T) {
	t.Parallel()
	listen := func(says string) (address string, closeIt func() error) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { conn.Close() })
				io.WriteString(conn, says)
			}
		}()
		return listener.Addr().String(), listener.Close
	}
	closed, closeIt := listen("")
	closeIt()
	mute, _ := listen("")
	plain, _ := listen("HTTP/1.1 400 Bad Request\r\n\r\n")
	for _, tt := range []struct {
		name      string
		endpoints []string
		conf      *tls.Config
		want      []string
	}{
		{"nobody listens", []string{"http://" + closed}, nil, []string{closed + ": connection refused"}},
		{"one is not there, one says nothing", []string{"http://" + closed, "http://" + mute}, nil,
			[]string{closed + ": connection refused", mute + ": connected, but no answer in time"}},
		{"a host that nobody knows", []string{"http://etcd.invalid:2379"}, nil, []string{"etcd.invalid:2379: lookup etcd.invalid"}},
		{"a server without TLS", []string{"https://" + plain}, &tls.Config{}, []string{plain + ": it speaks no TLS: is it http://?"}},
		{"a socket that is not there", []string{"unix:///nowhere/etcd"}, nil, []string{"/nowhere/etcd: no such file or directory"}},
	} {
		l := New(options(tt.endpoints, "web"))
		l.TLS = tt.conf
		err := l.unreachable(errLost)
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", tt.name, err, want)
			}
		}
		l.Close()
	}
}
