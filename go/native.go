//go:build cgo && linux && !cuporep_stub

package cuporep

// #cgo CFLAGS: -std=c11 -Wall -Wextra
// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"runtime/cgo"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// errorBytes is the room for a message; longer ones are cut.
const errorBytes = 2048

// native is a prover handle of the library.
type native struct {
	handle *C.cuporep_prover
}

// checkVersions fails where the archive that was linked is not that of the header that this package was compiled with.
var checkVersions = sync.OnceValue(func() error {
	return compareVersions(C.CUPOREP_VERSION, C.GoString(C.cuporep_version()))
})

func compareVersions(header, library string) error {
	if header == library {
		return nil
	}
	return newError(CodeVersion, "the linked libcuporep.a has version %s, this package has %s; build both from the same "+
		"sources (make go)", library, header)
}

// invoke calls a function of the library that needs no context and turns its status and message into an error.
func invoke(call func(err *C.char, errCap C.size_t) C.int32_t) error {
	if err := checkVersions(); err != nil {
		return err
	}
	message := make([]byte, errorBytes)
	status := call((*C.char)(unsafe.Pointer(unsafe.SliceData(message))), errorBytes)
	if status == 0 {
		return nil
	}
	text, _, _ := strings.Cut(string(message), "\x00")
	return &Error{Class: Class(status / 100), Code: Code(status), Message: text}
}

func newNative(config *Config) (*native, error) {
	var handle *C.cuporep_prover
	parameters, cache := cString(config.ParameterDir), cString(config.CacheDir)
	names, err := namesOf(config.DeviceNames)
	if err != nil {
		return nil, err
	}
	err = invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_go_prover_new(&handle, err, errCap, charsOf(parameters), charsOf(cache),
			indicesOf(config.Devices), C.size_t(len(config.Devices)), C.int32_t(config.Policy),
			C.uint32_t(config.Threads), C.uint64_t(config.HostBytes), C.uint64_t(config.DeviceBytes),
			charsOf(names), C.uint64_t(config.GPUWorkers))
	})
	if err != nil {
		return nil, err
	}
	return &native{handle}, nil
}

func defaultNative() (*native, error) {
	var handle *C.cuporep_prover
	err := invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_prover_default(&handle, err, errCap)
	})
	if err != nil {
		return nil, err
	}
	return &native{handle}, nil
}

func (n *native) free() {
	C.cuporep_prover_free(n.handle)
	n.handle = nil
}

func (n *native) prove(ctx context.Context, request *Request, report *Report) ([]byte, error) {
	buffer := make([]byte, C.CUPOREP_PROOF_BYTES_MAX)
	var length C.size_t
	var made C.cuporep_report
	progressFailed := false
	names, err := namesOf(request.DeviceNames)
	if err != nil {
		return nil, err
	}
	err = withContext(ctx, request, func(call C.cuporep_go_call, id []byte) error {
		return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_go_prove(n.handle, bytesOf(buffer), C.size_t(len(buffer)), &length, &made, err, errCap, call,
				bytesOf(request.C1), C.size_t(len(request.C1)), charsOf(id),
				indicesOf(request.Devices), C.size_t(len(request.Devices)), charsOf(names))
		})
	}, &progressFailed)
	*report = reportOf(&made)
	report.ProgressFailed = report.ProgressFailed || progressFailed
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), buffer[:length]...), nil
}

func (n *native) check(ctx context.Context, request *Request) (*C1Info, error) {
	var info C.cuporep_c1_info
	err := withContext(ctx, request, func(call C.cuporep_go_call, id []byte) error {
		return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_go_check(n.handle, &info, err, errCap, call,
				bytesOf(request.C1), C.size_t(len(request.C1)), charsOf(id))
		})
	}, nil)
	if err != nil {
		return nil, err
	}
	return &C1Info{
		RegisteredProof: uint64(info.registered_proof),
		SectorSize:      uint64(info.sector_size),
		Partitions:      int(info.partitions),
		ProofLen:        int(info.proof_len),
		CommR:           *(*[32]byte)(unsafe.Pointer(&info.comm_r)),
		CommD:           *(*[32]byte)(unsafe.Pointer(&info.comm_d)),
	}, nil
}

func (n *native) verify(ctx context.Context, request *Request, proof []byte) error {
	return withContext(ctx, request, func(call C.cuporep_go_call, id []byte) error {
		return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_go_verify(n.handle, err, errCap, call,
				bytesOf(request.C1), C.size_t(len(request.C1)), charsOf(id), bytesOf(proof), C.size_t(len(proof)))
		})
	}, nil)
}

func (n *native) preload(ctx context.Context, sectorSize uint64) error {
	return withContext(ctx, &Request{}, func(call C.cuporep_go_call, _ []byte) error {
		return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_go_preload(n.handle, err, errCap, C.uint64_t(sectorSize), call)
		})
	}, nil)
}

func (n *native) evict(sectorSize uint64) error {
	return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_evict(n.handle, err, errCap, C.uint64_t(sectorSize))
	})
}

func (n *native) release() error {
	return invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_release(n.handle, err, errCap)
	})
}

func (n *native) shutdown(drain uint64) (stopped bool, err error) {
	var number C.int32_t
	err = invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_prover_shutdown(n.handle, &number, err, errCap, C.uint64_t(drain))
	})
	return number != 0, err
}

func (n *native) metrics() (string, error) {
	// More than the text of a prover with a few GPUs.
	buffer := make([]byte, 1<<14)
	for {
		var length C.size_t
		err := invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_prover_metrics(n.handle, (*C.char)(unsafe.Pointer(unsafe.SliceData(buffer))),
				C.size_t(len(buffer)), &length, err, errCap)
		})
		var failed *Error
		if errors.As(err, &failed) && failed.Code == CodeTextBuffer {
			// It may have grown by the next call.
			buffer = make([]byte, 2*length)
			continue
		}
		if err != nil {
			return "", err
		}
		return string(buffer[:length]), nil
	}
}

func nativeDevices() ([]Device, error) {
	var count C.size_t
	err := invoke(func(err *C.char, errCap C.size_t) C.int32_t { return C.cuporep_devices(&count, err, errCap) })
	if err != nil {
		return nil, err
	}
	devices := make([]Device, count)
	for index := range devices {
		device := C.cuporep_device{struct_size: C.sizeof_cuporep_device}
		err := invoke(func(err *C.char, errCap C.size_t) C.int32_t {
			return C.cuporep_device_info(&device, err, errCap, C.size_t(index))
		})
		if err != nil {
			return nil, err
		}
		devices[index] = Device{
			Name:   C.GoString(&device.name[0]),
			UUID:   C.GoString(&device.uuid[0]),
			Memory: uint64(device.memory),

			FreeMemory:        uint64(device.free_memory),
			Ordinal:           uint32(device.ordinal),
			ComputeCapability: uint32(device.compute_capability),
		}
	}
	return devices, nil
}

func nativeVersion() string  { return C.GoString(C.cuporep_version()) }
func nativeFeatures() string { return C.GoString(C.cuporep_features()) }

func nativeProofLen(registeredProof uint64) (int, error) {
	var length C.size_t
	err := invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_proof_len(&length, err, errCap, C.uint64_t(registeredProof))
	})
	return int(length), err
}

// withContext runs a call of the library that ends when the context does. What it passes on has no Go pointers but
// the request's id, NUL-ended.
func withContext(
	ctx context.Context, request *Request, run func(call C.cuporep_go_call, id []byte) error, progressFailed *bool,
) error {
	if ctx == nil {
		return newError(CodeArgument, "argument ctx: is nil")
	}
	if strings.ContainsRune(request.ID, 0) {
		return newError(CodeArgument, "argument ID: contains a NUL byte")
	}
	call := C.cuporep_go_call{
		sector_number:  C.uint64_t(request.Sector),
		miner_actor_id: C.uint64_t(request.Miner),
		policy:         C.int32_t(request.Policy),
		priority:       C.int32_t(request.Priority),
		miner_unknown:  flag(request.MinerUnknown),
		on_chain:       flag(!request.CircuitProofs),
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.has_deadline = 1
		// Rounded up: the context's deadline passes first.
		if left := time.Until(deadline); left > 0 {
			call.deadline_ms = C.uint64_t((left + time.Millisecond - 1) / time.Millisecond)
		}
	}
	if request.Progress != nil {
		progress := &progress{function: request.Progress}
		handle := cgo.NewHandle(progress)
		defer func() {
			handle.Delete()
			if progressFailed != nil {
				*progressFailed = progress.failed
			}
		}()
		call.progress = C.uintptr_t(handle)
	}
	if ctx.Done() != nil {
		token := C.cuporep_cancel_token_new()
		defer C.cuporep_cancel_token_free(token)
		call.cancel_token = token
		if ctx.Err() != nil {
			C.cuporep_cancel_token_cancel(token)
		} else {
			cancelled := make(chan struct{})
			stop := context.AfterFunc(ctx, func() {
				defer close(cancelled)
				C.cuporep_cancel_token_cancel(token)
			})
			defer func() {
				if !stop() {
					<-cancelled
				}
			}()
		}
	}
	return contextError(ctx, run(call, cString(request.ID)))
}

// contextError makes a deadline of what ended because the context's deadline cancelled it.
func contextError(ctx context.Context, err error) error {
	var failed *Error
	if errors.As(err, &failed) && failed.Code == CodeCancelled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newError(CodeDeadline, "deadline passed (%s)", failed.Message)
	}
	return err
}

func reportOf(report *C.cuporep_report) Report {
	stages := make(map[Stage]time.Duration)
	for stage, time := range report.stage_ns {
		if time != 0 {
			stages[Stage(stage)] = nanoseconds(time)
		}
	}
	return Report{
		RegisteredProof:    uint64(report.registered_proof),
		Partitions:         int(report.partitions),
		InsecureParameters: report.insecure_parameters != 0,
		Fallbacks:          int(report.fallbacks),
		FallbackReasons:    C.GoString(&report.fallback_reasons[0]),
		ProgressFailed:     report.progress_failed != 0,
		HostBytes:          uint64(report.host_bytes),
		DeviceBytes:        uint64(report.device_bytes),
		Total:              nanoseconds(report.total_ns),
		Stages:             stages,
		Device:             C.GoString(&report.device[0]),
	}
}

func nanoseconds(time_ C.uint64_t) time.Duration {
	return time.Duration(min(uint64(time_), math.MaxInt64))
}

func flag(set bool) C.int32_t {
	if set {
		return 1
	}
	return 0
}

// cString is the text with a NUL behind it.
func cString(text string) []byte { return append([]byte(text), 0) }

// namesOf is a list of device names as the library takes it.
func namesOf(names []string) ([]byte, error) {
	list := strings.Join(names, ",")
	if strings.ContainsRune(list, 0) {
		return nil, newError(CodeArgument, "argument DeviceNames: contains a NUL byte")
	}
	return cString(list), nil
}

func charsOf(text []byte) *C.char          { return (*C.char)(unsafe.Pointer(unsafe.SliceData(text))) }
func bytesOf(slice []byte) *C.uint8_t      { return (*C.uint8_t)(unsafe.SliceData(slice)) }
func indicesOf(slice []uint32) *C.uint32_t { return (*C.uint32_t)(unsafe.SliceData(slice)) }
