// Package client is the daemon's API as Go calls.
//
// Its errors keep three cases apart: a refusal ([fleet.Refusal]) means that the daemon said no; one that wraps
// [ErrNotSent] means that the request provably never left; any other means that nobody knows what became of it.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/launch/sockpath"
)

// ErrNotSent means that the daemon could not be reached: the request was provably not sent.
var ErrNotSent = errors.New("the daemon is out of reach")

// Client talks to the daemon behind one socket. It is safe for use by several goroutines.
type Client struct {
	socket string
	token  string
	http   *http.Client
}

// New makes a client of the daemon at socket. A token makes it speak as the member whose token that is.
func New(socket, token string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		if uid, err := sockpath.PeerUID(conn); err != nil || uid != os.Getuid() {
			conn.Close()
			return nil, fmt.Errorf("%w: what listens at %s is user %d's, not yours", ErrNotSent, socket, uid)
		}
		return conn, nil
	}
	return &Client{socket: socket, token: token, http: &http.Client{
		Transport: &http.Transport{DialContext: dial, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 4},
	}}
}

// As is a client of the same daemon that speaks as the member with this token; without one, as the operator.
func (c *Client) As(token string) *Client {
	return &Client{socket: c.socket, token: token, http: c.http}
}

// Socket is the socket's path.
func (c *Client) Socket() string { return c.socket }

// Health asks whether the daemon is well.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var h api.Health
	return h, c.call(ctx, http.MethodGet, "/v1/health", nil, &h)
}

// Spawn asks for an agent. Sent twice with one reservation it starts one.
func (c *Client) Spawn(ctx context.Context, req api.Spawn) (api.Accepted, error) {
	var a api.Accepted
	if err := c.call(ctx, http.MethodPost, "/v1/members", req, &a); err != nil {
		return api.Accepted{}, err
	}
	if a.ID() == "" {
		return api.Accepted{}, fmt.Errorf("the daemon's answer names neither launch nor member")
	}
	return a, nil
}

// Roster asks who is there: members and launches, in one consistent view.
func (c *Client) Roster(ctx context.Context) (fleet.Roster, error) {
	var r fleet.Roster
	return r, c.call(ctx, http.MethodGet, "/v1/roster", nil, &r)
}

// Launch asks how the launch id stands, or how it ended.
func (c *Client) Launch(ctx context.Context, id string) (api.LaunchStatus, error) {
	var s api.LaunchStatus
	return s, c.call(ctx, http.MethodGet, "/v1/launches/"+url.PathEscape(id), nil, &s)
}

// Reservation asks what became of the reservation id. One that the daemon accepted no spawn for is [fleet.CodeNotFound].
func (c *Client) Reservation(ctx context.Context, id string) (api.LaunchStatus, error) {
	var s api.LaunchStatus
	return s, c.call(ctx, http.MethodGet, "/v1/reservations/"+url.PathEscape(id), nil, &s)
}

// Slots asks for the slot bindings.
func (c *Client) Slots(ctx context.Context) ([]fleet.Slot, error) {
	var s []fleet.Slot
	return s, c.call(ctx, http.MethodGet, "/v1/slots", nil, &s)
}

// Member asks for one member.
func (c *Client) Member(ctx context.Context, id string) (fleet.Member, error) {
	var m fleet.Member
	return m, c.call(ctx, http.MethodGet, "/v1/members/"+url.PathEscape(id), nil, &m)
}

// Screen asks for a member's screen once it is newer than rev. The daemon may answer with the same one after a while.
func (c *Client) Screen(ctx context.Context, id string, rev uint64) (fleet.Screen, error) {
	var s fleet.Screen
	return s, c.call(ctx, http.MethodGet, "/v1/members/"+url.PathEscape(id)+"/screen?after="+strconv.FormatUint(rev, 10), nil, &s)
}

// Send types text to a member, and presses return if enter is set.
func (c *Client) Send(ctx context.Context, id, text string, enter bool) error {
	return c.call(ctx, http.MethodPost, "/v1/members/"+url.PathEscape(id)+"/input", api.Input{Text: text, Enter: enter}, nil)
}

// Report says what a member is doing.
func (c *Client) Report(ctx context.Context, id string, r api.Report) error {
	return c.call(ctx, http.MethodPost, "/v1/members/"+url.PathEscape(id)+"/state", r, nil)
}

// Witnesses asks who says what of a member.
func (c *Client) Witnesses(ctx context.Context, id string) (api.Witnesses, error) {
	var w api.Witnesses
	return w, c.call(ctx, http.MethodGet, "/v1/members/"+url.PathEscape(id)+"/witnesses", nil, &w)
}

// May asks whether the client may do something: spawn, send or stop. The operator may do everything, and does not ask.
func (c *Client) May(ctx context.Context, what string) error {
	if c.token == "" {
		return nil
	}
	return c.call(ctx, http.MethodGet, "/v1/may/"+url.PathEscape(what), nil, nil)
}

// Whoami asks who the client's token speaks for.
func (c *Client) Whoami(ctx context.Context) (api.Identity, error) {
	var id api.Identity
	return id, c.call(ctx, http.MethodGet, "/v1/whoami", nil, &id)
}

// Stop ends a member or a launch, with every process that it started, and waits for that.
func (c *Client) Stop(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/members/"+url.PathEscape(id), nil, nil)
}

// Shutdown asks the daemon to end itself; with stopMembers, the members first.
func (c *Client) Shutdown(ctx context.Context, stopMembers bool) error {
	return c.call(ctx, http.MethodPost, "/v1/shutdown?stop_members="+strconv.FormatBool(stopMembers), nil, nil)
}

// Log streams a member's raw output from disk, and with follow what comes after it until ctx ends. The caller closes it.
func (c *Client) Log(ctx context.Context, id string, follow bool) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, "/v1/members/"+url.PathEscape(id)+"/log?follow="+strconv.FormatBool(follow), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Events calls each with every event after seq, then, with follow, with each new one until ctx ends or the stream
// breaks.
func (c *Client) Events(ctx context.Context, after uint64, follow bool, each func(fleet.Event)) error {
	resp, err := c.do(ctx, http.MethodGet,
		fmt.Sprintf("/v1/events?after=%d&follow=%t", after, follow), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, api.MaxBody)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e fleet.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("read the event stream: %w", err)
		}
		each(e)
	}
	return lines.Err()
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(data)
	}
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return nil
}

// do sends a request; any status but success is an error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://fleetd"+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, ErrNotSent) {
		return nil, fleet.Refuse(fleet.CodeDaemonUnreachable, "%w", errors.Unwrap(err)).
			WithHint("start it with 'fleetdeck up'")
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, api.MaxBody))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	var refusal fleet.Refusal
	if json.Unmarshal(data, &refusal) != nil || refusal.Code == "" || resp.StatusCode >= 500 {
		return nil, fmt.Errorf("%s %s: the daemon answered %s: %s", method, path, resp.Status, refusal.Message)
	}
	return nil, &refusal
}
