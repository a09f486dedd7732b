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
	// dimensions is the length of the output's last axis.
	dimensions int
	device     embed.Device

	// open is read-locked by each run and locked by close only, so that runs never wait for one another.
	open   sync.RWMutex
	closed bool
}

// openSession loads a graph. Its first output must have the shape [texts, tokens, dimensions]; dimensions 0 accepts any.
// device is one of embed's; on embed.DeviceAuto a GPU that can't be used is no error.
func openSession(path string, dimensions, threads int, device string) (*session, error) {
	inputs, output, err := probe(path)
	if err != nil {
		return nil, err
	}
	shape := output.Dimensions
	if len(shape) != 3 || output.DataType != ort.TensorElementDataTypeFloat || shape[2] <= 0 {
		return nil, fmt.Errorf("output %q is %s %v, wanted float [texts, tokens, dimensions]",
			output.Name, output.DataType, shape)
	}
	if dimensions != 0 && int64(dimensions) != shape[2] {
		return nil, fmt.Errorf("output %q has %d dimensions, wanted %d", output.Name, shape[2], dimensions)
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
	return &session{dynamic: dynamic, inputs: inputs, dimensions: int(shape[2]), device: chosen}, nil
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

// run returns the token vectors of one text, one after the other: len(ids) x dimensions numbers. When ctx ends, the
// runtime is told to stop between two nodes of the graph, and ctx's error is returned.
func (s *session) run(ctx context.Context, ids []int64) ([]float32, error) {
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
		data := ids
		if name != "input_ids" {
			data = make([]int64, len(ids))
		}
		if name == "attention_mask" {
			for i := range data {
				data[i] = 1
			}
		}
		tensor, err := ort.NewTensor(ort.NewShape(1, int64(len(ids))), data)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, tensor)
	}
	output, err := ort.NewEmptyTensor[float32](ort.NewShape(1, int64(len(ids)), int64(s.dimensions)))
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
