package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// ErrInvalidToken is a token that is not accepted, for whatever reason; why is for the log.
var ErrInvalidToken = errors.New("invalid token")

const (
	// leeway is how far the clocks of issuer and server may be apart.
	leeway = 30 * time.Second
	// jwksRefresh is how often the key set is fetched anew; jwksTimeout bounds one fetch.
	jwksRefresh = time.Hour
	jwksTimeout = 10 * time.Second
	// unknownKeys is how often at most an unknown key makes the key set be fetched before its time.
	unknownKeys    = time.Minute
	unknownKeyWait = 3 * time.Second
	// minSecret is the length of the shortest secret for HS256, in bytes.
	minSecret = 32
	// maxToken is the length of the longest token that is looked at.
	maxToken = 16 << 10
)

// The algorithms for a secret, and for a key set.
var (
	secretAlgorithms = []string{"HS256"}
	keySetAlgorithms = []string{"RS256", "ES256", "EdDSA"}
)

// TokenOptions say which tokens are accepted.
type TokenOptions struct {
	// Secret checks HS256 tokens; JWKSURL names the set of public keys that checks RS256, ES256 and EdDSA ones. One of them.
	Secret, JWKSURL string
	// Issuer and Audience must be the token's; an issuer without an audience is refused.
	Issuer, Audience string
	// Algorithms are those accepted, of the ones that fit. Defaults to all that fit.
	Algorithms []string
	// Claims are the names of the claims.
	Claims ClaimNames
	// OnError hears of a key set that could not be fetched.
	OnError func(ctx context.Context, err error)
}

// ClaimNames are the names of the claims; empty ones have their usual name.
type ClaimNames struct {
	// Project is a project's public id, or a list of them. Defaults to prj.
	Project string
	// Role is "admin" or something else. Defaults to role.
	Role string
	// Scope is a list of actions, separated by spaces. Defaults to scope.
	Scope string
	// Policy is a policy document. Defaults to policy.
	Policy string
}

// Validate reports all that is wrong with the options.
func (o TokenOptions) Validate() error {
	var problems []error
	if (o.Secret == "") == (o.JWKSURL == "") {
		problems = append(problems, errors.New("set a secret or the address of a key set, not both"))
	}
	if o.Secret != "" && len(o.Secret) < minSecret {
		problems = append(problems, fmt.Errorf("the secret has %d bytes: HS256 needs %d or more", len(o.Secret), minSecret))
	}
	if o.JWKSURL != "" && !strings.HasPrefix(o.JWKSURL, "https://") && !strings.HasPrefix(o.JWKSURL, "http://") {
		problems = append(problems, errors.New("the address of the key set must begin with https://"))
	}
	if o.Issuer != "" && o.Audience == "" {
		problems = append(problems, errors.New("an issuer without an audience accepts tokens that were made for other services: set the audience, too"))
	}
	fitting := keySetAlgorithms
	if o.Secret != "" {
		fitting = secretAlgorithms
	}
	for _, algorithm := range o.Algorithms {
		if !slices.Contains(fitting, algorithm) {
			problems = append(problems, fmt.Errorf("the algorithm %q does not fit: use %s", algorithm, strings.Join(fitting, ", ")))
		}
	}
	return errors.Join(problems...)
}

// Token is what an accepted token says.
type Token struct {
	Subject string
	Admin   bool
	// Projects are the public ids that the token is bound to; nil when it has no such claim.
	Projects []string
	// Policies holds the inline policy.
	Policies []Policy
	// Scope allows the actions that the token's scope names; nil when the token has no scope, or one that is for others.
	Scope *Policy
}

// Tokens checks tokens. It is safe for concurrent use.
type Tokens struct {
	parser *jwt.Parser
	keys   jwt.Keyfunc
	names  ClaimNames
}

// NewTokens makes a checker. A key set that can't be fetched at once is fetched later; until then no token is accepted. It
// fetches in the background until ctx ends.
func NewTokens(ctx context.Context, options TokenOptions) (*Tokens, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	t := &Tokens{names: options.Claims.withDefaults()}
	algorithms := options.Algorithms
	if options.Secret != "" {
		secret := []byte(options.Secret)
		t.keys = func(*jwt.Token) (any, error) { return secret, nil }
		algorithms = secretAlgorithms
	} else {
		keys, err := keySet(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("read the key set: %w", err)
		}
		t.keys = keys
		if len(algorithms) == 0 {
			algorithms = keySetAlgorithms
		}
	}
	rules := []jwt.ParserOption{
		jwt.WithValidMethods(algorithms), jwt.WithLeeway(leeway), jwt.WithExpirationRequired(), jwt.WithStrictDecoding(),
	}
	if options.Issuer != "" {
		rules = append(rules, jwt.WithIssuer(options.Issuer))
	}
	if options.Audience != "" {
		rules = append(rules, jwt.WithAudience(options.Audience))
	}
	t.parser = jwt.NewParser(rules...)
	return t, nil
}

// keySet keeps the public keys of an issuer: fetched every hour, and for an unknown key at most once a minute. While the
// issuer is down, the last good set stays.
func keySet(ctx context.Context, options TokenOptions) (jwt.Keyfunc, error) {
	storage, err := jwkset.NewStorageFromHTTP(options.JWKSURL, jwkset.HTTPClientStorageOptions{
		Ctx: ctx, HTTPTimeout: jwksTimeout, NoErrorReturnFirstHTTPReq: true, RefreshInterval: jwksRefresh,
		RefreshErrorHandler: options.OnError,
	})
	if err != nil {
		return nil, err
	}
	client, err := jwkset.NewHTTPClient(jwkset.HTTPClientOptions{
		HTTPURLs:          map[string]jwkset.Storage{options.JWKSURL: storage},
		RefreshUnknownKID: rate.NewLimiter(rate.Every(unknownKeys), 1),
		// It bounds the fetch, too. A turn that is further away is refused at once.
		RateLimitWaitMax: unknownKeyWait,
	})
	if err != nil {
		return nil, err
	}
	keys, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: client})
	if err != nil {
		return nil, err
	}
	return keys.Keyfunc, nil
}

func (n ClaimNames) withDefaults() ClaimNames {
	for name, fallback := range map[*string]string{&n.Project: "prj", &n.Role: "role", &n.Scope: "scope", &n.Policy: "policy"} {
		if *name == "" {
			*name = fallback
		}
	}
	return n
}

// Check reads a token. The error wraps ErrInvalidToken.
func (t *Tokens) Check(text string) (Token, error) {
	if len(text) > maxToken {
		return Token{}, fmt.Errorf("%w: it has %d bytes", ErrInvalidToken, len(text))
	}
	claims := jwt.MapClaims{}
	parsed, err := t.parser.ParseWithClaims(text, claims, t.keys)
	if err != nil {
		return Token{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	// RFC 7515, section 4.1.11: what must be understood and is not makes a token invalid. kb understands no extension.
	if _, there := parsed.Header["crit"]; there {
		return Token{}, fmt.Errorf("%w: it has critical headers", ErrInvalidToken)
	}
	token, err := t.read(claims)
	if err != nil {
		return Token{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	return token, nil
}

func (t *Tokens) read(claims jwt.MapClaims) (Token, error) {
	subject, err := claims.GetSubject()
	if err != nil {
		return Token{}, err
	}
	token := Token{Subject: subject}
	if role, there := claims[t.names.Role]; there {
		token.Admin = role == RoleAdmin
	}
	if projects, there := claims[t.names.Project]; there {
		if token.Projects, err = list(projects); err != nil {
			return Token{}, fmt.Errorf("the claim %s: %w", t.names.Project, err)
		}
	}
	if scope, there := claims[t.names.Scope]; there {
		text, isText := scope.(string)
		if !isText {
			return Token{}, fmt.Errorf("the claim %s is no text", t.names.Scope)
		}
		token.Scope = scopePolicy(text)
	}
	if inline, there := claims[t.names.Policy]; there {
		encoded, err := json.Marshal(inline)
		if err != nil {
			return Token{}, err
		}
		policy, err := ParsePolicy(encoded)
		if err != nil {
			return Token{}, fmt.Errorf("the claim %s: %w", t.names.Policy, err)
		}
		token.Policies = append(token.Policies, policy)
	}
	return token, nil
}

// scopePolicy allows the actions that a scope names. What kb does not know in it is for others; a scope of nothing else is
// none of kb's, and grants nothing.
func scopePolicy(scope string) *Policy {
	var policy Policy
	for _, action := range strings.Fields(scope) {
		if knownAction(action) {
			policy.Statement = append(policy.Statement, Statement{Effect: Allow, Action: Strings{action}})
		}
	}
	if policy.Statement == nil {
		return nil
	}
	return &policy
}

// list reads a claim that is a text or a list of texts. It is never nil, so that an empty list binds to nothing.
func list(claim any) ([]string, error) {
	switch value := claim.(type) {
	case string:
		return []string{value}, nil
	case []any:
		texts := make([]string, 0, len(value))
		for _, item := range value {
			text, isText := item.(string)
			if !isText {
				return nil, errors.New("it is no list of texts")
			}
			texts = append(texts, text)
		}
		return texts, nil
	default:
		return nil, errors.New("it is neither a text nor a list of texts")
	}
}
