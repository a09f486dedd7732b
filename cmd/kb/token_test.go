package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kb-search/kb/api/auth"
)

func TestToken(t *testing.T) {
	t.Parallel()
	const secret = "a secret for development, long enough for HS256"
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"statement": [{"effect": "Allow", "action": "documents:*"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		environment, args []string
		says              string
		code              int
	}{
		"IsTaken":         {[]string{"KB_JWT_SECRET=" + secret, "KB_JWT_ISSUER=kb", "KB_JWT_AUDIENCE=kb"}, []string{"--sub", "ann", "--project", "proj_1,proj_2", "--role", "admin", "--scope", "documents:*", "--policy", policy}, "", 0},
		"NeedsASecret":    {nil, nil, "KB_JWT_SECRET", 2},
		"ChecksThePolicy": {[]string{"KB_JWT_SECRET=" + secret}, []string{"--policy", "token_test.go"}, "token_test.go", 2},
		"NoTimeAtAll":     {[]string{"KB_JWT_SECRET=" + secret}, []string{"--ttl", "0s"}, "--ttl", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			environment := append([]string{"KB_CACHE_DIR=" + t.TempDir()}, test.environment...)
			if code := run(t.Context(), append([]string{"token"}, test.args...), environment, &stdout, &stderr); code != test.code || !strings.Contains(stderr.String(), test.says) {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			if test.code != 0 {
				return
			}
			tokens, err := auth.NewTokens(context.Background(), auth.TokenOptions{Secret: secret, Issuer: "kb", Audience: "kb"})
			if err != nil {
				t.Fatal(err)
			}
			token, err := tokens.Check(strings.TrimSpace(stdout.String()))
			if err != nil || token.Subject != "ann" || !token.Admin || len(token.Projects) != 2 || len(token.Policies) != 1 || token.Scope == nil {
				t.Errorf("%+v, %v", token, err)
			}
		})
	}
}
