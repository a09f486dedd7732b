package job

import (
	"encoding/json"
	"errors"

	"github.com/kb-search/kb/db"
)

// Revision is a change to a stored note.
type Revision struct {
	// Document is the note as the caller has read it.
	Document db.Document
	// Text and Title take the place of the present ones; nil keeps them.
	Text, Title *string
	// Tags take the place of the present ones; nil keeps them.
	Tags json.RawMessage
}

// ErrChanged is a document that somebody else has changed, or deleted, since it was read.
var ErrChanged = errors.New("the document has changed meanwhile")
