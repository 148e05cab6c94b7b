package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tare/bench/page"
	"tare/bench/report"
)

// oneReport is the argument check of commands on one file.
func oneReport(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s takes one report: %s mine%s", cmd.CommandPath(), cmd.CommandPath(), report.Suffix)
	}
	return nil
}

func newBenchShowCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a saved report",
		Long: `Shows a report as it was shown when it was made. Verdicts are worked out anew from the rounds in the file; a file that was cut off or
changed is refused.`,
		Example: "  tare bench show mine.tare.json",
		Args:    oneReport,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return usageError("-o %s: it is text or json", output)
			}
			return withReport(args[0], cmd.OutOrStdout(), func(r *report.Report, out io.Writer) error {
				if output == "text" {
					return r.WriteText(out)
				}
				text, err := r.Encode()
				if err == nil {
					_, err = out.Write(text)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, or json: the report itself, with results worked out anew")
	return cmd
}

func newBenchExportCommand() *cobra.Command {
	var asCSV, asMarkdown bool
	cmd := &cobra.Command{
		Use:     "export FILE --csv|--md",
		Short:   "Write a saved report as a table for other programs, or for an issue",
		Long:    "Writes every run as a row of CSV (times are full round trips in us), or the results as Markdown.",
		Example: "  tare bench export mine.tare.json --csv > mine.csv\n  tare bench export mine.tare.json --md",
		Args:    oneReport,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asCSV == asMarkdown {
				return usageError("tare bench export: say --csv or --md")
			}
			write := (*report.Report).WriteCSV
			if asMarkdown {
				write = (*report.Report).WriteMarkdown
			}
			return withReport(args[0], cmd.OutOrStdout(), write)
		},
	}
	cmd.Flags().BoolVar(&asCSV, "csv", false, "one row for each run")
	cmd.Flags().BoolVar(&asMarkdown, "md", false, "the results as Markdown")
	return cmd
}

func newBenchHTMLCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "html FILE",
		Short: "Make one self-contained page of a saved report",
		Long: `Writes a page with the verdict in words, differences with their intervals, distributions down to their tails, and every round. It loads
nothing from elsewhere.`,
		Example: "  tare bench html mine.tare.json > mine.html",
		Args:    oneReport,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withReport(args[0], cmd.OutOrStdout(), func(r *report.Report, out io.Writer) error { return page.Write(out, r) })
		},
	}
}

// withReport reads a report and writes something of it, all or nothing.
func withReport(path string, out io.Writer, write func(*report.Report, io.Writer) error) error {
	r, err := report.Load(path)
	if err != nil {
		return reportError(err)
	}
	var text bytes.Buffer
	if err := write(r, &text); err != nil {
		return err
	}
	_, err = text.WriteTo(out)
	return err
}

// reportError adds the remedy.
func reportError(err error) error {
	switch {
	case errors.Is(err, report.ErrVersion):
		return fmt.Errorf("%w: use the tare that made it, or a later one", err)
	case errors.Is(err, report.ErrDamaged):
		return fmt.Errorf("%w: get it again from where it was made", err)
	case errors.Is(err, report.ErrForeign):
		return fmt.Errorf("%w: reports are made by: tare bench --save mine%s", err, report.Suffix)
	}
	return err
}

func newBenchCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare FILE FILE...",
		Short: "Compare saved reports: two arm by arm, more as a table by kernel",
		Long: `Compares what networks cost in several reports, each against its own baseline, and lists what of the machines differs and may matter. Reports whose units,
sizes, placements or tools differ are refused: their figures do not compare.`,
		Example: "  tare bench compare before.tare.json after.tare.json\n  tare bench compare docs/results/kernels/*.tare.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError("tare bench compare takes two reports or more: tare bench compare before%s after%s", report.Suffix, report.Suffix)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := report.LoadNamed(args)
			if err != nil {
				return reportError(err)
			}
			return report.WriteComparison(cmd.OutOrStdout(), all)
		},
	}
}

func newBenchKernelsCommand() *cobra.Command {
	var update string
	cmd := &cobra.Command{
		Use:   "kernels DIR",
		Short: "Make a table by kernel out of a directory of reports",
		Long:  "Makes Markdown tables of all reports in a directory: a row for each, oldest kernel first. --update puts them into a document, between its marks.",
		Example: `  tare bench kernels docs/results/kernels
  tare bench kernels docs/results/kernels --update docs/kernels.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("tare bench kernels takes one directory: tare bench kernels docs/results/kernels")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			tables, err := report.KernelTables(args[0])
			if err != nil {
				return reportError(err)
			}
			if update == "" {
				_, err = io.WriteString(cmd.OutOrStdout(), tables)
				return err
			}
			document, err := os.ReadFile(update)
			if err != nil {
				return fmt.Errorf("--update: %w", err)
			}
			text, err := report.ReplaceGenerated(string(document), tables)
			if err != nil {
				return fmt.Errorf("--update %s: %w", update, err)
			}
			return report.WriteFile(update, []byte(text))
		},
	}
	cmd.Flags().StringVar(&update, "update", "", "the document to put the tables into")
	return cmd
}
