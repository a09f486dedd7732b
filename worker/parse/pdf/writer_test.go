package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// put is a text at a place; Bold and Size choose the font. Zero values mean Helvetica of 11 points.
type put struct {
	x, y float64
	text string
	size float64
	bold bool
}

// sheet is what stands on a page of A4.
type sheet []put

// write makes a PDF file. The document has the title unless it is empty.
func write(title string, sheets ...sheet) []byte {
	var contents []string
	for _, s := range sheets {
		var b strings.Builder
		for _, p := range s {
			font, size := "F1", p.size
			if p.bold {
				font = "F2"
			}
			if size == 0 {
				size = 11
			}
			text := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(p.text)
			fmt.Fprintf(&b, "BT /%s %g Tf %g %g Td (%s) Tj ET\n", font, size, p.x, p.y, text)
		}
		contents = append(contents, b.String())
	}

	return writeContents(title, "", contents...)
}

// writeContents makes a PDF file of pages with the given content streams. Filter is empty or "/FlateDecode".
func writeContents(title, filter string, contents ...string) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
		"<< /Title (" + title + ") >>"}
	var kids []string
	for _, content := range contents {
		n := len(objects) + 1
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "+
				"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>", n+1),
			fmt.Sprintf("<< /Length %d%s >>\nstream\n%s\nendstream", len(content), filterEntry(filter), content))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))

	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)

	return b.Bytes()
}

func filterEntry(filter string) string {
	if filter == "" {
		return ""
	}

	return " /Filter " + filter
}

// bomb is a small file with a page of many megabytes.
func bomb(megabytes int) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	operators := strings.Repeat("1 0 0 1 0 0 cm 10 10 m 20 20 l S\n", 1<<20/33)
	for range megabytes {
		_, _ = z.Write([]byte(operators))
	}
	_ = z.Close()

	return writeContents("", "/FlateDecode", b.String())
}

// column puts lines below each other.
func column(x, y, leading float64, lines ...string) sheet {
	var s sheet
	for i, text := range lines {
		s = append(s, put{x: x, y: y - float64(i)*leading, text: text})
	}

	return s
}
