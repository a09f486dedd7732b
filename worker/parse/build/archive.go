package build

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

const (
	maxEntries   = 10_000
	maxUnpacked  = 512 << 20 // Bytes of all entries.
	maxXML       = 256 << 20 // Bytes of one entry of markup.
	ratioFrom    = 16 << 20  // Entries below this size may be packed as tight as they like.
	maxRatio     = 200
	directorySig = "PK\x01\x02"
)

// encryptedPackage is the name of the stream, in UTF-16, that an encrypted office file keeps its content in.
var encryptedPackage = []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")

// Kind says what a container is to be, for the messages of its errors.
type Kind struct {
	// Name follows "The", such as "Word document".
	Name string
	// Ext is the extension to save the file with, such as ".docx".
	Ext string
}

// Corrupt returns the error of a damaged file of the kind.
func (k Kind) Corrupt() *parse.Error {
	return Corrupt("The " + k.Name + " is damaged or incomplete; save it again as " + k.Ext + " and send the new file.")
}

// TooLarge returns the error of a file of the kind that takes too much to unpack.
func (k Kind) TooLarge() *parse.Error {
	return TooLarge("The " + k.Name + " takes too much memory to unpack; split it into smaller files.")
}

// Archive is a ZIP container whose sizes were checked before anything is unpacked. It is not safe for concurrent use.
type Archive struct {
	kind   Kind
	files  map[string]*zip.File // By their names in lower case.
	all    []*zip.File
	budget int64 // How many bytes may yet be unpacked.
}

// OpenArchive opens a container. The error is a *parse.Error whose Code is "corrupt", "too_large", "password_required"
// (an encrypted office file) or "unsupported_type" (an office file of before 2007).
func OpenArchive(data []byte, kind Kind) (*Archive, error) {
	if bytes.HasPrefix(data, []byte(parse.SignatureOLE)) {
		if bytes.Contains(data, encryptedPackage) {
			return nil, kind.passwordRequired()
		}

		return nil, &parse.Error{Code: "unsupported_type", Message: "The file is in the old binary office format; open it and save it as " +
			kind.Ext + "."}
	}
	// The reader makes entries before they can be counted, so count their signatures first; packed files may hold some.
	if bytes.Count(data, []byte(directorySig)) > 4*maxEntries {
		return nil, kind.TooLarge()
	}
	reader, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, kind.Corrupt()
	}
	a := &Archive{kind: kind, files: make(map[string]*zip.File, min(len(reader.File), maxEntries)), all: reader.File, budget: maxUnpacked}
	if err := a.check(int64(len(data))); err != nil {
		return nil, err
	}
	for _, file := range reader.File {
		a.files[key(file.Name)] = file // Of two entries with one name the later one counts, as it does for most readers.
	}

	return a, nil
}

func (k Kind) passwordRequired() *parse.Error {
	return &parse.Error{Code: "password_required", Message: "The " + k.Name + " can't be opened without its password; " +
		"save it without one and send it again."}
}

// key makes entries comparable: names in office files ignore case, and some writers use backslashes.
func key(name string) string {
	return strings.ToLower(strings.TrimLeft(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// check refuses containers that lie about their entries or would unpack to too much.
func (a *Archive) check(size int64) error {
	if len(a.all) > maxEntries {
		return a.kind.TooLarge()
	}
	type span struct{ start, end int64 }
	var spans []span
	var total uint64
	for _, file := range a.all {
		if file.UncompressedSize64 > maxUnpacked || file.CompressedSize64 > math.MaxInt64/2 {
			return a.kind.TooLarge()
		}
		total += file.UncompressedSize64
		if total > maxUnpacked || markup(file.Name) && file.UncompressedSize64 > maxXML {
			return a.kind.TooLarge()
		}
		if file.UncompressedSize64 > ratioFrom && file.UncompressedSize64/maxRatio > file.CompressedSize64 {
			return a.kind.TooLarge()
		}
		if file.CompressedSize64 == 0 {
			continue
		}
		start, err := file.DataOffset()
		if err != nil || start+int64(file.CompressedSize64) > size {
			return a.kind.Corrupt()
		}
		spans = append(spans, span{start, start + int64(file.CompressedSize64)})
	}
	slices.SortFunc(spans, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			return a.kind.Corrupt()
		}
	}

	return nil
}

func markup(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".xml", ".rels", ".vml", ".xhtml", ".html", ".htm", ".opf", ".ncx":
		return true
	default:
		return false
	}
}

// Has reports whether the container has an entry of that name; case does not count.
func (a *Archive) Has(name string) bool { return a.files[key(name)] != nil }

// LargestExcept returns what the container says about the unpacked size of its largest entry of XML that is not named.
func (a *Archive) LargestExcept(names map[string]bool) int64 {
	except := map[string]bool{}
	for name := range names {
		except[key(name)] = true
	}
	largest := uint64(0)
	for _, file := range a.all {
		if markup(file.Name) && !except[key(file.Name)] {
			largest = max(largest, file.UncompressedSize64)
		}
	}

	return int64(largest)
}

// Unpack reads every entry and drops it, so that a container that unpacks to more than it says is refused before another
// reader sees it.
func (a *Archive) Unpack() error {
	for _, file := range a.all {
		entry, err := a.open(file)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, entry); err != nil {
			return Blame(err, a.kind.Corrupt().Message)
		}
	}

	return nil
}

// Open returns an entry's content. Reading it fails with a *parse.Error once more comes out than may. There is nothing to
// close. The error of Open is a *parse.Error; its Code is "corrupt" where the entry is missing.
func (a *Archive) Open(name string) (io.Reader, error) {
	file := a.files[key(name)]
	if file == nil {
		return nil, a.kind.Corrupt()
	}

	return a.open(file)
}

func (a *Archive) open(file *zip.File) (io.Reader, error) {
	if file.Flags&1 != 0 {
		return nil, a.kind.passwordRequired()
	}
	reader, err := file.Open()
	if err != nil {
		return nil, a.kind.Corrupt()
	}

	return &entry{archive: a, reader: reader, left: maxXML}, nil
}

// ReadAll returns an entry's content.
func (a *Archive) ReadAll(name string) ([]byte, error) {
	reader, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, Blame(err, a.kind.Corrupt().Message)
	}

	return data, nil
}

// entry reads within the limits of its archive.
type entry struct {
	archive *Archive
	reader  io.Reader
	left    int64
}

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.reader.Read(p)
	e.left -= int64(n)
	e.archive.budget -= int64(n)
	if e.left < 0 || e.archive.budget < 0 {
		return 0, e.archive.kind.TooLarge()
	}
	if errors.Is(err, zip.ErrChecksum) && n > 0 {
		return n, e.archive.kind.Corrupt()
	}

	return n, err
}
