// Package pdf reads the text of PDF files: pages in reading order, headings by the size of their letters, without
// running headers and footers. It owns a pool of PDFium instances, which run as WebAssembly: without the host's files,
// with a limit on memory and time. What a chunk is, is left to chunk. Its invariant: whatever the bytes, a parse ends
// within Options.Timeout with a document of at least one block or an error, and the parser is usable afterwards.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/kb-search/kb/worker/parse"
)

const (
	// Type is the document type of what Parse returns.
	Type = "pdf"

	defaultMaxPages       = 5000
	defaultTimeout        = 5 * time.Minute
	defaultMaxMemoryPages = 1 << 14 // 1 GiB
	wasmMemoryPages       = 1 << 16 // What 32 bits can address.

	maxText      = 64 << 20 // Bytes of text in a document.
	maxPageChars = 1 << 20  // Characters on a page.
)

// Options says what a parser may use.
type Options struct {
	// CacheDir is the folder for the compiled PDFium, which saves seconds at the first use in each process. Defaults to
	// none.
	CacheDir string
	// Workers is the number of documents that are read at the same time; further ones wait. Defaults to 1.
	Workers int
	// MaxPages limits the number of pages of a document. Defaults to 5000.
	MaxPages int
	// Timeout limits the time for one document, waiting for a worker not included. Defaults to 5 minutes.
	Timeout time.Duration
	// MaxMemoryPages limits the memory of one document's PDFium instance, in pages of 64 KiB. Defaults to 16384 (1 GiB).
	MaxMemoryPages uint32
}

// Parser reads PDF files. It is safe for concurrent use.
type Parser struct {
	opt      Options
	memories memories

	mu     sync.Mutex
	pool   pdfium.Pool
	cache  wazero.CompilationCache
	closed bool
}

// New returns a parser. It does nothing until the first Parse, which compiles PDFium.
func New(opt Options) *Parser {
	if opt.Workers <= 0 {
		opt.Workers = 1
	}
	if opt.MaxPages <= 0 {
		opt.MaxPages = defaultMaxPages
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	if opt.MaxMemoryPages == 0 {
		opt.MaxMemoryPages = defaultMaxMemoryPages
	}
	opt.MaxMemoryPages = min(opt.MaxMemoryPages, wasmMemoryPages)

	return &Parser{opt: opt}
}

// Close frees what the parser holds. Call it when no Parse is running; later ones return an error.
func (p *Parser) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.closed = true
	var errs []error
	if p.pool != nil {
		errs = append(errs, p.pool.Close())
		p.pool = nil
	}
	if p.cache != nil {
		errs = append(errs, p.cache.Close(context.Background()))
		p.cache = nil
	}

	return errors.Join(errs...)
}

// Parse reads a document; data is not changed. The error is a *parse.Error where the file is to blame: its Code is
// "password_required", "no_text_layer", "corrupt", "too_many_pages", "too_large" or "timeout". Others are the context's
// or come from starting PDFium.
func (p *Parser) Parse(ctx context.Context, data []byte) (parse.Document, error) {
	pool, err := p.start()
	if err != nil {
		return parse.Document{}, err
	}
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return parse.Document{}, fmt.Errorf("parse pdf: wait for a worker: %w", err)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, p.opt.Timeout, errTimeout())
	defer cancel()

	// An instance may hang in a call, so it is ended from outside, and once only.
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		p.memories.hold()
		_ = instance.Kill() // It is gone either way.
	})
	pages, info, err := read(ctx, instance, data, p.opt.MaxPages)
	if stop() {
		_ = instance.Close() // A damaged instance says so; it is thrown away in any case.
	} else {
		<-killed
		p.memories.release()
	}
	switch {
	case ctx.Err() != nil:
		var own *parse.Error
		if cause := context.Cause(ctx); !errors.As(cause, &own) {
			return parse.Document{}, fmt.Errorf("parse pdf: %w", cause)
		}

		return parse.Document{}, own
	case err != nil:
		return parse.Document{}, err
	}

	return assemble(pages, info)
}

// start returns the pool, which the first call makes.
func (p *Parser) start() (pdfium.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.closed {
		return nil, errors.New("parse pdf: the parser is closed")
	}
	if p.pool != nil {
		return p.pool, nil
	}

	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(p.opt.MaxMemoryPages)
	if p.opt.CacheDir != "" && p.cache == nil {
		cache, err := wazero.NewCompilationCacheWithDir(p.opt.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("parse pdf: open the cache for the compiled PDFium: %w", err)
		}
		p.cache = cache
	}
	if p.cache != nil {
		config = config.WithCompilationCache(p.cache)
	}

	pool, err := webassembly.Init(webassembly.Config{
		Context:       experimental.WithMemoryAllocator(context.Background(), &p.memories),
		MaxIdle:       p.opt.Workers,
		MaxTotal:      p.opt.Workers,
		FSConfig:      wazero.NewFSConfig(), // Without it, PDFium sees the host's files.
		RuntimeConfig: config,
		Stdout:        io.Discard,
		Stderr:        io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("parse pdf: start PDFium: %w", err)
	}
	p.pool = pool

	return pool, nil
}

func errTimeout() *parse.Error {
	return &parse.Error{Code: "timeout", Message: "The PDF takes too long to read; split it, or save it again with another program."}
}

func errTooLarge() *parse.Error {
	return &parse.Error{Code: "too_large", Message: "The PDF takes too much memory to read; split it, or save it again with another program."}
}

func errCorrupt(message string) *parse.Error {
	return &parse.Error{Code: "corrupt", Message: message}
}

func errNoText() *parse.Error {
	return &parse.Error{Code: "no_text_layer", Message: "The PDF has no text layer (it is probably a scan); " +
		"run it through text recognition (OCR) and send it again."}
}

// openError turns PDFium's error on opening a document into one for the person who sent it.
func openError(err error) error {
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return &parse.Error{Code: "password_required", Message: "The PDF can't be opened without its password; save it without one and send it again."}
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return errCorrupt("The PDF is encrypted in a way that can't be read.")
	case exhausted(err):
		return errTooLarge()
	default:
		return errCorrupt("The PDF is damaged or incomplete and can't be read.")
	}
}

// exhausted reports whether a call ended because the instance has no memory left: PDFium then stops with a trap.
func exhausted(err error) bool {
	for _, sign := range []string{"unreachable", "could not allocate memory", "could not write file data"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}

	return false
}
