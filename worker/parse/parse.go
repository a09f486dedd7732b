// Package parse turns a file's bytes into blocks of text in reading order. It is pure: no database, no network, no
// clock. Its invariant: whatever the bytes, it returns a document with at least one block, of valid UTF-8 without NUL,
// or an *Error whose message an end user can act on; it never panics, and time and memory grow with the input's length
// only. How long a piece of text may be is chunk's business.
package parse

import "fmt"

// Kind says what a block is, so that a chunker knows what must stay whole.
type Kind string

const (
	// Paragraph is running text: one or more paragraphs with blank lines between them. Each stays whole where it fits;
	// a longer one may be split between sentences.
	Paragraph Kind = "paragraph"
	// Code is a fenced or indented block; it is kept whole where it fits and may be split at line ends.
	Code Kind = "code"
	// Table is a table whose text begins with its Header; rows (lines) are kept whole where they fit.
	Table Kind = "table"
	// Record is a run of records of a data file, each kept whole where it fits. Records are lines, except where Breaks
	// says otherwise.
	Record Kind = "record"
)

// Block is a run of text of one kind.
type Block struct {
	Kind Kind
	// Text is neither blank nor does it end in white space. It is Document.Text[Start:End], except where markup was
	// taken out of it (comments in Markdown); then it is shorter.
	Text string
	// Path holds the headings above the block, outermost first. Blocks of one section share one Path; don't change it.
	Path []string
	// Header is repeated at the head of each chunk of the block's table or data file; empty for other kinds. The first
	// block of the table or file begins with it.
	Header string
	// Breaks holds the offsets in Text at which records begin, ascending, when some record spans several lines; nil
	// means that each line is a record.
	Breaks []int
	// Page is the 1-indexed page in the source, 0 where the source has no pages.
	Page int
	// Start and End are the block's byte range in Document.Text. Blocks don't overlap and come in ascending order.
	Start, End int
}

// Document is a parsed file.
type Document struct {
	// Type is the document type, one of those of Format.Type.
	Type string
	// Title is the title found in the content, empty when there is none.
	Title string
	// Metadata is what the file says about itself, such as Markdown front matter. It can be marshalled to JSON.
	Metadata map[string]any
	// Text is the source that block ranges refer to: decoded, line ends made \n, minified JSON indented.
	Text string
	// Blocks holds the text in reading order; it is never empty.
	Blocks []Block
}

// Error is a file that can't be read as what it claims to be. It will not get better by trying again.
type Error struct {
	// Code is stable and machine-readable: "unsupported_type", "unknown_doc_type", "binary" or "empty".
	Code string
	// Message is one sentence for the person who sent the file.
	Message string
}

func (e *Error) Error() string { return e.Message }

// Input is a file to parse.
type Input struct {
	// Name is the file's name, whose extension says how to read it. It may be empty when Type is given.
	Name string
	// Type is the doc_type that the sender asked for. Defaults to what the extension says.
	Type string
	// Data is the file's content; it is not changed.
	Data []byte
}

// Decode turns a file's bytes into text: valid UTF-8 without NUL, line ends made \n. Its error, if any, is an *Error.
func Decode(data []byte) (string, error) { return decode(data) }

// Parse reads a file of a text format; code it takes for plain text, and others it refuses. Its error, if any, is an *Error.
func Parse(in Input) (Document, error) {
	format, err := Detect(in.Name, in.Type)
	if err != nil {
		return Document{}, err
	}
	text, err := decode(in.Data)
	if err != nil {
		return Document{}, err
	}

	doc := Document{Type: format.Type(), Text: text}
	switch format {
	case FormatNote:
		parseNote(&doc)
	case FormatMarkdown:
		parseMarkdown(&doc)
	case FormatText, FormatCode:
		doc.Blocks = lines(nil, text, 0, Paragraph)
	case FormatJSON:
		parseJSON(&doc)
	case FormatJSONLines:
		doc.Text = unescapeJSON(text)
		doc.Blocks = lines(nil, doc.Text, 0, Record)
	case FormatCSV, FormatTSV:
		parseCSV(&doc, format)
	case FormatLines:
		doc.Blocks = lines(nil, text, 0, Record)
	default:
		return Document{}, &Error{Code: "unsupported_type", Message: fmt.Sprintf("files of the type %q can't be read here", format)}
	}

	if len(doc.Blocks) == 0 {
		return Document{}, errEmpty()
	}

	return doc, nil
}
