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

// What happens when a document stands at the path of an upload already.
const (
	// ConflictVersion makes the upload the next version of that document.
	ConflictVersion = "version"
	// ConflictReject refuses the upload.
	ConflictReject = "reject"
	// ConflictDuplicate makes the upload a second document at the path.
	ConflictDuplicate = "duplicate"
)
