// Proves a C1 file: prints each stage as it begins and the proof in hexadecimal digits. An interrupt cancels.
//
//	go run . C1_FILE SECTOR_NUMBER MINER_ACTOR_ID [PARAMETER_DIR]
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	cuporep "github.com/cuporep/cuporep/go"
)

// exitCodes are those of the command line tool.
var exitCodes = map[cuporep.Class]int{
	cuporep.ClassInput: 1, cuporep.ClassParameters: 3, cuporep.ClassResource: 4, cuporep.ClassCancelled: 5,
	cuporep.ClassInternal: 6,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		var failed *cuporep.Error
		if errors.As(err, &failed) {
			os.Exit(exitCodes[failed.Class])
		}
		os.Exit(2)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 3 && len(arguments) != 4 {
		return errors.New("usage: prove C1_FILE SECTOR_NUMBER MINER_ACTOR_ID [PARAMETER_DIR]")
	}
	c1, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	sector, err := strconv.ParseUint(arguments[1], 10, 64)
	if err != nil {
		return fmt.Errorf("sector number: %w", err)
	}
	miner, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(arguments[2], "f0"), "t0"), 10, 64)
	if err != nil {
		return fmt.Errorf("miner: %w", err)
	}
	config := cuporep.Config{}
	if len(arguments) == 4 {
		config.ParameterDir = arguments[3]
	}

	prover, err := cuporep.NewProver(config) // a program that proves more than once keeps it
	if err != nil {
		return err
	}
	defer prover.Close()
	request := cuporep.Request{
		C1:     c1,
		Sector: sector,
		Miner:  miner,
		Progress: func(event cuporep.Event) {
			if !event.Ended {
				fmt.Fprintf(os.Stderr, "%v\n", event.Stage)
			}
		},
	}
	proof, report, err := prover.ProvePoRep(ctx, request)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "made on %s in %v\n", report.Device, report.Total)
	if report.InsecureParameters {
		fmt.Fprintln(os.Stderr, "made with insecure test parameters: worth nothing")
	}
	fmt.Println(hex.EncodeToString(proof))
	return nil
}
