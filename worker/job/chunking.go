package job

// Chunking is how a caller wants a document to be cut. What is missing is the server's default.
type Chunking struct {
	// Size is the largest chunk in tokens, title and section included.
	Size int `json:"size,omitempty"`
	// Overlap is how many tokens of a chunk the next one repeats.
	Overlap *int `json:"overlap,omitempty"`
	// Strategy is chunk.BySection or chunk.ByPage.
	Strategy string `json:"strategy,omitempty"`
}

// With puts what a caller asks for over defaults. A default overlap that is too much for the caller's size is cut.
func (c Chunking) With(callers Chunking) Chunking {
	merged := c
	if callers.Size > 0 {
		merged.Size = callers.Size
		if c.Overlap != nil && *c.Overlap > callers.Size/2 {
			merged.Overlap = nil
		}
	}
	if callers.Overlap != nil {
		merged.Overlap = callers.Overlap
	}
	if callers.Strategy != "" {
		merged.Strategy = callers.Strategy
	}
	return merged
}

// ChunkingError is a way to cut documents that is not possible.
type ChunkingError struct {
	// Message says what to change, without an end.
	Message string
}

func (e *ChunkingError) Error() string { return e.Message }

// What happens when a document stands at the path of an upload already.
const (
	// ConflictVersion makes the upload the next version of that document.
	ConflictVersion = "version"
	// ConflictReject refuses the upload.
	ConflictReject = "reject"
	// ConflictDuplicate makes the upload a second document beside the first, with a number in its path.
	ConflictDuplicate = "duplicate"
)
