package onnx_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

func BenchmarkQuery(b *testing.B) {
	embedder := onnxtest.Real(b)
	text := "how do I reset the pressure sensor after error E-4711 in hall seven?"
	for b.Loop() {
		embedOne(b, embedder, text)
	}
}

func BenchmarkPassage(b *testing.B) {
	embedder := onnxtest.Real(b)
	texts := []string{passage(190)}
	for b.Loop() {
		if _, err := embedder.Embed(b.Context(), embed.Passage, texts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPassages is one call with many texts, as ingestion makes it.
func BenchmarkPassages(b *testing.B) {
	embedder := onnxtest.Real(b)
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = passage(190 + i%5)
	}
	for b.Loop() {
		if _, err := embedder.Embed(b.Context(), embed.Passage, texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
}

// BenchmarkMemory embeds 20,000 texts of 1 to 256 tokens and reports the process's resident memory on the way: it must
// not grow. It takes minutes, whatever -benchtime says.
func BenchmarkMemory(b *testing.B) {
	embedder := onnxtest.Real(b)
	texts := make([]string, 100)
	for b.Loop() {
		for done := 0; done < 20_000; done += len(texts) {
			for i := range texts {
				texts[i] = passage(1 + (done+i*37)%255)
			}
			if _, err := embedder.Embed(b.Context(), embed.Passage, texts); err != nil {
				b.Fatal(err)
			}
			if done == 4_900 || done == 9_900 {
				b.ReportMetric(residentMB(b), fmt.Sprintf("MB-at-%d", done+100))
			}
		}
		b.ReportMetric(residentMB(b), "MB-at-20000")
	}
}

// residentMB returns the process's resident memory in MB of 10^6 bytes.
func residentMB(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skipf("resident memory is read from Linux's /proc: %v", err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(data), &total, &resident); err != nil {
		b.Fatal(err)
	}
	return float64(resident*os.Getpagesize()) / 1e6
}
