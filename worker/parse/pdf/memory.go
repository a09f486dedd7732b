package pdf

import (
	"sync"

	"github.com/tetratelabs/wazero/experimental"
)

// memories gives PDFium's instances memory from the system, which takes what an instance touches and gives it back at
// its end. On Go's heap a growing memory is copied again and again, and the old copies wait for the collector: a file
// that needs 1 GiB took three.
type memories struct {
	mu    sync.Mutex
	ended int      // Instances that were ended from outside and may still be in a call.
	freed [][]byte // What is to be given back when there are none.
}

// Allocate implements experimental.MemoryAllocator.
func (m *memories) Allocate(_, size uint64) experimental.LinearMemory {
	data, err := reserve(size)
	if err != nil {
		return &heapMemory{size: size}
	}

	return &systemMemory{owner: m, data: data}
}

// hold keeps memory until release, for an instance that is ended while it may be in a call.
func (m *memories) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.ended++
}

// release says that the call is over.
func (m *memories) release() {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.ended--; m.ended > 0 {
		return
	}
	for _, data := range m.freed {
		giveBack(data)
	}
	m.freed = nil
}

func (m *memories) free(data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.ended > 0 {
		m.freed = append(m.freed, data)
	} else {
		giveBack(data)
	}
}

// systemMemory is an instance's memory, reserved up to its limit.
type systemMemory struct {
	owner *memories
	data  []byte
}

func (m *systemMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.data)) {
		return nil
	}

	return m.data[:size]
}

func (m *systemMemory) Free() {
	if m.data != nil {
		m.owner.free(m.data)
		m.data = nil
	}
}

// heapMemory stands in where the system reserves none.
type heapMemory struct {
	size uint64
	data []byte
}

func (m *heapMemory) Reallocate(size uint64) []byte {
	if size > m.size {
		return nil
	}
	if more := int(size) - len(m.data); more > 0 {
		m.data = append(m.data, make([]byte, more)...)
	}

	return m.data[:size]
}

func (m *heapMemory) Free() {}
