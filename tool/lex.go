package tool

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// millis reads a time in ms as the tools print it: "0.123", "12.3", "151", and
// fping's "1.234e+06". Nothing else that ParseFloat knows (NaN, Inf, hex,
// signs) is an RTT. The resolution is what one unit of the last digit is worth.
func millis(token string) (us, resolutionUs float64, ok bool) {
	mantissa, exponent, scientific := strings.Cut(token, "e+")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if !digits(whole, 12) || (fraction != "" && !digits(fraction, 9)) {
		return 0, 0, false
	}
	scale := 0
	if scientific {
		if !digits(exponent, 2) {
			return 0, 0, false
		}
		scale, _ = strconv.Atoi(exponent)
	}
	value, err := strconv.ParseFloat(token, 64)
	if err != nil || value > 1e12 { // some 30 years: not an RTT
		return 0, 0, false
	}
	resolutionUs = 1000 * math.Pow10(scale-len(fraction))
	// Round the binary product back onto the digits that were printed.
	if resolutionUs >= 1 {
		return math.Round(value*1000/resolutionUs) * resolutionUs, resolutionUs, true
	}
	return value * 1000, resolutionUs, true
}

// digits reports whether s is one to most decimal digits.
func digits(s string, most int) bool {
	if len(s) == 0 || len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// leadingInt cuts a decimal number off the front of s.
func leadingInt(s string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if !digits(s[:i], 10) {
		return 0, s, false
	}
	n, err := strconv.Atoi(s[:i])
	return n, s[i:], err == nil
}

// untimestamped takes off what -D of ping and fping puts before a line:
// "[1795294211.853786] ".
func untimestamped(s string) string {
	if !strings.HasPrefix(s, "[") {
		return s
	}
	stamp, rest, ok := strings.Cut(s[1:], "] ")
	seconds, fraction, dotted := strings.Cut(stamp, ".")
	if !ok || !dotted || !digits(seconds, 19) || !digits(fraction, 9) {
		return s
	}
	return rest
}

// maxName is longer than any target a tool shows: a DNS name has up to 253
// characters, and fping may put an address after it.
const maxName = 400

// host reads "name", "address" or "name (address)".
func host(s string) (name string, addr netip.Addr) {
	name = s
	if open := strings.LastIndex(s, " ("); open >= 0 && strings.HasSuffix(s, ")") {
		name = s[:open]
		s = s[open+2 : len(s)-1]
	}
	return name, address(s)
}

// address is the zero Addr where s is none.
func address(s string) netip.Addr {
	if len(s) > 64 { // the longest address, with a zone as long as an interface's name
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(s)
	return addr
}

// visible is what a terminal shows of a line: what follows its last carriage
// return. ping begins the line that answers SIGQUIT with one, to write over
// the terminal's "^\".
func visible(line string) string {
	return line[strings.LastIndexByte(line, '\r')+1:]
}
