package mail

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const head = "From: =?utf-8?q?Anna_M=C3=BCller?= <anna@example.com>\r\nTo: Bob <bob@example.com>, carl@example.com\r\n" +
	"Subject: =?iso-8859-1?Q?Pumpe_f=FCr?= =?utf-8?B?IGRlbiBLZWxsZXI=?=\r\nDate: Wed, 4 Mar 2026 09:30:00 +0100\r\nMessage-ID: <1@example.com>\r\nMIME-Version: 1.0\r\n"

const people = "[] From: Anna Müller <anna@example.com>\nTo: Bob <bob@example.com>, carl@example.com\nDate: 2026-03-04 09:30 +0100\n"

// crlf gives a message the line ends that mail has.
func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func multipart(kind string, parts ...string) string {
	boundary := "=_" + kind + fmt.Sprint(len(strings.Join(parts, "")))

	return "Content-Type: multipart/" + kind + "; boundary=\"" + boundary + "\"\n\npreamble\n--" + boundary + "\n" + strings.Join(parts, "\n--"+boundary+"\n") + "\n--" + boundary + "--\n"
}

func mustParse(t *testing.T, message string) parse.Document {
	t.Helper()
	doc, err := Parse([]byte(crlf(message)))
	if err != nil {
		t.Fatal(err)
	}
	if err := buildtest.Check(doc); err != nil {
		t.Fatal(err)
	}

	return doc
}

func TestParse(t *testing.T) {
	t.Parallel()

	plain := "Content-Type: text/plain; charset=utf-8\n\nHello.\n\nBye.\n"
	page := "Content-Type: text/html; charset=utf-8\n\n<h2>Care</h2><p>Drain <b>it</b>.</p>\n"
	file := "Content-Type: application/pdf; name=\"a.pdf\"\nContent-Disposition: attachment; filename=\"offer.pdf\"\nContent-Transfer-Encoding: base64\n\nJVBERi0=\n"
	picture := "Content-Type: image/png; name=\"logo.png\"\nContent-ID: <logo>\nContent-Disposition: inline; filename=\"logo.png\"\n\nx\n"
	inner := func(subject, body string) string {
		return "Content-Type: message/rfc822\nContent-Disposition: attachment; filename=\"" + subject + ".eml\"\n\nFrom: x@example.com\nSubject: " + subject + "\n" + body
	}
	for _, test := range []struct{ name, message, want string }{
		{"PlainTextIsParagraphs", head + "\nHello.\nYou.\n\n\nBye.\n", people + "[] Hello.\nYou.\n[] Bye.\n"},
		{"PlainTextIsPreferred", head + multipart("alternative", plain, page), people + "[] Hello.\n[] Bye.\n"},
		{"HTMLIsReadWhereThereIsNoPlainText", head + multipart("alternative", "Content-Type: text/plain\n\n \n", page), people + "[Care] Drain it.\n"},
		{"HTMLAlone", head + page, people + "[Care] Drain it.\n"},
		{"PartsWithinPartsAreWalked", head + multipart("mixed", multipart("related", multipart("alternative", plain, multipart("related", page, picture)), picture), file), people + "[] Hello.\n[] Bye.\n"},
		{"QuotedPrintableIsDecoded", head + "Content-Type: text/plain; charset=iso-8859-15\nContent-Transfer-Encoding: quoted-printable\n\nK=E4se f=FCr 5 =A4 und =\nmehr\n", people + "[] Käse für 5 € und mehr\n"},
		{"Base64IsDecoded", head + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte("Käse")) + "\n", people + "[] Käse\n"},
		{"UndeclaredUTF8IsRead", head + "\nKäse\n", people + "[] Käse\n"},
		{"UndeclaredLatin1IsRead", head + "\nK\xe4se\n", people + "[] Käse\n"},
		{"AsianEncodings", head + "Content-Type: text/plain; charset=iso-2022-jp\n\n\x1b$B?e$N\x1b(B\n", people + "[] 水の\n"},
		{"AttachedMessagesStandUnderTheirSubject", head + multipart("mixed", plain, inner("Outer", multipart("mixed", plain, inner("Inner", "\nDeep.\n")))),
			people + "[] Hello.\n[] Bye.\n[Outer] From: x@example.com\n[Outer] Hello.\n[Outer] Bye.\n[Outer > Inner] From: x@example.com\n[Outer > Inner] Deep.\n"},
		{"MessagesBeyondTheDepthAreOnlyListed", head + multipart("mixed", plain, inner("1", multipart("mixed", inner("2", multipart("mixed", inner("3", multipart("mixed", inner("4", "\nDeep.\n")))))))),
			people + "[] Hello.\n[] Bye.\n[1] From: x@example.com\n[1 > 2] From: x@example.com\n[1 > 2 > 3] From: x@example.com\n"},
		{"AMailboxsFirstLineIsSkipped", "From anna@example.com Wed Mar  4 09:30:00 2026\n" + head + "\nHello.\n", people + "[] Hello.\n"},
		{"AMissingLastBoundaryIsForgiven", head + strings.TrimSuffix(multipart("mixed", plain), "--\n"), people + "[] Hello.\n[] Bye.\n"},
		{"DamagedBase64IsReadAsFarAsItGoes", head + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte("Hello Bob")) + "=x=\n", people + "[] Hello Bob\n"},
		{"HeadersOnly", head + "\n", people},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, test.message)
			if diff := cmp.Diff(test.want, buildtest.Outline(doc)); diff != "" {
				t.Error(diff)
			}
			if doc.Title != "Pumpe für den Keller" || doc.Type != parse.TypeEML {
				t.Errorf("title %q, type %q", doc.Title, doc.Type)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, head+"Cc: Dora <dora@example.com>\n"+multipart("mixed", "Content-Type: text/plain\n\nHi.\n",
		"Content-Type: application/pdf\nContent-Disposition: attachment; filename*=utf-8''Angebot%20f%C3%BCr.pdf\n\nx\n",
		"Content-Type: image/png; name=logo.png\nContent-ID: <x>\n\nx\n", "Content-Type: text/csv; name=a.csv\n\na;b\n"))
	want := map[string]any{"from": "Anna Müller <anna@example.com>", "to": "Bob <bob@example.com>, carl@example.com", "cc": "Dora <dora@example.com>",
		"date": "2026-03-04T09:30:00+01:00", "message_id": "1@example.com", "attachments": []string{"Angebot für.pdf", "a.csv"}}
	if diff := cmp.Diff(want, doc.Metadata); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, data, want string }{
		{"Nothing", "", "corrupt"},
		{"PlainText", "Just some text.\nNo header: at all.\n\nText.\n", "corrupt"},
		{"AnOutlookMessage", string(buildtest.OLE("__substg1.0_0037001F")), "unsupported_type"},
		{"OnlyAContentType", "Content-Type: text/plain\n\n \n", "empty"},
		{"TooManyParts", head + multipart("mixed", strings.Split(strings.Repeat("\nx", 20_000), "x")...), "too_large"},
		{"TooManyMultiparts", head + nested(1000), "too_large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if _, err := Parse([]byte(test.data)); buildtest.Code(err) != test.want {
				t.Errorf("got %v (%s), want %s", err, buildtest.Code(err), test.want)
			}
		})
	}
}

// nested writes multiparts within each other.
func nested(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}

	return b.String()
}

func TestHostileMessagesTakeLinearTime(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, data string }{
		{"NestedMultipartsAroundText", head + nested(8) + "\n" + strings.Repeat("x\r\n", 300_000)},
		{"ManyBoundaries", head + "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--bx\n--b x\n", 100_000) + "--b\n\nx"},
		{"AHeaderOfManyParameters", head + "Content-Type: text/plain" + strings.Repeat("; a=b", 300_000) + "\n\nx"},
		{"AHeaderOfManyWords", head + "Cc: " + strings.Repeat("=?utf-8?q?x?= ", 100_000) + "\n\nx"},
		{"ManyHeaders", head + strings.Repeat("X-A: b\nno colon\n", 100_000) + "\nx"},
		{"ManyParagraphs", head + "\n" + strings.Repeat("x\n\n", 300_000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc, err := Parse([]byte(test.data))
			if err := buildtest.CheckResult(doc, err); err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzMail(f *testing.F) {
	for _, seed := range []string{
		head + "\nHello.\n", head + multipart("alternative", "Content-Type: text/plain\n\na\n", "Content-Type: text/html\n\n<p>b\n"),
		head + multipart("mixed", "Content-Type: message/rfc822\n\nSubject: x\n\ny\n", "Content-Type: a/b; name=c\nContent-Transfer-Encoding: base64\n\n====\n"),
		"From x\nSubject: =?utf-7?q?+AGE-?=\nContent-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: quoted-printable\n\n=00=zz=\n",
		"Content-Type: multipart/mixed; boundary=\"\"\n\n--\n\n----\n", "Content-Type: multipart/mixed; boundary=\"\n\n:x\n a\n",
	} {
		f.Add([]byte(crlf(seed)))
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(data)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
