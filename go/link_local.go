//go:build cgo && linux && !cuporep_stub && !cuporep_system

package cuporep

// #cgo LDFLAGS: ${SRCDIR}/libcuporep.a -lm -ldl -lpthread
import "C"
