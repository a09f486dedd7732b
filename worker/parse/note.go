package parse

// parseNote makes the whole text one block: a note is a thought that someone wrote down as one.
func parseNote(doc *Document) {
	if block, ok := trimmed(doc.Text, 0, len(doc.Text), Paragraph); ok {
		doc.Blocks = []Block{block}
	}
}
