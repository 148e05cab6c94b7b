package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tare/doctor"
)

type doctorOptions struct {
	selector
	output string
}

func newDoctorCommand() *cobra.Command {
	var options doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Tell what this kernel, these privileges and this container runtime allow",
		Long: `Tries each feature and tells, one per line, whether it works, and what to do if not. With --container, --pid or
--netns it looks at that container too.

Exit codes: 0 everything that tare needs is there; 1 something is not; 2 wrong arguments.`,
		Example: `  sudo tare doctor
  sudo tare doctor --container web -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), options, os.Stdout) },
	}
	flags := cmd.Flags()
	options.addTargetFlags(cmd)
	flags.StringVarP(&options.output, "output", "o", "text", "text or json")
	return cmd
}

func runDoctor(ctx context.Context, options doctorOptions, out io.Writer) error {
	if options.output != "text" && options.output != "json" {
		return usageError("-o %s: it is text or json", options.output)
	}
	findings := doctor.Examine(ctx)
	if options.named() > 0 {
		target, err := options.target(ctx)
		if err != nil {
			return err
		}
		findings = append(findings, doctor.ExamineTarget(target)...)
	}
	failed := 0
	for _, f := range findings {
		if f.Verdict == doctor.Fail {
			failed++
		}
	}
	if options.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			fmt.Fprintf(out, "%-5s %-20s %s\n", f.Verdict, f.Feature, f.Detail)
			if f.Remedy != "" {
				fmt.Fprintf(out, "%-5s %-20s -> %s\n", "", "", f.Remedy)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}
