//go:build unix

package pdf

import "syscall"

// reserve returns size zero bytes that take memory when they are first written.
func reserve(size uint64) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func giveBack(data []byte) {
	_ = syscall.Munmap(data) // It fails only for what reserve did not return.
}
