package parse

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Format says how a file is read. Several formats can share a document type.
type Format string

// The formats that Parse reads.
const (
	FormatNote      Format = "note"
	FormatMarkdown  Format = "markdown"
	FormatText      Format = "text"
	FormatLines     Format = "lines"
	FormatJSON      Format = "json"
	FormatJSONLines Format = "jsonl"
	FormatCSV       Format = "csv"
	FormatTSV       Format = "tsv"
	// FormatCode is read by package code, below this one.
	FormatCode Format = "code"
	// FormatPDF is read by package pdf, below this one.
	FormatPDF Format = "pdf"
	// FormatHTML is read by package html, below this one.
	FormatHTML Format = "html"
	// FormatDOCX, FormatPPTX and FormatXLSX are read by package office, below this one.
	FormatDOCX Format = "docx"
	FormatPPTX Format = "pptx"
	FormatXLSX Format = "xlsx"
	// FormatEPUB is read by package epub, below this one.
	FormatEPUB Format = "epub"
	// FormatEML is read by package mail, below this one.
	FormatEML Format = "eml"
	// FormatImage is read by a converter outside the process.
	FormatImage Format = "image"
)

// The document types, as doc_type has them.
const (
	TypeCode     = "code"
	TypeData     = "data"
	TypeDOCX     = "docx"
	TypeEML      = "eml"
	TypeEPUB     = "epub"
	TypeHTML     = "html"
	TypeImage    = "image"
	TypeMarkdown = "markdown"
	TypeNote     = "note"
	TypePDF      = "pdf"
	TypePPTX     = "pptx"
	TypeXLSX     = "xlsx"
)

var types = []string{
	TypeCode, TypeData, TypeDOCX, TypeEML, TypeEPUB, TypeHTML, TypeImage, TypeMarkdown, TypeNote, TypePDF, TypePPTX, TypeXLSX,
}

// extensions is the one table from a file name's extension to the way the file is read.
var extensions = map[string]Format{
	".md": FormatMarkdown, ".markdown": FormatMarkdown, ".mdx": FormatMarkdown,
	".txt": FormatText, ".text": FormatText,
	".log": FormatLines, ".yaml": FormatLines, ".yml": FormatLines, ".toml": FormatLines, ".xml": FormatLines,
	".json": FormatJSON, ".jsonl": FormatJSONLines, ".ndjson": FormatJSONLines,
	".csv": FormatCSV, ".tsv": FormatTSV,
	".pdf": FormatPDF, ".docx": FormatDOCX, ".docm": FormatDOCX, ".pptx": FormatPPTX, ".pptm": FormatPPTX, ".xlsx": FormatXLSX, ".xlsm": FormatXLSX,
	".html": FormatHTML, ".htm": FormatHTML, ".xhtml": FormatHTML, ".epub": FormatEPUB, ".eml": FormatEML,
	".png": FormatImage, ".jpg": FormatImage, ".jpeg": FormatImage, ".tif": FormatImage, ".tiff": FormatImage, ".gif": FormatImage, ".webp": FormatImage,
}

// codeExtensions are those of package code, which has a test that holds the two together.
var codeExtensions = strings.Fields(`
	.asm .bas .bash .bat .c .c++ .cc .cjs .clj .cljc .cljs .cmake .cmd .cpp .cs .css .csx .cts .cu .cuh .cxx .dart .erl .ex .exs
	.f90 .f95 .fish .fs .fsi .fsx .gemspec .go .gql .gradle .graphql .groovy .h .hcl .hh .hpp .hrl .hs .hxx .ipp .java .jl .js .jsx
	.ksh .kt .kts .less .lua .m .mjs .ml .mli .mm .mts .nim .pas .php .pl .pm .proto .ps1 .psm1 .py .pyi .pyw .r .rake .rb .rs .s
	.sass .sc .scala .scss .sh .sol .sql .svelte .swift .tf .tpp .ts .tsx .vb .vue .zig .zsh`)

func init() {
	for _, extension := range codeExtensions {
		extensions[extension] = FormatCode
	}
}

// Type returns the document type that the format belongs to.
func (f Format) Type() string {
	switch f {
	case FormatNote:
		return TypeNote
	case FormatMarkdown:
		return TypeMarkdown
	case FormatCode:
		return TypeCode
	case FormatPDF:
		return TypePDF
	case FormatHTML:
		return TypeHTML
	case FormatDOCX, FormatPPTX, FormatXLSX, FormatEPUB, FormatEML, FormatImage:
		return string(f)
	default:
		return TypeData
	}
}

// IsText says whether a file of the format is text as it is, to be decoded by Decode.
func (f Format) IsText() bool {
	switch f.Type() {
	case TypeNote, TypeMarkdown, TypeData, TypeCode:
		return true
	default:
		return false
	}
}

// SupportedExtensions returns the extensions that Detect knows, with their dots, sorted; those of images are left out
// unless asked for.
func SupportedExtensions(images bool) []string {
	list := make([]string, 0, len(extensions))
	for ext, format := range extensions {
		if images || format != FormatImage {
			list = append(list, ext)
		}
	}
	slices.Sort(list)

	return list
}

// Detect says how a file is to be read, from its name and from the doc_type that the sender asked for; either may be
// empty. A doc_type decides over the extension, but does not open an extension that is not supported. It looks at no
// content, so it is cheap enough to refuse an upload before its body is read. Its error, if any, is an *Error.
func Detect(name, docType string) (Format, error) {
	if docType != "" && !slices.Contains(types, docType) {
		return "", &Error{Code: "unknown_doc_type", Message: fmt.Sprintf("doc_type %q is not known; use one of %s",
			shorten(docType), strings.Join(types, ", "))}
	}

	ext := strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
	format, known := extensions[ext]

	switch {
	case ext != "" && ext != "." && !known:
		return "", &Error{Code: "unsupported_type", Message: fmt.Sprintf("files ending in %q are not supported; supported are %s",
			shorten(ext), strings.Join(SupportedExtensions(true), ", "))}
	case known && (docType == "" || docType == format.Type()):
		return format, nil
	case docType == TypeNote:
		return FormatNote, nil
	case docType == TypeMarkdown:
		return FormatMarkdown, nil
	case docType == TypeData:
		return FormatText, nil
	case docType != "":
		return Format(docType), nil // These formats are one document type each.
	default:
		return "", &Error{Code: "unsupported_type", Message: "a file name without an extension doesn't say what the file is; " +
			"supported are " + strings.Join(SupportedExtensions(true), ", ")}
	}
}

// shorten keeps a stranger's value in a message short.
func shorten(s string) string {
	const limit = 40
	if len(s) <= limit {
		return s
	}

	return strings.ToValidUTF8(s[:limit], "") + "…"
}
