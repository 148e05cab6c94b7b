package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tare/eval"
)

type evalShowOptions struct {
	save, document string
}

func newEvalShowCommand() *cobra.Command {
	options := evalShowOptions{}
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Render a saved evaluation again",
		Long: `Prints what eval.json of a saved evaluation says. --save draws its page and figures again; --document replaces the part of a
Markdown file between <!-- eval: begin --> and <!-- eval: end --> with the report's own words.`,
		Example: `  tare eval show docs/results/2026-11-22/eval.json
  tare eval show --save docs/results/2026-11-22 --document docs/accuracy.md docs/results/2026-11-22/eval.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("tare eval show takes one file: eval.json of a saved evaluation")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runEvalShow(args[0], options, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&options.save, "save", "", "write the renderings and figures into this directory")
	cmd.Flags().StringVar(&options.document, "document", "", "renew the generated part of this Markdown file")
	return cmd
}

func runEvalShow(name string, options evalShowOptions, out io.Writer) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("showing an evaluation: %w", err)
	}
	defer file.Close()
	report, err := eval.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if options.save != "" {
		if err := report.Save(options.save); err != nil {
			return err
		}
	}
	if options.document != "" {
		return report.UpdateDocument(options.document)
	}
	return report.WriteText(out)
}
