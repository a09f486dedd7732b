package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const secret = "a secret of more than thirty-two bytes"

func claims(more map[string]any) jwt.MapClaims {
	now := time.Now().Unix()
	all := jwt.MapClaims{"sub": "u1", "iat": now, "exp": now + 600, "iss": "issuer", "aud": "kb"}
	for name, value := range more {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return all
}

func sign(t testing.TB, method jwt.SigningMethod, kid string, key any, more map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims(more))
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hs256(t testing.TB, more map[string]any) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, "", []byte(secret), more)
}

// raw writes a token by hand, signed with the secret unless the signature is given.
func raw(header string, signature string) string {
	encoded, _ := json.Marshal(claims(nil))
	encode := base64.RawURLEncoding.EncodeToString
	head := encode([]byte(header)) + "." + encode(encoded)
	if signature == "valid" {
		mac, _ := jwt.SigningMethodHS256.Sign(head, []byte(secret))
		signature = encode(mac)
	}
	return head + "." + signature
}

func mustTokens(t testing.TB, options TokenOptions) *Tokens {
	t.Helper()
	tokens, err := NewTokens(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestTokensWithASecret(t *testing.T) {
	t.Parallel()
	tokens := mustTokens(t, TokenOptions{Secret: secret, Issuer: "issuer", Audience: "kb"})
	now := time.Now().Unix()
	good := hs256(t, nil)
	parts := strings.Split(good, ".")
	for name, test := range map[string]struct {
		token string
		want  bool
	}{
		"Good":                           {good, true},
		"AudienceAmongOthers":            {hs256(t, map[string]any{"aud": []string{"x", "kb"}}), true},
		"ExpiredWithinTheLeeway":         {hs256(t, map[string]any{"exp": now - 10}), true},
		"NotYetWithinTheLeeway":          {hs256(t, map[string]any{"nbf": now + 10}), true},
		"IssuedInAnHour":                 {hs256(t, map[string]any{"iat": now + 3600}), true}, // AUT-02: iat alone never refuses
		"ExpiredAnHourAgo":               {hs256(t, map[string]any{"exp": now - 3600}), false},
		"NotYetForAnHour":                {hs256(t, map[string]any{"nbf": now + 3600}), false},
		"WithoutAnEnd":                   {hs256(t, map[string]any{"exp": nil}), false},
		"EndThatIsNoNumber":              {hs256(t, map[string]any{"exp": "tomorrow"}), false},
		"AnotherAudience":                {hs256(t, map[string]any{"aud": "other"}), false},
		"NoAudience":                     {hs256(t, map[string]any{"aud": nil}), false},
		"AnotherIssuer":                  {hs256(t, map[string]any{"iss": "other"}), false},
		"AnotherKey":                     {sign(t, jwt.SigningMethodHS256, "", []byte("another secret of thirty-two bytes"), nil), false},
		"AnEmptyKey":                     {sign(t, jwt.SigningMethodHS256, "", []byte{}, nil), false},
		"AnotherAlgorithm":               {sign(t, jwt.SigningMethodHS512, "", []byte(secret), nil), false},
		"None":                           {raw(`{"alg":"none"}`, ""), false},
		"NoneInMixedCase":                {raw(`{"alg":"nOnE"}`, ""), false},
		"NoneWithTheOldSignature":        {raw(`{"alg":"none"}`, parts[2]), false},
		"NoAlgorithm":                    {raw(`{}`, "valid"), false},
		"CriticalHeader":                 {raw(`{"alg":"HS256","crit":["x"],"x":1}`, "valid"), false},
		"NoSignature":                    {parts[0] + "." + parts[1] + ".", false},
		"TwoParts":                       {parts[0] + "." + parts[1], false},
		"FourParts":                      {good + ".x", false},
		"Nothing":                        {"", false},
		"Garbage":                        {"\x00\xff..", false},
		"VeryLong":                       {strings.Repeat("a", 1<<20), false},
		"ProjectOfAnotherType":           {hs256(t, map[string]any{"prj": 7}), false},
		"ScopeOfAnotherType":             {hs256(t, map[string]any{"scope": []string{"*"}}), false},
		"PolicyThatCannotBeRead":         {hs256(t, map[string]any{"policy": map[string]any{"statement": 1}}), false},
		"SubjectOfAnotherType":           {hs256(t, map[string]any{"sub": 7}), false},
		"PolicyOfAnActionNobodyKnows":    {hs256(t, map[string]any{"policy": map[string]any{"statement": []any{map[string]any{"effect": "Allow", "action": "a:b"}}}}), false},
		"ScopeOfActionsForOtherServices": {hs256(t, map[string]any{"scope": "openid profile"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tokens.Check(test.token)
			if (err == nil) != test.want || err != nil && !errors.Is(err, ErrInvalidToken) {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("Claims", func(t *testing.T) {
		t.Parallel()
		token, err := tokens.Check(hs256(t, map[string]any{
			"role": "admin", "prj": []string{"proj_1", "proj_2"}, "scope": "openid documents:GetDocument knowledge:*",
			"policy": map[string]any{"statement": []any{map[string]any{"effect": "Deny", "action": "files:*"}}},
		}))
		if err != nil || token.Subject != "u1" || !token.Admin || !slices.Equal(token.Projects, []string{"proj_1", "proj_2"}) || len(token.Policies) != 1 || token.Scope == nil || len(token.Scope.Statement) != 2 {
			t.Errorf("%+v, %v", token, err)
		}
		bare, err := tokens.Check(hs256(t, map[string]any{"role": "user", "scope": ""}))
		if err != nil || bare.Admin || bare.Projects != nil || bare.Policies != nil || bare.Scope != nil {
			t.Errorf("an empty scope: %+v, %v", bare, err)
		}
		if one, err := tokens.Check(hs256(t, map[string]any{"prj": "proj_1"})); err != nil || !slices.Equal(one.Projects, []string{"proj_1"}) {
			t.Errorf("one project: %+v, %v", one, err)
		}
		if none, err := tokens.Check(hs256(t, map[string]any{"prj": []string{}})); err != nil || none.Projects == nil {
			t.Errorf("a token of no project is bound to none: %+v, %v", none, err)
		}
	})

	t.Run("ClaimsOfOtherNames", func(t *testing.T) {
		t.Parallel()
		named := mustTokens(t, TokenOptions{Secret: secret, Claims: ClaimNames{Project: "https://kb/projects", Role: "kind"}})
		token, err := named.Check(hs256(t, map[string]any{"https://kb/projects": "proj_1", "kind": "admin", "role": "user", "prj": "proj_2"}))
		if err != nil || !token.Admin || !slices.Equal(token.Projects, []string{"proj_1"}) {
			t.Errorf("%+v, %v", token, err)
		}
	})
}

// issuer serves a key set that a test can change.
type issuer struct {
	mu      sync.Mutex
	keys    map[string]crypto.PublicKey
	down    bool
	fetched int
	url     string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]crypto.PublicKey{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.fetched++
		if i.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		set := jwkset.NewMemoryStorage()
		for kid, key := range i.keys {
			jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
			if err != nil {
				t.Error(err)
			}
			_ = set.KeyWrite(r.Context(), jwk)
		}
		document, err := set.JSONPublic(r.Context())
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(document)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func (i *issuer) set(kid string, key crypto.PublicKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[kid] = key
}

func TestTokensWithAKeySet(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	whole := func(t *testing.T) (*issuer, *Tokens) {
		t.Helper()
		i := newIssuer(t)
		i.set("r", rsaKey.Public())
		i.set("e", ecKey.Public())
		i.set("d", edPublic)
		return i, mustTokens(t, TokenOptions{JWKSURL: i.url, Issuer: "issuer", Audience: "kb"})
	}

	t.Run("ThreeAlgorithms", func(t *testing.T) {
		t.Parallel()
		_, tokens := whole(t)
		for name, token := range map[string]string{
			"RS256": sign(t, jwt.SigningMethodRS256, "r", rsaKey, nil), "ES256": sign(t, jwt.SigningMethodES256, "e", ecKey, nil), "EdDSA": sign(t, jwt.SigningMethodEdDSA, "d", edKey, nil),
		} {
			if got, err := tokens.Check(token); err != nil || got.Subject != "u1" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})

	t.Run("Forgeries", func(t *testing.T) {
		t.Parallel()
		_, tokens := whole(t)
		der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
		if err != nil {
			t.Fatal(err)
		}
		publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		for name, token := range map[string]string{
			"HS256KeyedWithThePublicKey": sign(t, jwt.SigningMethodHS256, "r", publicPEM, nil),
			"None":                       raw(`{"alg":"none","kid":"r"}`, ""),
			"TheKeyOfAnother":            sign(t, jwt.SigningMethodRS256, "e", rsaKey, nil),
			"AlgorithmThatIsNotPinned":   sign(t, jwt.SigningMethodRS512, "r", rsaKey, nil),
			"Expired":                    sign(t, jwt.SigningMethodRS256, "r", rsaKey, map[string]any{"exp": 1}),
		} {
			if _, err := tokens.Check(token); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("ANewKeyIsFetchedAtMostOnceAMinute", func(t *testing.T) {
		t.Parallel()
		i, tokens := whole(t)
		next, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		i.set("new", next.Public())
		if _, err := tokens.Check(sign(t, jwt.SigningMethodRS256, "new", next, nil)); err != nil {
			t.Errorf("the new key: %v", err)
		}
		i.mu.Lock()
		before := i.fetched
		i.mu.Unlock()
		for range 20 {
			if _, err := tokens.Check(sign(t, jwt.SigningMethodRS256, "made-up", next, nil)); !errors.Is(err, ErrInvalidToken) {
				t.Fatalf("an unknown key: %v", err)
			}
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.fetched-before > 1 {
			t.Errorf("fetched %d times for unknown keys", i.fetched-before)
		}
	})

	t.Run("TheLastGoodSetStaysWhileTheIssuerIsDown", func(t *testing.T) {
		t.Parallel()
		i, tokens := whole(t)
		i.mu.Lock()
		i.down = true
		i.mu.Unlock()
		if _, err := tokens.Check(sign(t, jwt.SigningMethodRS256, "unknown", rsaKey, nil)); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("an unknown key: %v", err)
		}
		if _, err := tokens.Check(sign(t, jwt.SigningMethodRS256, "r", rsaKey, nil)); err != nil {
			t.Errorf("a known key: %v", err)
		}
	})

	t.Run("AnIssuerThatIsDownAtTheStartIsAskedLater", func(t *testing.T) {
		t.Parallel()
		i := newIssuer(t)
		i.down = true
		i.set("r", rsaKey.Public())
		failed := make(chan error, 10)
		tokens, err := NewTokens(t.Context(), TokenOptions{JWKSURL: i.url, OnError: func(_ context.Context, err error) { failed <- err }})
		if err != nil {
			t.Fatal(err)
		}
		if len(failed) == 0 {
			t.Error("nobody heard of it")
		}
		i.mu.Lock()
		i.down = false
		i.mu.Unlock()
		if _, err := tokens.Check(sign(t, jwt.SigningMethodRS256, "r", rsaKey, nil)); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestTokenOptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options TokenOptions
		says    []string
	}{
		"Secret":                   {TokenOptions{Secret: secret}, nil},
		"KeySet":                   {TokenOptions{JWKSURL: "https://x/jwks", Issuer: "i", Audience: "a", Algorithms: []string{"EdDSA"}}, nil},
		"Neither":                  {TokenOptions{}, []string{"not both"}},
		"Both":                     {TokenOptions{Secret: secret, JWKSURL: "https://x"}, []string{"not both"}},
		"AShortSecret":             {TokenOptions{Secret: "short"}, []string{"32 or more"}},
		"AnIssuerWithoutAudience":  {TokenOptions{Secret: secret, Issuer: "i"}, []string{"set the audience"}},
		"AllProblemsAtOnce":        {TokenOptions{Secret: "short", Issuer: "i", Algorithms: []string{"RS256"}}, []string{"32 or more", "audience", "RS256"}},
		"NoneIsNoAlgorithm":        {TokenOptions{Secret: secret, Algorithms: []string{"none"}}, []string{"none"}},
		"AKeySetThatIsNoAddress":   {TokenOptions{JWKSURL: "jwks.json"}, []string{"https://"}},
		"AnAlgorithmOfTheOtherWay": {TokenOptions{JWKSURL: "https://x", Algorithms: []string{"HS256"}}, []string{"HS256"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.options.Validate()
			if (err == nil) != (test.says == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func FuzzToken(f *testing.F) {
	tokens := mustTokens(f, TokenOptions{Secret: secret})
	f.Add(hs256(f, nil))
	f.Add(raw(`{"alg":"none"}`, ""))
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := tokens.Check(text); err != nil && !errors.Is(err, ErrInvalidToken) {
			t.Fatal(err)
		}
	})
}
