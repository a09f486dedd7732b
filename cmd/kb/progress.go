package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressBar shows how far something is, with its rate and the time left; nothing where nobody watches.
func (a *app) progressBar(total int, what string) *progressbar.ProgressBar {
	file, isFile := a.stderr.(*os.File)
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetVisibility(isFile && term.IsTerminal(int(file.Fd()))),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
	)
}
