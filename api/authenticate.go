package api

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

// publicPaths need no credential.
var publicPaths = map[string]bool{healthPath: true, errorCatalogPath: true, "/openapi.json": true, "/openapi-3.0.json": true, "/openapi.yaml": true, "/openapi-3.0.yaml": true}

// keyPolicy is what an API key without policies may do in its project: everything but to administer.
var keyPolicy = auth.Policy{Statement: []auth.Statement{{
	Effect: auth.Allow,
	Action: auth.Strings{
		"knowledge:*", "embeddings:*", "documents:*", "files:*", "memories:*", "status:GetStatus", "projects:GetProject", "projects:ListProjects",
	},
}}}

// authenticate says who calls, and refuses who can't say so. With nothing configured everybody is an admin whose requests
// go to the default project.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if publicPaths[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		principal, err := s.principal(r)
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) {
				refused = s.mapError(r.Context(), "authenticate", err)
			}
			if refused.status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refused.write(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey, principal)))
	})
}

// principal reads the Authorization header.
func (s *Server) principal(r *http.Request) (*auth.Principal, error) {
	if s.APIKey == "" && s.Tokens == nil {
		return &auth.Principal{Admin: true, Default: &s.ProjectID}, nil
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return nil, errUnauthorized("authentication required", "authentication_required", "Send a bearer token: Authorization: Bearer <token>.")
	}
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.TrimSpace(text)
	isBearer := strings.EqualFold(scheme, "Bearer")
	switch {
	case isBearer && s.APIKey != "" && subtle.ConstantTimeCompare([]byte(text), []byte(s.APIKey)) == 1:
		return &auth.Principal{Admin: true, Default: &s.ProjectID}, nil
	case isBearer && strings.HasPrefix(text, auth.KeyPrefix):
		return s.keyPrincipal(r.Context(), text)
	case isBearer && s.Tokens != nil:
		return s.tokenPrincipal(r.Context(), text)
	case s.Tokens != nil:
		return nil, errInvalidToken()
	default:
		return nil, errInvalidKey()
	}
}

func errInvalidKey() *Error {
	return errUnauthorized("invalid api key", "invalid_api_key", "The API key is unknown, expired or revoked.")
}

func errInvalidToken() *Error {
	return errUnauthorized("invalid token", "invalid_token", "The token is not accepted: it is expired, malformed, or not signed for this server.")
}

// keyPrincipal is the holder of an API key.
func (s *Server) keyPrincipal(ctx context.Context, text string) (*auth.Principal, error) {
	prefix, hash, ok := auth.ReadKey(text)
	if !ok {
		return nil, errInvalidKey()
	}
	key, err := s.queries.APIKeyFind(ctx, s.Conn, db.APIKeyFindParams{Prefix: prefix, Hash: hash})
	if db.Kind(err) == db.KindNotFound {
		return nil, errInvalidKey()
	}
	if err != nil {
		return nil, fmt.Errorf("look for the API key: %w", err)
	}
	principal := &auth.Principal{Subject: publicID(prefixAPIKey, key.ID), Projects: []uuid.UUID{key.ProjectID}, Default: &key.ProjectID}
	if err := json.Unmarshal(key.Policies, &principal.Policies); err != nil {
		return nil, fmt.Errorf("read the policies of API key %s: %w", key.ID, err)
	}
	if len(principal.Policies) == 0 {
		principal.Policies = []auth.Policy{keyPolicy}
	}
	if err := s.queries.APIKeyTouch(ctx, s.Conn, db.APIKeyTouchParams{ProjectID: key.ProjectID, ID: key.ID}); err != nil {
		s.Logger.WarnContext(ctx, "use of an API key not noted", slog.String("key_id", principal.Subject), slog.Any("error", err))
	}
	return principal, nil
}

// tokenPrincipal is the subject of a token, with what its policies, stored and inline, and its scope say.
func (s *Server) tokenPrincipal(ctx context.Context, text string) (*auth.Principal, error) {
	token, err := s.Tokens.Check(text)
	if err != nil {
		s.Logger.InfoContext(ctx, "token refused", slog.Any("error", err))
		return nil, errInvalidToken()
	}
	principal := &auth.Principal{Subject: token.Subject, Admin: token.Admin, Policies: token.Policies, Scope: token.Scope}
	if token.Projects != nil {
		principal.Projects = []uuid.UUID{}
		for _, public := range token.Projects {
			if id, ok := parseID(prefixProject, public); ok {
				principal.Projects = append(principal.Projects, id)
			}
		}
	}
	if token.Subject != "" && !token.Admin {
		rows, err := s.queries.PolicyListOfSubject(ctx, s.Conn, token.Subject)
		if err != nil {
			return nil, fmt.Errorf("list the policies of a subject: %w", err)
		}
		for _, row := range rows {
			policy, err := auth.ParsePolicy(row.Document)
			if err != nil {
				return nil, fmt.Errorf("read policy %s: %w", row.ID, err)
			}
			principal.Policies = append(principal.Policies, policy)
		}
	}
	if len(principal.Policies) == 0 && principal.Scope != nil {
		principal.Policies = []auth.Policy{*principal.Scope}
	}
	return principal, nil
}
