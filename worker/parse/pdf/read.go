package pdf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/kb-search/kb/worker/parse"
)

// box is a rectangle on a page as it is displayed; y grows upwards.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) height() float64 { return b.y1 - b.y0 }
func (b box) width() float64  { return b.x1 - b.x0 }
func (b box) middle() float64 { return (b.y0 + b.y1) / 2 }

func (b box) union(o box) box {
	return box{min(b.x0, o.x0), min(b.y0, o.y0), max(b.x1, o.x1), max(b.y1, o.y1)}
}

// sameRow reports whether two boxes stand beside each other: they share half of the lower one's height.
func (b box) sameRow(o box) bool {
	return min(b.y1, o.y1)-max(b.y0, o.y0) >= 0.5*min(b.height(), o.height())
}

// word is a run of letters without white space.
type word struct {
	box

	text   string
	size   float64
	bold   bool
	hyphen bool // The line ends here, in a hyphen that is not in text.
}

// page is what is read from a page.
type page struct {
	number   int // From 1.
	segments []segment
}

// info is what a document says about itself.
type info struct {
	title  string
	pages  int
	failed []int
}

// read reads all pages of a document. Those that can't be read are in info.failed.
func read(ctx context.Context, instance pdfium.Pdfium, data []byte, maxPages int) ([]page, info, error) {
	opened, err := instance.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return nil, info{}, openError(err)
	}
	count, err := instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return nil, info{}, openError(err)
	}
	switch {
	case count.PageCount <= 0:
		return nil, info{}, errCorrupt("The PDF has no pages.")
	case count.PageCount > maxPages:
		return nil, info{}, &parse.Error{Code: "too_many_pages", Message: fmt.Sprintf(
			"The PDF has %d pages, more than the limit of %d; split it.", count.PageCount, maxPages)}
	}

	about := info{pages: count.PageCount}
	if meta, err := instance.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: opened.Document, Tag: "Title"}); err == nil {
		about.title = sensibleTitle(meta.Value)
	}

	var pages []page
	size := 0
	for i := range count.PageCount {
		r := reader{instance: instance}
		words, err := r.page(opened.Document, i)
		var own *parse.Error
		switch {
		case ctx.Err() != nil:
			return nil, info{}, context.Cause(ctx)
		case errors.As(err, &own):
			return nil, info{}, own
		case err != nil && exhausted(err):
			return nil, info{}, errTooLarge()
		case err != nil:
			about.failed = append(about.failed, i+1)

			continue
		}
		for _, w := range words {
			size += len(w.text) + 1
		}
		if size > maxText {
			return nil, info{}, errTooLarge()
		}
		pages = append(pages, page{number: i + 1, segments: segments(words)})
	}

	return pages, about, nil
}

// reader reads one page. Each call into PDFium takes about a microsecond or more, so it asks for positions of words
// only, not of letters, and for fonts at both ends of a line.
type reader struct {
	instance pdfium.Pdfium
	text     references.FPDF_TEXTPAGE
	rotation int
}

func (r *reader) page(doc references.FPDF_DOCUMENT, index int) ([]word, error) {
	loaded, err := r.instance.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: index})
	if err != nil {
		return nil, err
	}
	defer r.instance.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) //nolint:errcheck // The instance is thrown away.
	reference := requests.Page{ByReference: &loaded.Page}

	rotation, err := r.instance.FPDFPage_GetRotation(&requests.FPDFPage_GetRotation{Page: reference})
	if err != nil {
		return nil, err
	}
	r.rotation = int(rotation.PageRotation)

	text, err := r.instance.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: reference})
	if err != nil {
		return nil, err
	}
	r.text = text.TextPage
	defer r.instance.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: r.text}) //nolint:errcheck // The instance is thrown away.

	chars, err := r.chars()
	if err != nil {
		return nil, err
	}

	return r.words(chars)
}

// chars returns the page's characters, so that the index of one is its number in PDFium.
func (r *reader) chars() ([]rune, error) {
	count, err := r.instance.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: r.text})
	if err != nil || count.Count <= 0 {
		return nil, err
	}
	if count.Count > maxPageChars {
		return nil, errTooLarge()
	}
	text, err := r.instance.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: r.text, Count: count.Count})
	if err == nil {
		if chars := []rune(strings.TrimSuffix(text.Text, "\x00")); len(chars) == count.Count {
			return chars, nil
		}
	}

	chars := make([]rune, count.Count) // Some character has no text or is written in two.
	for i := range chars {
		char, err := r.instance.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: r.text, Index: i})
		if err != nil {
			return nil, err
		}
		chars[i] = rune(char.Unicode)
	}

	return chars, nil
}

// isHyphen reports whether c is what PDFium puts in the place of a hyphen at the end of a line.
func isHyphen(c rune) bool { return c == 0x02 || c == 0xfffe }

// words cuts a page's characters at white space.
func (r *reader) words(chars []rune) ([]word, error) {
	var words []word
	end := 0 // The last letter of the last word.
	for i := 0; i < len(chars); {
		c := chars[i]
		if isHyphen(c) && len(words) > 0 {
			words[len(words)-1].hyphen = true
		}
		if unicode.IsSpace(c) || isHyphen(c) {
			i++

			continue
		}
		start := i
		for i < len(chars) && !unicode.IsSpace(chars[i]) && !isHyphen(chars[i]) {
			i++
		}
		text := clean(chars[start:i])
		if text == "" {
			continue
		}
		w := word{text: text, hyphen: chars[i-1] == softHyphen}
		if err := r.measure(&w, start, i-1); err != nil {
			return nil, err
		}
		if n := len(words) - 1; n < 0 || !words[n].sameRow(w.box) || words[n].x1 > w.x1 || w.x0-words[n].x1 > wideGap*w.height() {
			if n >= 0 {
				r.style(&words[n], end)
			}
			r.style(&w, start)
		} else {
			w.size, w.bold = words[n].size, words[n].bold
			if h := words[n].height(); math.Abs(h-w.height()) > 0.02*h {
				r.style(&w, start)
			}
		}
		if w.height() > 2*w.size && w.size > 0 {
			r.tighten(&w, start, i-1)
		}
		end = i - 1
		words = append(words, w)
	}

	return words, nil
}

// tighten measures a word by its ink: some fonts claim letters of many times their height.
func (r *reader) tighten(w *word, first, last int) {
	var ink box
	for _, index := range []int{first, last} {
		found, err := r.instance.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: r.text, Index: index})
		if err != nil {
			return
		}
		b := r.turn(found.Left, found.Bottom, found.Right, found.Top)
		if index == first {
			ink = b
		}
		ink = ink.union(b)
	}
	w.y0, w.y1 = ink.y0, max(ink.y1, ink.y0+0.7*w.size)
}

// measure finds a word's place from its first and last letter.
func (r *reader) measure(w *word, first, last int) error {
	var err error
	if w.box, err = r.box(first); err != nil || first == last {
		return err
	}
	end, err := r.box(last)
	w.box = w.union(end)

	return err
}

func (r *reader) box(index int) (box, error) {
	found, err := r.instance.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: r.text, Index: index})
	if err != nil {
		return box{}, err
	}
	rect := found.Rect

	return r.turn(float64(rect.Left), float64(rect.Bottom), float64(rect.Right), float64(rect.Top)), nil
}

// turn makes a box on the displayed page of one on the page as it was before turning.
func (r *reader) turn(left, bottom, right, top float64) box {
	x0, y0, x1, y1 := bound(left), bound(bottom), bound(right), bound(top)
	switch r.rotation {
	case 1:
		x0, y0, x1, y1 = y0, -x1, y1, -x0
	case 2:
		x0, y0, x1, y1 = -x1, -y1, -x0, -y0
	case 3:
		x0, y0, x1, y1 = -y1, x0, -y0, x1
	}

	return box{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)}
}

// bound keeps damaged files from putting text where arithmetic ends.
func bound(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}

	return max(-1e6, min(1e6, x))
}

// style finds the size and weight of a letter's font; both stay as they are where PDFium doesn't say.
func (r *reader) style(w *word, index int) {
	if size, err := r.instance.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: r.text, Index: index}); err == nil {
		scale := 1.0
		if m, err := r.instance.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: r.text, Index: index}); err == nil {
			scale = math.Hypot(float64(m.Matrix.C), float64(m.Matrix.D))
		}
		if s := math.Abs(size.FontSize) * scale; s > 0.1 && s < 1e4 {
			w.size = s
		}
	}
	if weight, err := r.instance.FPDFText_GetFontWeight(&requests.FPDFText_GetFontWeight{TextPage: r.text, Index: index}); err == nil {
		w.bold = weight.FontWeight >= 600
	}
	if font, err := r.instance.FPDFText_GetFontInfo(&requests.FPDFText_GetFontInfo{TextPage: r.text, Index: index}); err == nil {
		w.bold = w.bold || boldName.MatchString(font.FontName)
	}
}

var (
	boldName  = regexp.MustCompile(`(?i)bold|black|heavy|demi`)
	fileName  = regexp.MustCompile(`(?i)^\S+\.[a-z][a-z0-9]{1,4}$|\.(pdf|docx?|odt|rtf|tex|dvi|pptx?|xlsx?|indd|qxd|html?|txt|pages)$`)
	oldPrefix = regexp.MustCompile(`^Microsoft (Word|PowerPoint|Excel) - `)
)

// sensibleTitle returns a title made for readers, else an empty string: programs put in file names and defaults.
func sensibleTitle(s string) string {
	s = strings.Join(strings.Fields(clean([]rune(s))), " ")
	s = oldPrefix.ReplaceAllString(s, "")
	if parse.Blank(s) || len(s) > 500 || fileName.MatchString(s) {
		return ""
	}
	switch strings.ToLower(s) {
	case "untitled", "(untitled)", "untitled document", "unknown", "(anonymous)", "anonymous", "none", "null", "title":
		return ""
	}

	return s
}

const softHyphen = '\u00ad'

var ligatures = map[rune]string{
	'\ufb00': "ff", '\ufb01': "fi", '\ufb02': "fl", '\ufb03': "ffi", '\ufb04': "ffl", '\ufb05': "st", '\ufb06': "st",
	'\uf0b7': "•", '\uf0a7': "•", '\uf0d8': "•", // Bullets of symbol fonts.
}

// clean returns text without what is no letter: controls, soft hyphens and characters that Unicode doesn't have.
func clean(chars []rune) string {
	var b strings.Builder
	for _, c := range chars {
		switch long, isLigature := ligatures[c]; {
		case isLigature:
			b.WriteString(long)
		case unicode.IsSpace(c):
			b.WriteByte(' ')
		case unicode.IsControl(c) || c == softHyphen || c == '\ufeff' || c == unicode.ReplacementChar || c&0xfffe == 0xfffe:
		default:
			b.WriteRune(c)
		}
	}
	if text := strings.ToValidUTF8(b.String(), ""); !parse.Blank(text) {
		return strings.ReplaceAll(text, string(unicode.ReplacementChar), "")
	}

	return ""
}
