package api

import (
	"context"

	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/db"
)

// Prefixes of public ids: a TypeID is the prefix and 26 characters over a UUIDv7.
const (
	prefixDocument = "doc"
	prefixChunk    = "dchunk"
	prefixJob      = "job"
	prefixProject  = "proj"
	// prefixFile stands before the document's own id: each document has one file.
	prefixFile = "file"
)

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

// projectOf gives the project that a request works in. Until there are tenants it is the server's.
func projectOf(ctx context.Context) uuid.UUID {
	id, ok := ctx.Value(projectKey).(uuid.UUID)
	if !ok {
		return db.DefaultProjectID
	}
	return id
}
