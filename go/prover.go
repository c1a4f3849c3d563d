package cuporep

import (
	"context"
	"math"
	"strings"
	"sync"
)

// Prover makes proofs and keeps parameters and circuits between calls.
type Prover struct {
	native *native

	lock   sync.Mutex
	calls  int
	closed bool
}

// NewProver makes a prover of its own. It starts threads and loads nothing yet. Close frees it.
func NewProver(config Config) (*Prover, error) {
	for name, text := range map[string]string{"ParameterDir": config.ParameterDir, "CacheDir": config.CacheDir} {
		if strings.ContainsRune(text, 0) {
			return nil, newError(CodeArgument, "argument %s: contains a NUL byte", name)
		}
	}
	native, err := newNative(&config)
	if err != nil {
		return nil, err
	}
	return &Prover{native: native}, nil
}

// Close frees the prover when the calls that are using it have returned; it does not wait for them. Later calls fail
// with CodeClosed.
func (p *Prover) Close() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.closed {
		p.closed = true
		p.freeIfUnused()
	}
}

func (p *Prover) freeIfUnused() {
	if p.closed && p.calls == 0 {
		p.native.free()
	}
}

// use runs work with the library's handle, which stays until it returns.
func (p *Prover) use(work func(*native) error) error {
	p.lock.Lock()
	if p.closed {
		p.lock.Unlock()
		return newError(CodeClosed, "the prover is closed")
	}
	p.calls++
	p.lock.Unlock()
	defer func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.calls--
		p.freeIfUnused()
	}()
	return work(p.native)
}

// ProvePoRep makes a seal proof: checks C1 and the parameters, waits until memory and a device are free, proves every
// partition, verifies the bytes. The report is there on failure too.
//
// Cancelling the context or passing its deadline ends the call soon, with nothing left behind.
func (p *Prover) ProvePoRep(ctx context.Context, request Request) (proof []byte, report *Report, err error) {
	report = &Report{}
	err = p.use(func(n *native) error {
		proof, err = n.prove(ctx, &request, report)
		return err
	})
	return proof, report, err
}

// Check checks C1 completely: form, counts, elements, ids, challenges, every hash. It needs no parameters.
func (p *Prover) Check(ctx context.Context, request Request) (info *C1Info, err error) {
	err = p.use(func(n *native) error {
		info, err = n.check(ctx, &request)
		return err
	})
	return info, err
}

// Verify verifies the proofs of the partitions, 192 bytes each, for the ids of C1, which is checked first. Without an
// error the proof is valid; CodeProofInvalid and CodeProofForm are what a wrong one gives.
func (p *Prover) Verify(ctx context.Context, request Request, proof []byte) error {
	return p.use(func(n *native) error { return n.verify(ctx, &request, proof) })
}

// Preload opens, checks and loads the parameters of a sector size (in bytes) and loads or records its circuit, so that
// the first proof need not; on all devices that the prover uses. It waits as a proof does.
func (p *Prover) Preload(ctx context.Context, sectorSize uint64) error {
	return p.use(func(n *native) error { return n.preload(ctx, sectorSize) })
}

// Evict forgets the parameters and the circuit of a sector size; a proof that is being made keeps them until it ends.
func (p *Prover) Evict(sectorSize uint64) error {
	return p.use(func(n *native) error { return n.evict(sectorSize) })
}

// Release gives back all memory that is kept between proofs, and all memory of devices, also in the middle of a proof:
// within 500 ms it is free when this returns.
//
// A proof that was interrupted waits for a second, then takes the device again when its turn comes, loads again and makes
// anew what was interrupted, within its call; so do calls that waited already. Their contexts end them meanwhile. Calls
// that begin after this returned may take the device at once. A proof on the CPU keeps what it needs until it ends.
func (p *Prover) Release() error {
	return p.use(func(n *native) error { return n.release() })
}

// Shutdown ends the prover's work: it accepts no more calls, lets those in progress, waiting ones included, end for as
// long as the context lasts, stops the rest (which takes at most half a second), and gives everything back. Refused and
// stopped calls fail with CodeShutDown. It returns when no call is in progress any more; stopped says whether any had to
// be. A context without end waits as long as they take; one that is over stops all of them now. Close is still to be
// called.
//
// It must not be called from a progress function.
func (p *Prover) Shutdown(ctx context.Context) (stopped bool, err error) {
	if ctx == nil {
		return false, newError(CodeArgument, "argument ctx: is nil")
	}
	err = p.use(func(n *native) error {
		if ctx.Done() == nil {
			stopped, err = n.shutdown(math.MaxUint64)
			return err
		}
		// Drains on a thread of its own; a second shutdown stops what is left.
		type outcome struct {
			stopped bool
			err     error
		}
		drained := make(chan outcome, 1)
		go func() {
			stopped, err := n.shutdown(math.MaxUint64)
			drained <- outcome{stopped, err}
		}()
		select {
		case end := <-drained:
			stopped, err = end.stopped, end.err
			return err
		case <-ctx.Done():
		}
		stopped, err = n.shutdown(0)
		<-drained
		return err
	})
	return stopped, err
}

// Metrics says what the prover has done and how it is: counters, histograms and gauges in Prometheus' text format
// (version 0.0.4). It is cheap and waits for no proof. The module in the folder prometheus has a collector for
// client_golang.
func (p *Prover) Metrics() (text string, err error) {
	err = p.use(func(n *native) error {
		text, err = n.metrics()
		return err
	})
	return text, err
}

// process is the prover of the whole process.
var process struct {
	lock   sync.Mutex
	prover *Prover
}

// Default returns the prover that the functions of the package use, made on first use from the environment. It should
// not be closed.
func Default() (*Prover, error) {
	process.lock.Lock()
	defer process.lock.Unlock()
	if process.prover == nil {
		native, err := defaultNative()
		if err != nil {
			return nil, err
		}
		process.prover = &Prover{native: native}
	}
	return process.prover, nil
}
