// XXH3-64 of xxHash 0.8 with a secret of 192 bytes and no seed, written out in Go. Knows nothing of prompts.

package pure

import (
	"encoding/binary"
	"math/bits"
)

const (
	secretBytes = 192

	prime32x1 = 0x9E3779B1
	prime32x2 = 0x85EBCA77
	prime32x3 = 0xC2B2AE3D
	prime64x1 = 0x9E3779B185EBCA87
	prime64x2 = 0xC2B2AE3D27D4EB4F
	prime64x3 = 0x165667B19E3779F9
	prime64x4 = 0x85EBCA77C2B2AE63
	prime64x5 = 0x27D4EB2F165667C5
	primeMix1 = 0x165667919E3779F9
	primeMix2 = 0x9FB21C651E98DF25

	stripeBytes     = 64
	stripesPerBlock = (secretBytes - stripeBytes) / 8
	longBlockBytes  = stripeBytes * stripesPerBlock
)

func u32(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// fold is the high half of a 128-bit product, exclusive or the low half.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func avalanche(h uint64) uint64 {
	h ^= h >> 37
	h *= primeMix1
	return h ^ h>>32
}

func avalancheXXH64(h uint64) uint64 {
	h ^= h >> 33
	h *= prime64x2
	h ^= h >> 29
	h *= prime64x3
	return h ^ h>>32
}

// xxh3 hashes any number of bytes.
func xxh3(data []byte, secret *[secretBytes]byte) uint64 {
	switch n := len(data); {
	case n > 240:
		return hashLong(data, secret)
	case n > 128:
		return hash129to240(data, secret)
	case n > 16:
		return hash17to128(data, secret)
	case n > 8:
		low := u64(data) ^ (u64(secret[24:]) ^ u64(secret[32:]))
		high := u64(data[n-8:]) ^ (u64(secret[40:]) ^ u64(secret[48:]))
		return avalanche(uint64(n) + bits.ReverseBytes64(low) + high + fold(low, high))
	case n >= 4:
		h := (u32(data[n-4:]) + u32(data)<<32) ^ (u64(secret[8:]) ^ u64(secret[16:]))
		h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
		h *= primeMix2
		h ^= h>>35 + uint64(n)
		h *= primeMix2
		return h ^ h>>28
	case n > 0:
		combined := uint64(data[0])<<16 | uint64(data[n>>1])<<24 | uint64(data[n-1]) | uint64(n)<<8
		return avalancheXXH64(combined ^ (u32(secret[:]) ^ u32(secret[4:])))
	}
	return avalancheXXH64(u64(secret[56:]) ^ u64(secret[64:]))
}

func mix16(data, secret []byte) uint64 {
	return fold(u64(data)^u64(secret), u64(data[8:])^u64(secret[8:]))
}

func hash17to128(data []byte, secret *[secretBytes]byte) uint64 {
	n := len(data)
	acc := uint64(n) * prime64x1
	for at := (n - 1) / 32; at >= 0; at-- {
		acc += mix16(data[16*at:], secret[32*at:])
		acc += mix16(data[n-16*(at+1):], secret[32*at+16:])
	}
	return avalanche(acc)
}

func hash129to240(data []byte, secret *[secretBytes]byte) uint64 {
	const firstRounds, startOffset, lastOffset = 8, 3, 136 - 17
	n := len(data)
	acc := uint64(n) * prime64x1
	for at := range firstRounds {
		acc += mix16(data[16*at:], secret[16*at:])
	}
	acc = avalanche(acc)
	for at := firstRounds; at < n/16; at++ {
		acc += mix16(data[16*at:], secret[16*(at-firstRounds)+startOffset:])
	}
	return avalanche(acc + mix16(data[n-16:], secret[lastOffset:]))
}

// accumulate takes one stripe in; lane by lane, so that the compiler keeps the lanes in registers.
func accumulate(acc *[8]uint64, data []byte, secret []byte) {
	data, secret = data[:64:64], secret[:64:64]
	for lane := 0; lane < 8; lane += 2 {
		first, second := u64(data[8*lane:]), u64(data[8*lane+8:])
		firstKey, secondKey := first^u64(secret[8*lane:]), second^u64(secret[8*lane+8:])
		acc[lane] += second + (firstKey&0xFFFFFFFF)*(firstKey>>32)
		acc[lane+1] += first + (secondKey&0xFFFFFFFF)*(secondKey>>32)
	}
}

func hashLong(data []byte, secret *[secretBytes]byte) uint64 {
	acc := [8]uint64{prime32x3, prime64x1, prime64x2, prime64x3, prime64x4, prime32x2, prime64x5, prime32x1}
	n := len(data)
	blocks := (n - 1) / longBlockBytes
	for block := range blocks {
		from := data[block*longBlockBytes:]
		for stripe := range stripesPerBlock {
			accumulate(&acc, from[stripe*stripeBytes:], secret[stripe*8:])
		}
		for lane := range acc {
			value := acc[lane]
			value ^= value >> 47
			value ^= u64(secret[secretBytes-stripeBytes+8*lane:])
			acc[lane] = value * prime32x1
		}
	}
	rest := data[blocks*longBlockBytes:]
	for stripe := range (len(rest) - 1) / stripeBytes {
		accumulate(&acc, rest[stripe*stripeBytes:], secret[stripe*8:])
	}
	accumulate(&acc, data[n-stripeBytes:], secret[secretBytes-stripeBytes-7:])
	h := uint64(n) * prime64x1
	for pair := range 4 {
		h += fold(acc[2*pair]^u64(secret[11+16*pair:]), acc[2*pair+1]^u64(secret[11+16*pair+8:]))
	}
	return avalanche(h)
}
