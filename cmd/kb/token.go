package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kb-search/kb/api/auth"
)

// token mints a token for development: it is signed with KB_JWT_SECRET, and a server with the same configuration takes it.
func (a *app) token(_ context.Context, args []string) error {
	set := a.flags("token", "[FLAGS]")
	subject := set.String("sub", "developer", "the `subject`")
	projects := set.String("project", "", "the `ids` of the projects to bind it to, separated by commas")
	role := set.String("role", "", "the `role`; admin may do everything")
	scope := set.String("scope", "", "the `actions` that it may do, separated by spaces, such as \"knowledge:* documents:*\"")
	policy := set.String("policy", "", "a `file` with a policy document to carry")
	lifetime := set.Duration("ttl", 24*time.Hour, "how long it is good for")
	if rest, err := arguments(set, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usageError("kb token takes no %q", rest[0])
	}
	if a.config.JWTSecret == "" {
		return usageError("set KB_JWT_SECRET to what the server has; a server with KB_JWKS_URL takes the tokens of its issuer only")
	}
	if *lifetime <= 0 {
		return usageError("--ttl is %s: write a time above 0, such as 24h", *lifetime)
	}
	now := time.Now()
	claims := jwt.MapClaims{"sub": *subject, "iat": now.Unix(), "exp": now.Add(*lifetime).Unix()}
	given := map[string]string{"iss": a.config.JWTIssuer, "aud": a.config.JWTAudience, a.config.JWTClaimRole: *role, a.config.JWTClaimScope: *scope}
	for claim, value := range given {
		if value != "" {
			claims[claim] = value
		}
	}
	if *projects != "" {
		claims[a.config.JWTClaimProject] = strings.Split(*projects, ",")
	}
	if *policy != "" {
		document, err := os.ReadFile(*policy)
		if err != nil {
			return fmt.Errorf("read the policy: %w", err)
		}
		if _, err := auth.ParsePolicy(document); err != nil {
			return usageError("%s: %w", *policy, err)
		}
		claims[a.config.JWTClaimPolicy] = json.RawMessage(document)
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(a.config.JWTSecret.Reveal()))
	if err != nil {
		return fmt.Errorf("sign the token: %w", err)
	}
	_, err = fmt.Fprintln(a.stdout, signed)
	return err
}
