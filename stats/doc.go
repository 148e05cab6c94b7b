// Package stats is the statistics of tare's measurements.
//
// The sample is the round, never the message: messages of one run share its luck (which CPU, which cache lines, who
// else was running), so an interval made from them is far too narrow. On published data of Docker's bridge the standard
// error within a run was 0.0001 us while runs differed by 0.020 us: a confidence interval over messages would have been
// some 190 times too narrow. So each round is reduced to one number per arm (Median, MedianOfRounded, Mean), arms of one round are
// paired (Differences, Ratios), and Bootstrap says how sure the result over rounds is. Order keeps a drift of the
// machine from looking like a difference between arms. Nothing here drops a sample, a tail least of all.
package stats
