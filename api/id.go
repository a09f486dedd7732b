package api

import (
	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/auth"
)

// Prefixes of public ids: a TypeID is the prefix and 26 characters over a UUIDv7.
const (
	prefixProject     = "proj"
	prefixDocument    = "doc"
	prefixChunk       = "dchunk"
	prefixJob         = "job"
	prefixMemoryStore = "mstore"
	prefixMemory      = "mem"
	prefixAssertion   = "massert"
	prefixPolicy      = "pol"
	prefixAPIKey      = "key"
	prefixSearch      = "search"
	// prefixFile stands before the document's own id: each document has one file.
	prefixFile = "file"
)

// prefixOf gives the prefix of the ids of a kind of resources.
var prefixOf = map[string]string{
	auth.KindProject: prefixProject, auth.KindDocument: prefixDocument, auth.KindMemoryStore: prefixMemoryStore, auth.KindMemory: prefixMemory,
	auth.KindPolicy: prefixPolicy, auth.KindAPIKey: prefixAPIKey,
}

func publicID(prefix string, id uuid.UUID) string {
	public, err := typeid.FromUUIDBytesWithPrefix(prefix, id[:])
	if err != nil {
		return prefix + "_" + id.String()
	}
	return public.String()
}

func publicIDPointer(prefix string, id *uuid.UUID) *string {
	if id == nil {
		return nil
	}
	public := publicID(prefix, *id)
	return &public
}

// parseID reads a public id of one kind; ok is false for anything else.
func parseID(prefix, public string) (id uuid.UUID, ok bool) {
	parsed, err := typeid.FromString(public)
	if err != nil || parsed.Prefix() != prefix {
		return uuid.UUID{}, false
	}
	id, err = uuid.FromBytes(parsed.UUIDBytes())
	return id, err == nil
}
