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

// serves says whether a process is alive and is the PostgreSQL server of a cluster, in whose folder it then works; its pid
// may be another program's by now. A zombie has no command line. In doubt it says yes.
func serves(pid int, cluster string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	program, _, _ := bytes.Cut(line, []byte{0})
	if err != nil || filepath.Base(string(program)) != "postgres" {
		return false
	}
	works, worksErr := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	folder, folderErr := os.Stat(cluster)
	return worksErr != nil || folderErr != nil || os.SameFile(works, folder)
}
