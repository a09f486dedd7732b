package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// unprivileged is the id under which PostgreSQL runs inside its user namespace when kb is root.
const unprivileged = 1000

// processAttributes lets PostgreSQL, which refuses root, run for a kb that is root: in a user namespace it has another
// id, while its files stay root's, wherever they lie.
func processAttributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: unprivileged, HostID: 0, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: unprivileged, HostID: 0, Size: 1}}
		attributes.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged, NoSetGroups: true}
	}
	return attributes
}

// isPostgres says whether a process is there, alive, and a PostgreSQL server; a zombie has no command line.
func isPostgres(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program, _, _ := bytes.Cut(line, []byte{0})
	return err == nil && filepath.Base(string(program)) == "postgres"
}
