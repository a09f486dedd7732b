package onnx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/kb-search/kb/embed"
)

// errClosed is what a run gets after close.
var errClosed = errors.New("model is closed")

// session is one loaded graph. Any number of runs go on at once: the runtime shares the weights and each run computes on
// its caller's thread.
type session struct {
	dynamic *ort.DynamicAdvancedSession
	// inputs are the graph's inputs in order, of the three that BERT has.
	inputs []string
	// output is the shape of the first output for so many sequences of so many tokens.
	output outputShape
	device embed.Device

	// open is read-locked by each run and locked by close only, so that runs never wait for one another.
	open   sync.RWMutex
	closed bool
}

type outputShape func(rows, length int64) ort.Shape

// openSession loads a graph whose first output check accepts. device is one of embed's; on embed.DeviceAuto a GPU that can't
// be used is no error.
func openSession(path string, check func(ort.InputOutputInfo) (outputShape, error), threads int, device string) (*session, error) {
	inputs, output, err := probe(path)
	if err != nil {
		return nil, err
	}
	shape, err := check(output)
	if err != nil {
		return nil, err
	}
	options, err := sessionOptions(threads)
	if err != nil {
		return nil, err
	}
	defer options.Destroy()
	chosen, err := chooseDevice(options, device)
	if err != nil {
		return nil, err
	}
	dynamic, err := ort.NewDynamicAdvancedSession(path, inputs, []string{output.Name}, options)
	if err != nil {
		return nil, err
	}
	return &session{dynamic: dynamic, inputs: inputs, output: shape, device: chosen}, nil
}

// chooseDevice adds the GPU to the options when it is wanted and can be used.
func chooseDevice(options *ort.SessionOptions, wanted string) (embed.Device, error) {
	if wanted == embed.DeviceCPU {
		return embed.Device{Name: embed.DeviceCPU, Reason: "KB_DEVICE is cpu"}, nil
	}
	err := appendCUDA(options)
	switch {
	case err == nil:
		return embed.Device{Name: embed.DeviceCUDA}, nil
	case wanted == embed.DeviceCUDA:
		return embed.Device{}, fmt.Errorf("use the GPU (KB_DEVICE is cuda): %w; KB_ONNXRUNTIME must name an ONNX Runtime that is built for CUDA", err)
	default:
		return embed.Device{Name: embed.DeviceCPU, Reason: "no GPU can be used: " + strings.TrimSpace(err.Error())}, nil
	}
}

func appendCUDA(options *ort.SessionOptions) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer func() { _ = cuda.Destroy() }()
	return options.AppendExecutionProviderCUDA(cuda)
}

// probe reads a graph's inputs and first output. It loads the graph unoptimised, which is much cheaper.
func probe(path string) ([]string, ort.InputOutputInfo, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, ort.InputOutputInfo{}, err
	}
	defer options.Destroy()
	if err := options.SetGraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll); err != nil {
		return nil, ort.InputOutputInfo{}, err
	}
	inputs, outputs, err := ort.GetInputOutputInfoWithOptions(path, options)
	if err != nil {
		return nil, ort.InputOutputInfo{}, err
	}
	var names []string
	for _, in := range inputs {
		if !slices.Contains([]string{"input_ids", "attention_mask", "token_type_ids"}, in.Name) {
			return nil, ort.InputOutputInfo{}, fmt.Errorf("graph asks for an input %q, which no BERT encoder has", in.Name)
		}
		names = append(names, in.Name)
	}
	if !slices.Contains(names, "input_ids") || len(outputs) == 0 {
		return nil, ort.InputOutputInfo{}, errors.New("graph has no input_ids or no output")
	}
	return names, outputs[0], nil
}

func sessionOptions(threads int) (*ort.SessionOptions, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		options.SetIntraOpNumThreads(threads),
		options.SetInterOpNumThreads(1),
		// Spinning threads double the CPU time and hold up everything else on a busy machine.
		options.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		// On processors without VNNI the fast int8 kernel overflows; with this the sums are exact on all, so that a vector
		// does not depend on the machine.
		options.AddSessionConfigEntry("session.x64quantprecision", "1"),
		options.SetCpuMemArena(true),
	)
	if err != nil {
		options.Destroy()
		return nil, err
	}
	return options, nil
}

// batch is some sequences of tokens, one after the other, each filled up to the same length.
type batch struct {
	rows, length int
	// ids are the tokens, mask has 1 for a token and 0 for what fills up, types has 1 for the second text of a pair.
	ids, mask, types []int64
}

func newBatch(rows, length int) batch {
	size := rows * length
	return batch{rows: rows, length: length, ids: make([]int64, size), mask: make([]int64, size), types: make([]int64, size)}
}

// single is one text, which needs no filling up.
func single(ids []int64) batch {
	b := newBatch(1, len(ids))
	copy(b.ids, ids)
	for i := range b.mask {
		b.mask[i] = 1
	}
	return b
}

// input is the data of the graph's input of that name, one of those that probe accepts.
func (b batch) input(name string) []int64 {
	switch name {
	case "attention_mask":
		return b.mask
	case "token_type_ids":
		return b.types
	default:
		return b.ids
	}
}

// run returns the graph's output. When ctx ends, the runtime is told to stop between two nodes of the graph, and ctx's error
// is returned.
func (s *session) run(ctx context.Context, b batch) ([]float32, error) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	inputs := make([]ort.Value, 0, len(s.inputs))
	defer func() {
		for _, in := range inputs {
			in.Destroy()
		}
	}()
	for _, name := range s.inputs {
		tensor, err := ort.NewTensor(ort.NewShape(int64(b.rows), int64(b.length)), b.input(name))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, tensor)
	}
	output, err := ort.NewEmptyTensor[float32](s.output(int64(b.rows), int64(b.length)))
	if err != nil {
		return nil, err
	}
	defer output.Destroy()
	options, err := ort.NewRunOptions()
	if err != nil {
		return nil, err
	}
	defer options.Destroy()

	terminated := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(terminated)
		_ = options.Terminate()
	})
	err = s.dynamic.RunWithOptions(inputs, []ort.Value{output}, options)
	if !stop() {
		<-terminated // options must outlive the call above
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return output.GetData(), nil
}

// close waits for the runs under way and frees the graph. It may be called again.
func (s *session) close() error {
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.dynamic.Destroy()
}
