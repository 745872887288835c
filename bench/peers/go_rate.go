// The keyed limiter of a Go program: golang.org/x/time/rate in a map behind a mutex.
// Takes the number of keys; the protocol is that of bench/peer_process.h.
package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

type keyed struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// The key comes as bytes so that looking it up needs no copy; only a new key is copied.
func (k *keyed) allow(key []byte) bool {
	k.mu.Lock()
	limiter, known := k.limiters[string(key)]
	if !known {
		limiter = rate.NewLimiter(rate.Every(30*time.Second), 1000000)
		k.limiters[string(key)] = limiter
	}
	k.mu.Unlock()
	return limiter.Allow()
}

// The same 20 bytes as MakeKey in bench/workload.h.
func makeKey(id uint64, text []byte) {
	copy(text, "usr:aaaaaaaa")
	for i := 0; i < 8; i++ {
		text[12+i] = 'a' + byte(id>>(4*i)&15)
	}
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, "go_rate:", reason)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 2 {
		fail("usage: go_rate KEYS")
	}
	keys, err := strconv.ParseUint(os.Args[1], 10, 32)
	if err != nil || keys == 0 {
		fail("KEYS must be a whole number above 0")
	}
	all := &keyed{limiters: make(map[string]*rate.Limiter)}
	key := make([]byte, 20)
	for id := uint64(0); id < keys; id++ {
		makeKey(id, key)
		all.allow(key)
	}
	fmt.Println("ready")

	state := uint64(1)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		count, err := strconv.Atoi(strings.TrimSpace(input.Text()))
		if err != nil {
			fail("not a number of decisions: " + input.Text())
		}
		admitted := 0
		start := time.Now()
		for i := 0; i < count; i++ {
			state += 0xa0761d6478bd642f
			high, low := bits.Mul64(state, state^0xe7037ed1a0b428db)
			id, _ := bits.Mul64(high^low, keys)
			makeKey(id, key)
			if all.allow(key) {
				admitted++
			}
		}
		taken := time.Since(start)
		if admitted != count {
			fail("a request was denied")
		}
		fmt.Println(taken.Nanoseconds())
	}
}
