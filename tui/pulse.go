package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// frameTime is the time between two frames while something happens.
	frameTime = time.Second / frameRate
	// restTime is the time between two looks for a frame to write while nothing happens. There is none then, unless the
	// terminal took so long over the last that one came after it.
	restTime = time.Second
	// restAfter is how long nothing must have been drawn for that.
	restAfter = 3 * frameTime
)

// pulse slows the renderer's clock down while nothing is drawn. The framework looks for a frame to write at its frame rate
// for ever (charmbracelet/bubbletea#1776, #1796): on an idle console that is most of what it costs.
type pulse struct {
	program *tea.Program

	mu     sync.Mutex // guards all below
	ticker *time.Ticker
	slow   *time.Timer
	rests  bool
	drawn  time.Time
}

// beat is to be called when a frame was drawn, by the program's own goroutine.
func (p *pulse) beat() {
	if p.program == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticker == nil {
		if p.ticker = tickerOf(p.program); p.ticker == nil {
			return // it ticks at its own rate
		}
		p.slow = time.AfterFunc(restAfter, p.rest)
	}
	if p.rests {
		p.rests = false
		p.ticker.Reset(frameTime)
	}
	p.drawn = time.Now()
	p.slow.Reset(restAfter)
}

func (p *pulse) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.drawn) >= restAfter {
		p.rests = true
		p.ticker.Reset(restTime)
	}
}

// stop ends the pulse with its program.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slow != nil {
		p.slow.Stop()
	}
}

// tickerOf is the clock of a program's renderer, which the framework does not show; nil where it keeps none by that name.
func tickerOf(p *tea.Program) *time.Ticker {
	f := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return (*time.Ticker)(f.UnsafePointer())
}
