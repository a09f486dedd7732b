package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// environment guards the one ONNX runtime that a process can load.
var environment struct {
	sync.Mutex
	library string
}

// loadRuntime loads libonnxruntime from a path, once per process. A second path is an error, as is a file that is not
// there; after a failure another path may be tried.
func loadRuntime(library string) error {
	if library == "" {
		return fmt.Errorf("load ONNX runtime: no path of libonnxruntime is set")
	}
	library, err := filepath.Abs(library)
	if err != nil {
		return fmt.Errorf("load ONNX runtime: %w", err)
	}
	environment.Lock()
	defer environment.Unlock()
	if environment.library == library {
		return nil
	}
	if environment.library != "" {
		return fmt.Errorf("load ONNX runtime %s: this process already runs %s", library, environment.library)
	}
	if _, err := os.Stat(library); err != nil {
		return fmt.Errorf("load ONNX runtime: %w", err)
	}
	ort.SetSharedLibraryPath(library)
	// Errors come back as values; the runtime would print them, and each cancelled run, to stderr too.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return fmt.Errorf("load ONNX runtime %s: %w", library, err)
	}
	environment.library = library
	return nil
}
