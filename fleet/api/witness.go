package api

import (
	"time"

	"fleetdeck/fleet"
)

// Witnesses answers GET /v1/members/{id}/witnesses: who says what of a member.
type Witnesses struct {
	Member string `json:"member"`
	// Judgement is what is shown, Testimonies what was said, the best source first.
	Judgement   Judgement   `json:"judgement"`
	Testimonies []Testimony `json:"testimonies"`
	// OutputAt is when it last printed something, as far as the daemon has heard.
	OutputAt time.Time `json:"output_at,omitzero"`
	// Notice is the last notification on its terminal.
	Notice   string    `json:"notice,omitempty"`
	NoticeAt time.Time `json:"notice_at,omitzero"`
	// Session is the agent's own name of its session, Resume the command that takes it up again. Where there is none,
	// ResumeRefused says why.
	Session       string         `json:"session,omitempty"`
	Resume        []string       `json:"resume,omitempty"`
	ResumeRefused *fleet.Refusal `json:"resume_refused,omitempty"`
	// Recorded is the version of the agent that the rules for its terminal were made from.
	Recorded string `json:"recorded,omitempty"`
}

// Judgement is what a member is doing, by whose word, and since when.
type Judgement struct {
	State   fleet.State `json:"state"`
	Message string      `json:"message"`
	Source  string      `json:"source"`
	At      time.Time   `json:"at,omitzero"`
}

// Testimony is what a source said: first at At, and last at Seen.
type Testimony struct {
	Source  string      `json:"source"`
	State   fleet.State `json:"state"`
	Message string      `json:"message,omitempty"`
	At      time.Time   `json:"at"`
	Seen    time.Time   `json:"seen"`
}
