//go:build cgo && linux && !cuporep_stub

package cuporep

// #include "bridge.h"
import "C"

import (
	"runtime/cgo"
	"sync"
	"sync/atomic"
)

// progress is the progress function of one call. The library never calls it twice at once.
type progress struct {
	function func(Event)
	failed   bool
}

// A panic must not reach the library's frames, so that it ends in the two functions below.

//export cuporepGoProgress
func cuporepGoProgress(user C.uintptr_t, event *C.cuporep_event) {
	progress := cgo.Handle(user).Value().(*progress)
	if progress.failed {
		return
	}
	defer func() {
		if recover() != nil {
			progress.failed = true
		}
	}()
	progress.function(Event{
		RequestID: C.GoString(event.request_id),
		Stage:     Stage(event.stage),
		Partition: int(event.partition),
		Ended:     event.ended != 0,
		Elapsed:   nanoseconds(event.elapsed_ns),
	})
}

// logSink is the log function of the process.
type logSink struct {
	function func(level LogLevel, target, message string)
	failed   atomic.Bool
}

//export cuporepGoLog
func cuporepGoLog(user C.uintptr_t, level C.int32_t, target, message *C.char) {
	sink := cgo.Handle(user).Value().(*logSink)
	if sink.failed.Load() {
		return
	}
	defer func() {
		if recover() != nil {
			sink.failed.Store(true)
		}
	}()
	sink.function(LogLevel(level), C.GoString(target), C.GoString(message))
}

// currentLog is the handle of the log function that the library has, or 0.
var currentLog struct {
	lock   sync.Mutex
	handle cgo.Handle
}

func nativeSetLog(level LogLevel, function func(level LogLevel, target, message string)) error {
	currentLog.lock.Lock()
	defer currentLog.lock.Unlock()
	var handle cgo.Handle
	if function != nil {
		handle = cgo.NewHandle(&logSink{function: function})
	}
	err := invoke(func(err *C.char, errCap C.size_t) C.int32_t {
		return C.cuporep_go_set_log(err, errCap, C.uintptr_t(handle), C.int32_t(level))
	})
	previous := currentLog.handle
	if err != nil {
		previous = handle
	} else {
		currentLog.handle = handle
	}
	if previous != 0 {
		previous.Delete()
	}
	return err
}
