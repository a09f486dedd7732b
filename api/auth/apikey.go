package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const (
	// KeyPrefix is what every API key begins with; what does not is a token.
	KeyPrefix = "sk_"
	// lookupLength is how much of a key finds its row: KeyPrefix and 48 random bits, which are no secret.
	lookupLength = len(KeyPrefix) + 8
	keyBytes     = 32
)

// Key is a new API key.
type Key struct {
	// Text is the key itself, to be shown once.
	Text string
	// Prefix finds it, and tells it from others in a list.
	Prefix string
	// Hash is the SHA-256 of Text. Its 256 random bits need no slow hash.
	Hash []byte
}

// NewKey makes an API key.
func NewKey() Key {
	random := make([]byte, keyBytes)
	_, _ = rand.Read(random) // It never fails.
	text := KeyPrefix + base64.RawURLEncoding.EncodeToString(random)
	prefix, hash, _ := ReadKey(text)
	return Key{Text: text, Prefix: prefix, Hash: hash}
}

// ReadKey gives what finds a key and what proves it; false for a text that can be none.
func ReadKey(text string) (prefix string, hash []byte, ok bool) {
	if !strings.HasPrefix(text, KeyPrefix) || len(text) != len(KeyPrefix)+base64.RawURLEncoding.EncodedLen(keyBytes) {
		return "", nil, false
	}
	sum := sha256.Sum256([]byte(text))
	return text[:lookupLength], sum[:], true
}
