package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/cors"

	"github.com/kb-search/kb/db"
)

type contextKey int

const (
	requestIDKey contextKey = iota
	principalKey
	accessKey
)

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// logRequests gives each request an id and one log line. It logs no query, body or token.
func (s *Server) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := db.NewID().String()
		w.Header().Set("X-Request-Id", id)
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		started := time.Now()
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey, id))
		next.ServeHTTP(recorder, r)
		level := slog.LevelInfo
		if r.URL.Path == healthPath {
			level = slog.LevelDebug
		}
		s.Logger.Log(r.Context(), level, "request",
			slog.String("request_id", id), slog.String("method", r.Method), slog.String("route", r.Pattern),
			slog.Int("status", recorder.status), slog.Duration("duration", time.Since(started)))
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// recoverPanics answers 500 for a handler that panics, and logs where.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			s.Logger.ErrorContext(r.Context(), "panic", slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
			(&Error{status: http.StatusInternalServerError, Short: "internal error", Code: "internal",
				Message: "An error of the server's own; the operator finds it in the log."}).write(w, r)
		}()
		next.ServeHTTP(w, r)
	})
}

// allowOrigins lets pages of the configured origins call the server; without any, no browser may.
func (s *Server) allowOrigins(next http.Handler) http.Handler {
	if len(s.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: s.Origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "If-Match", "Range", projectHeader},
		ExposedHeaders: []string{"Content-Disposition", "ETag", "Link", "X-Request-Id", "X-Total-Count"},
		MaxAge:         int(time.Hour / time.Second),
	}).Handler(next)
}

// refuseEncoded refuses compressed bodies before anything is unpacked.
func (s *Server) refuseEncoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
			(&Error{status: http.StatusUnsupportedMediaType, Short: "unsupported media type", Code: "unsupported_media_type",
				Message: "Compressed bodies are not accepted; send the body without Content-Encoding."}).write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// jsonErrors gives unknown paths and wrong methods, which ServeMux answers in plain text, the form of every other error.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		plain := httptest.NewRecorder()
		handler.ServeHTTP(plain, r)
		if plain.Code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", plain.Header().Get("Allow"))
			(&Error{status: plain.Code, Short: "method not allowed", Code: "method_not_allowed",
				Message: "This path takes " + plain.Header().Get("Allow") + "."}).write(w, r)
			return
		}
		if location := plain.Header().Get("Location"); location != "" {
			http.Redirect(w, r, location, plain.Code)
			return
		}
		errNotFound("path").write(w, r)
	})
}
