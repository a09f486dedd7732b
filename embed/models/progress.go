package models

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// meter shows how far a download is: a bar on a terminal, elsewhere a line every few seconds and one at the end.
type meter struct {
	out        io.Writer
	name       string
	done, size int64
	printed    time.Time
	bar        *progressbar.ProgressBar
}

// newMeter shows the progress of one file; size is -1 when unknown.
func newMeter(out io.Writer, name string, size int64) *meter {
	m := &meter{out: out, name: name, size: size, printed: time.Now()}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		m.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(name),
			progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionOnCompletion(func() { fmt.Fprintln(out) }),
		)
	}
	return m
}

// Set says how many bytes are there already.
func (m *meter) Set(done int64) {
	m.done = done
	if m.bar != nil {
		_ = m.bar.Set64(done)
	}
}

// Write counts p.
func (m *meter) Write(p []byte) (int, error) {
	m.done += int64(len(p))
	if m.bar != nil {
		_ = m.bar.Add(len(p))
	} else if time.Since(m.printed) >= 5*time.Second {
		m.line()
	}
	return len(p), nil
}

// Close ends the display.
func (m *meter) Close() {
	if m.bar == nil {
		m.line()
	} else if !m.bar.IsFinished() {
		_ = m.bar.Exit()
	}
}

func (m *meter) line() {
	m.printed = time.Now()
	if m.size > 0 {
		fmt.Fprintf(m.out, "%s: %.1f of %.1f MB\n", m.name, float64(m.done)/1e6, float64(m.size)/1e6)
	} else {
		fmt.Fprintf(m.out, "%s: %.1f MB\n", m.name, float64(m.done)/1e6)
	}
}
