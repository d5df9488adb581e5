// Package mcp is the agents' door: the fleet as tools of the Model Context Protocol.
//
// It guarantees that whoever comes through here may do no more than by any other way: a tool acts as the member whose token
// its client carries, and a spawn goes through the same [dispatch.Dispatcher] as everybody's. What is refused comes back as
// a tool error that carries the refusal's code, in its text and in its structured content.
package mcp

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fleetdeck/fleet"
	"fleetdeck/fleet/api"
	"fleetdeck/fleet/client"
	"fleetdeck/fleet/dispatch"
)

// Fleet is what the tools work on, for one caller.
type Fleet struct {
	// Client carries the caller's token; without one the caller is the operator.
	Client *client.Client
	// Dispatcher asks the daemon through the same client.
	Dispatcher *dispatch.Dispatcher
	// Profile is what a spawn runs on that names none.
	Profile string
	Version string
}

const instructions = `The tools of a fleet of coding agents. Each agent works in a git working tree of its own: a tree has one worker, never two.
A refusal carries a code: tree_occupied and tree_reserved (choose another tree, or wait), tree_foreign (an agent works there that
the fleet did not start), worktree_refused (no linked worktree could be made), slot_unavailable (all places of that role are
taken), not_allowed (your role may not do this). outcome_unknown is no refusal: the agent may be there.`

// New makes the server of f's tools.
func New(f Fleet) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fleetdeck", Title: "fleetdeck", Version: f.Version},
		&sdk.ServerOptions{Instructions: instructions})
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	acts := &sdk.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)}
	ends := &sdk.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)}

	sdk.AddTool(s, &sdk.Tool{Name: "fleet_spawn", Title: "Start an agent", Annotations: acts,
		Description: "Start an agent in a git working tree. It is accepted at once and listed once it is ready. With branch it starts in a new linked worktree of the tree; with also it holds further trees. Refused if anybody is in one of the trees already, if no slot of the role is free, or if your role may not spawn."}, f.spawn)
	sdk.AddTool(s, &sdk.Tool{Name: "fleet_list", Title: "List the fleet", Annotations: reads,
		Description: "List the members of the fleet (what they are, where they work, what they say they are doing), the launches that are not ready yet, and the slots."}, f.list)
	sdk.AddTool(s, &sdk.Tool{Name: "fleet_whoami", Title: "Who am I", Annotations: reads,
		Description: "Say which member of the fleet you are: role, slot, tree, the further trees that you hold, the SHA-256 of the charter that you were handed, and what you may ask for."}, f.whoami)
	sdk.AddTool(s, &sdk.Tool{Name: "fleet_report", Title: "Report what you are doing", Annotations: acts,
		Description: "Tell the operator what you are doing: working, idle, waiting (a person must answer) or done."}, f.report)
	sdk.AddTool(s, &sdk.Tool{Name: "fleet_send", Title: "Write to a member", Annotations: acts,
		Description: "Type a text into a member's terminal and press return."}, f.send)
	sdk.AddTool(s, &sdk.Tool{Name: "fleet_stop", Title: "Stop a member", Annotations: ends,
		Description: "End a member, or a launch, with every process that it started. It returns once they are gone."}, f.stop)
	return s
}

// Handler serves the tools over HTTP. There are no sessions: each request is its own caller's, for whom fleetOf makes the
// fleet by the token that came with it.
func Handler(fleetOf func(token string) Fleet) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return New(fleetOf(token))
	}, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: api.MaxBody})
}

// refusal is a refused call's structured content. It is part of every answer's schema: clients check errors against it too.
type refusal struct {
	Code    fleet.Code `json:"code,omitempty" jsonschema:"why it was refused; set only then"`
	Message string     `json:"message,omitempty"`
	Hint    string     `json:"hint,omitempty" jsonschema:"what to do next"`
}

// refuse makes the tool error of err.
func refuse(err error) (*sdk.CallToolResult, refusal) {
	out := refusal{Code: fleet.CodeInternal, Message: err.Error()}
	if r := fleet.RefusalOf(err); r != nil {
		out.Code, out.Hint = r.Code, r.Hint
	}
	text := string(out.Code) + ": " + out.Message
	if out.Hint != "" {
		text += "\n" + out.Hint
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}, out
}

type spawnInput struct {
	Tree    string     `json:"tree" jsonschema:"absolute path of the git working tree"`
	Role    fleet.Role `json:"role,omitempty" jsonschema:"role of the agent; dev if left out"`
	Profile string     `json:"profile,omitempty" jsonschema:"profile that it runs on; the first one configured if left out"`
	Task    string     `json:"task" jsonschema:"what the agent is to do"`
	Branch  string     `json:"branch,omitempty" jsonschema:"make a linked worktree of the tree on this branch first, and start the agent there"`
	Also    []string   `json:"also,omitempty" jsonschema:"absolute paths of further git working trees that the agent is to hold: all of them, or nobody is started"`
	Beside  bool       `json:"beside_foreign,omitempty" jsonschema:"start it also where an agent works that this fleet did not start"`
	Wait    bool       `json:"wait,omitempty" jsonschema:"wait until the agent is listed, or has failed"`
}

type spawnOutput struct {
	Outcome     string     `json:"outcome,omitempty" jsonschema:"accepted, refused or unknown"`
	Tree        string     `json:"tree,omitempty"`
	Role        fleet.Role `json:"role,omitempty"`
	Profile     string     `json:"profile,omitempty"`
	Slot        string     `json:"slot,omitempty"`
	Reservation string     `json:"reservation,omitempty"`
	Member      string     `json:"member,omitempty" jsonschema:"the agent's id"`
	refusal
}

func (f Fleet) spawn(ctx context.Context, _ *sdk.CallToolRequest, in spawnInput) (*sdk.CallToolResult, spawnOutput, error) {
	for _, path := range append([]string{in.Tree}, in.Also...) {
		if !filepath.IsAbs(path) {
			res, r := refuse(fleet.Refuse(fleet.CodeBadRequest, "tree %q is no absolute path", path))
			return res, spawnOutput{refusal: r}, nil
		}
	}
	out, err := f.Dispatcher.Dispatch(ctx, fleet.Order{
		Tree: in.Tree, Role: cmp.Or(in.Role, fleet.RoleDev), Profile: cmp.Or(in.Profile, f.Profile), Task: in.Task,
		Branch: in.Branch, Also: in.Also, BesideForeign: in.Beside,
	})
	if err == nil && in.Wait {
		out, err = f.Dispatcher.Wait(ctx, out)
	}
	answer := spawnOutput{
		Outcome: out.Outcome, Tree: out.Tree, Role: out.Role, Profile: out.Profile, Slot: out.Slot,
		Reservation: out.Reservation, Member: out.Member,
	}
	var res *sdk.CallToolResult
	if err != nil {
		res, answer.refusal = refuse(err)
	}
	return res, answer, nil
}

type none struct{}

type listOutput struct {
	Members  []listedMember `json:"members,omitempty"`
	Launches []listedLaunch `json:"launches,omitempty" jsonschema:"accepted, and not ready yet"`
	Slots    []listedSlot   `json:"slots,omitempty"`
	refusal
}

type listedMember struct {
	ID              string      `json:"id"`
	Tree            string      `json:"tree"`
	Also            []string    `json:"also,omitempty" jsonschema:"further trees that it holds"`
	Role            fleet.Role  `json:"role"`
	Profile         string      `json:"profile"`
	Slot            string      `json:"slot,omitempty"`
	State           fleet.State `json:"state" jsonschema:"working, idle, waiting, done, unknown or exited"`
	StateMessage    string      `json:"state_message,omitempty"`
	ExitCode        *int        `json:"exit_code,omitempty"`
	CharterMismatch bool        `json:"charter_mismatch,omitempty" jsonschema:"it runs on the charter of a role that it does not hold"`
}

type listedLaunch struct {
	ID      string     `json:"id"`
	Tree    string     `json:"tree"`
	Also    []string   `json:"also,omitempty" jsonschema:"further trees that it holds"`
	Role    fleet.Role `json:"role"`
	Profile string     `json:"profile"`
	Step    string     `json:"step"`
}

type listedSlot struct {
	Name    string     `json:"name"`
	Role    fleet.Role `json:"role"`
	Profile string     `json:"profile"`
	State   string     `json:"state" jsonschema:"free, reserved or bound"`
	Member  string     `json:"member,omitempty"`
}

func (f Fleet) list(ctx context.Context, _ *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, listOutput, error) {
	var out listOutput
	roster, err := f.Client.Roster(ctx)
	var slots []fleet.Slot
	if err == nil {
		slots, err = f.Client.Slots(ctx)
	}
	if err != nil {
		res, r := refuse(err)
		return res, listOutput{refusal: r}, nil
	}
	for _, m := range roster.Members {
		out.Members = append(out.Members, listedMember{m.ID, m.Tree, paths(m.Also), m.Role, m.Profile, m.Slot, m.State, m.StateMessage, m.ExitCode, m.CharterMismatch})
	}
	for _, l := range roster.Launches {
		out.Launches = append(out.Launches, listedLaunch{l.ID, l.Tree, paths(l.Also), l.Role, l.Profile, l.Step})
	}
	for _, s := range slots {
		out.Slots = append(out.Slots, listedSlot{s.Name, s.Role, s.Profile, s.State, s.Member})
	}
	return nil, out, nil
}

type whoamiOutput struct {
	Member          string     `json:"member,omitempty"`
	Role            fleet.Role `json:"role,omitempty"`
	Slot            string     `json:"slot,omitempty"`
	Tree            string     `json:"tree,omitempty"`
	Also            []string   `json:"also,omitempty" jsonschema:"further trees that you hold"`
	Profile         string     `json:"profile,omitempty"`
	CharterSHA256   string     `json:"charter_sha256,omitempty" jsonschema:"hash of the charter's bytes that you were handed"`
	CharterMismatch bool       `json:"charter_mismatch,omitempty" jsonschema:"your charter is of a role that you do not hold"`
	May             []string   `json:"may,omitempty" jsonschema:"what your role may ask for: spawn, send, stop"`
	refusal
}

func (f Fleet) whoami(ctx context.Context, _ *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, whoamiOutput, error) {
	id, err := f.Client.Whoami(ctx)
	var roster fleet.Roster
	if err == nil {
		roster, err = f.Client.Roster(ctx)
	}
	if err != nil {
		res, r := refuse(err)
		return res, whoamiOutput{refusal: r}, nil
	}
	return nil, whoamiOutput{
		id.Member, id.Role, id.Slot, id.Tree, alsoOf(roster, id.Member), id.Profile, id.CharterSHA256, id.CharterMismatch, id.May, refusal{},
	}, nil
}

// alsoOf gives the further trees of the member or launch id.
func alsoOf(roster fleet.Roster, id string) []string {
	for _, m := range roster.Members {
		if m.ID == id {
			return paths(m.Also)
		}
	}
	for _, l := range roster.Launches {
		if l.ID == id {
			return paths(l.Also)
		}
	}
	return nil
}

func paths(trees []fleet.Tree) []string {
	var out []string
	for _, t := range trees {
		out = append(out, t.Path)
	}
	return out
}

type reportInput struct {
	State   fleet.State `json:"state" jsonschema:"working, idle, waiting (a person must answer) or done"`
	Message string      `json:"message,omitempty" jsonschema:"what to tell the operator"`
}

// doneOutput is the answer of a tool that only does something.
type doneOutput struct {
	Member string `json:"member,omitempty" jsonschema:"the id of the member that it was done to"`
	refusal
}

func (f Fleet) report(ctx context.Context, _ *sdk.CallToolRequest, in reportInput) (*sdk.CallToolResult, doneOutput, error) {
	id, err := f.Client.Whoami(ctx)
	if err == nil {
		err = f.Client.Report(ctx, id.Member, api.Report{State: in.State, Message: in.Message})
	}
	return done(id.Member, err)
}

type sendInput struct {
	Member string `json:"member" jsonschema:"the member's id, or a tree that it holds"`
	Text   string `json:"text"`
}

func (f Fleet) send(ctx context.Context, _ *sdk.CallToolRequest, in sendInput) (*sdk.CallToolResult, doneOutput, error) {
	id, err := f.find(ctx, in.Member)
	if err == nil {
		err = f.Client.Send(ctx, id, in.Text, true)
	}
	return done(id, err)
}

type stopInput struct {
	Member string `json:"member" jsonschema:"the member's id, or a tree that it holds"`
}

func (f Fleet) stop(ctx context.Context, _ *sdk.CallToolRequest, in stopInput) (*sdk.CallToolResult, doneOutput, error) {
	id, err := f.find(ctx, in.Member)
	if err == nil {
		err = f.Client.Stop(ctx, id)
	}
	return done(id, err)
}

func done(member string, err error) (*sdk.CallToolResult, doneOutput, error) {
	if err != nil {
		res, r := refuse(err)
		return res, doneOutput{refusal: r}, nil
	}
	return nil, doneOutput{Member: member}, nil
}

// find finds the member or launch that name means.
func (f Fleet) find(ctx context.Context, name string) (string, error) {
	roster, err := f.Client.Roster(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range roster.Members {
		if m.ID == name || m.Alive() && m.Holds(fleet.Tree{Path: name}) {
			return m.ID, nil
		}
	}
	for _, l := range roster.Launches {
		if l.ID == name || l.Holds(fleet.Tree{Path: name}) {
			return l.ID, nil
		}
	}
	return "", fleet.Refuse(fleet.CodeNotFound, "no such member: %q", name).WithHint("fleet_list shows who is there")
}
