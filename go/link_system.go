//go:build cgo && linux && !cuporep_stub && cuporep_system

package cuporep

// #cgo LDFLAGS: -lcuporep -lm -ldl -lpthread
import "C"
