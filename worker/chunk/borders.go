package chunk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutParagraph cuts at blank lines.
func cutParagraph(text string) (length, next int, price float64) {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text), len(text), 0
		}
		at += i + 1
		if rest := strings.TrimLeft(text[at:], " \t"); strings.HasPrefix(rest, "\n") {
			length = at - 1
			for at < len(text) { // Whole blank lines: the next paragraph keeps its indentation.
				n := len(text[at:]) - len(strings.TrimLeft(text[at:], " \t"))
				if at+n == len(text) || text[at+n] != '\n' {
					break
				}
				at += n + 1
			}

			return length, at, indentPrice(text[at:])
		}
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t"))
	}
}

// cutLine cuts at line ends; the price is lower before lines with little indentation, where an outer element begins.
func cutLine(text string) (length, next int, price float64) {
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		return len(text), len(text), 0
	}
	length, next = i, i+1
	blank := false
	for next < len(text) {
		n := len(text[next:]) - len(strings.TrimLeft(text[next:], " \t"))
		if next+n == len(text) || text[next+n] != '\n' {
			break
		}
		next += n + 1
		blank = true
	}
	price = indentPrice(text[next:])
	if blank {
		price /= 2
	}

	return length, next, price
}

// indentPrice is the price of a border before a line.
func indentPrice(line string) float64 {
	const step, most = 2, 10

	columns, price := 0, 0.0
	for i := 0; i < len(line) && columns < step*most; i++ {
		switch line[i] {
		case ' ':
			columns++

			continue
		case '\t':
			columns += step

			continue
		case '}', ']', ')':
			price = priceClosing
		case '<':
			if strings.HasPrefix(line[i:], "</") {
				price = priceClosing
			}
		}

		break
	}

	return price + priceIndent*float64(columns/step)
}

// cutSentence cuts behind the end of a sentence and before an item of a list.
func cutSentence(text string) (length, next int, price float64) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		start := i
		i += size
		switch {
		case r == '\n':
			if listItem(text[i:]) {
				next, price = skipSpace(text, i), indentPrice(text[i:])

				return start, next, price
			}
		case strings.ContainsRune("。！？｡", r):
			i += closers(text[i:])

			return i, skipSpace(text, i), priceSentence
		case strings.ContainsRune(".!?…؟۔।॥።", r):
			i += closers(text[i:])
			next = skipSpace(text, i)
			spaced := next > i
			if first, _ := utf8.DecodeRuneInString(text[i:]); r == '?' || r == '!' {
				spaced = spaced || spaceless(first) // Chinese often has Western signs, but no space behind them.
			}
			if spaced && !(r == '.' && abbreviated(text[:start])) {
				if after, _ := utf8.DecodeRuneInString(text[next:]); r == '.' && unicode.IsLower(after) && !endsInSpace(text[:start]) {
					return i, next, priceClause // Perhaps an abbreviation that is not known.
				}

				return i, next, priceSentence
			}
		}
	}

	return len(text), len(text), 0
}

// closers returns the length of the terminators, quotes and brackets that still belong to a sentence's end.
func closers(text string) int {
	return len(text) - len(strings.TrimLeft(text, `.!?…。！？"')]}”’»」』）】〉》*_`))
}

func skipSpace(text string, at int) int {
	return len(text) - len(strings.TrimLeftFunc(text[at:], unicode.IsSpace))
}

// abbreviations are words that end in a full stop in the middle of a sentence, sorted.
var abbreviations = strings.Fields("al approx bzw ca cf co corp dept dr e.g eg eq fig figs gen i.e ie inc jr lt ltd mr mrs ms no nos nr " +
	"p.m pp prof ref refs rev sec sr st usw vol vs z.b")

// abbreviated reports whether the full stop behind a text ends an abbreviation, an initial or a list's number rather
// than a sentence.
func abbreviated(before string) bool {
	before = before[max(0, len(before)-16):]
	start := strings.LastIndexAny(before, " \t\n(\"'[") + 1
	word := before[start:]
	if word == "" {
		return false
	}
	if len(word) <= 3 && strings.Trim(word, "0123456789") == "" { // At the start of a line, a list's number.
		return strings.HasSuffix(strings.TrimRight(before[:start], " \t"), "\n") || start == 0 && len(before) < 16
	}
	if utf8.RuneCountInString(word) == 1 { // An initial.
		return true
	}
	_, found := slices.BinarySearch(abbreviations, strings.ToLower(word))

	return found
}

func endsInSpace(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)

	return unicode.IsSpace(r)
}

// listItem reports whether a line begins with the mark of a list's item, a quote, a heading or a table's row.
func listItem(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return false
	}
	switch line[0] {
	case '-', '*', '+':
		return len(line) > 1 && line[1] == ' '
	case '>', '|', '#':
		return true
	}
	if strings.HasPrefix(line, "•") {
		return true
	}
	rest := strings.TrimLeft(line[:min(len(line), 8)], "0123456789")

	return len(rest) < min(len(line), 8) && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
}

// cutWord cuts at white space, and between any two characters of scripts that are written without it.
func cutWord(text string) (length, next int, price float64) {
	first, _ := utf8.DecodeRuneInString(text)
	if spaceless(first) || unicode.In(first, unicode.Ps, unicode.Pi) {
		length = cluster(text)
		for length < len(text) { // An opening bracket keeps what it opens; a closing one stays with what it closes.
			before, _ := utf8.DecodeLastRuneInString(text[:length])
			r, _ := utf8.DecodeRuneInString(text[length:])
			if !unicode.In(before, unicode.Ps, unicode.Pi) && !(unicode.In(r, unicode.Pe, unicode.Pf, unicode.Po) && spaceless(r)) || unicode.IsSpace(r) {
				break
			}
			length += cluster(text[length:])
		}
	} else {
		length = strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || spaceless(r) })
		if length < 0 {
			return len(text), len(text), 0
		}
		if length == 0 {
			length = cluster(text)
		}
	}
	next = skipSpace(text, length)
	last, _ := utf8.DecodeLastRuneInString(text[:length])
	switch {
	case strings.Contains(text[length:next], "\n"):
		price = priceLine
	case strings.ContainsRune(",;:、，；：。！？", last):
		price = priceClause
	case next > length:
		price = priceWord
	default:
		price = priceRune
	}

	return length, next, price
}

// cutPart cuts a long word between its parts: runs of letters and digits, each with the sign behind it.
func cutPart(text string) (length, next int, price float64) {
	length = strings.IndexFunc(text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) })
	if length < 0 {
		return len(text), len(text), 0
	}
	length += cluster(text[length:])

	return length, length, pricePart
}

// spaceless reports whether r belongs to a script that puts no space between words.
func spaceless(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff65: // Their punctuation and full-width forms.
		return true
	default:
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
	}
}

// cluster returns the length of the first character of a text as a reader sees it: with its accents, and with all
// that belongs to one emoji.
func cluster(text string) int {
	first, length := utf8.DecodeRuneInString(text)
	joined := false
	for length < len(text) {
		r, size := utf8.DecodeRuneInString(text[length:])
		flag := regional(first) && regional(r)
		if !joined && !flag && r != joiner && !unicode.In(r, unicode.M, unicode.Variation_Selector) &&
			(r < 0x1f3fb || r > 0x1f3ff) && (r < 0xe0020 || r > 0xe007f) {
			break
		}
		if flag {
			first = 0 // A flag is two letters, not more.
		}
		joined = r == joiner
		length += size
	}

	return length
}

const joiner = 0x200d

func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// runeBorder returns the last border between runes of text at or before limit, but at least one rune.
func runeBorder(text string, limit int) int {
	if limit >= len(text) {
		return len(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	if limit <= 0 {
		_, limit = utf8.DecodeRuneInString(text)
	}

	return limit
}
