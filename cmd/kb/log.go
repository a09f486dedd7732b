package main

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value that never shows: not in a log, not in an error, not when printed.
type Secret string

const redacted = "[redacted]"

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, which JSON follows.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Reveal gives the value itself.
func (s Secret) Reveal() string { return string(s) }

func parseLevel(name string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("read the log level: %w", err)
	}
	return level, nil
}

func newLogger(out io.Writer, config Config) *slog.Logger {
	level, err := parseLevel(config.LogLevel)
	if err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if config.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
