package report

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is an HdrHistogram of round trips in ns, as it is in the file: version 2 of the encoding, compressed, in base64,
// which all of HdrHistogram's implementations read. It stays so in memory, where it would be a hundred times as large.
type Histogram string

// EncodeHistogram makes one.
func EncodeHistogram(h *hdrhistogram.Histogram) (Histogram, error) {
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encoding a histogram: %w", err)
	}
	return Histogram(encoded), nil
}

// UnmarshalText takes a histogram from a file, if it is one.
func (h *Histogram) UnmarshalText(text []byte) error {
	if _, err := Histogram(text).Decode(); err != nil {
		return err
	}
	*h = Histogram(text)
	return nil
}

// Decode trusts nothing: reports come from other people. The library's own Decode panics on short input, believes any
// size, and unpacks whatever a few bytes may be compressed from.
func (h Histogram) Decode() (*hdrhistogram.Histogram, error) {
	decoded, err := decodeHistogram(string(h))
	if err != nil {
		return nil, fmt.Errorf("decoding a histogram: %w", err)
	}
	return decoded, nil
}

// From HdrHistogram's format, version 2; the low nibble of a cookie's second byte is the word size, which it does not use.
const (
	cookieMask        = ^uint32(0xf0)
	cookiePlain       = 0x1c849303
	cookieCompressed  = 0x1c849304
	histogramHeader   = 40
	maxUncompressed   = 4 << 20 // the largest real one is a hundredth of that
	maxHistogramValue = int64(3600e9)
	maxDigits         = 4
)

var errNoHistogram = errors.New("this is no compressed HdrHistogram of version 2")

func decodeHistogram(encoded string) (*hdrhistogram.Histogram, error) {
	outer, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(outer) < 8 {
		return nil, errNoHistogram
	}
	cookie, length := binary.BigEndian.Uint32(outer), binary.BigEndian.Uint32(outer[4:])
	if cookie&cookieMask != cookieCompressed || uint64(length) != uint64(len(outer)-8) {
		return nil, errNoHistogram
	}
	unpacked, err := zlib.NewReader(bytes.NewReader(outer[8:]))
	if err != nil {
		return nil, errNoHistogram
	}
	inner, err := io.ReadAll(io.LimitReader(unpacked, maxUncompressed+1))
	if err != nil || len(inner) < histogramHeader || len(inner) > maxUncompressed {
		return nil, errNoHistogram
	}
	payload := inner[histogramHeader:]
	if binary.BigEndian.Uint32(inner)&cookieMask != cookiePlain || uint64(binary.BigEndian.Uint32(inner[4:])) != uint64(len(payload)) {
		return nil, errNoHistogram
	}
	digits := binary.BigEndian.Uint32(inner[12:])
	lowest, highest := int64(binary.BigEndian.Uint64(inner[16:])), int64(binary.BigEndian.Uint64(inner[24:]))
	if digits < 1 || digits > maxDigits || lowest < 1 || lowest > 1e6 || highest < 2*lowest || highest > maxHistogramValue {
		return nil, fmt.Errorf("a histogram from %d to %d ns with %d digits: 1 ns to an hour and 1 to %d digits are possible", lowest, highest, digits, maxDigits)
	}
	snapshot := hdrhistogram.New(lowest, highest, int(digits)).Export()
	if err := fillCounts(snapshot.Counts, payload); err != nil {
		return nil, err
	}
	return hdrhistogram.Import(snapshot), nil
}

// fillCounts decodes the counts: variable-length numbers, of which a negative one stands for so many zeros.
func fillCounts(counts []int64, payload []byte) error {
	at, total := 0, int64(0)
	for len(payload) > 0 {
		n, size := zigZag(payload)
		if size == 0 {
			return errNoHistogram
		}
		payload = payload[size:]
		switch {
		case n < 0:
			if n < -int64(len(counts)-at) {
				return errors.New("a histogram has counts beyond its highest value")
			}
			at += int(-n)
		case at >= len(counts):
			return errors.New("a histogram has counts beyond its highest value")
		case n > math.MaxInt64-total:
			return errors.New("a histogram has more values than can be counted")
		default:
			counts[at] = n
			total += n
			at++
		}
	}
	return nil
}

// zigZag decodes a number of up to nine bytes, the ninth of which has eight bits; size 0 where it is cut off.
func zigZag(b []byte) (n int64, size int) {
	var value uint64
	for i := range min(9, len(b)) {
		if i == 8 {
			value |= uint64(b[i]) << 56
			return int64(value>>1) ^ -int64(value&1), 9
		}
		value |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return int64(value>>1) ^ -int64(value&1), i + 1
		}
	}
	return 0, 0
}
