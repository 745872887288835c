// The keyed limiter of a Node program: rate-limiter-flexible's RateLimiterMemory.
// Takes the number of keys; the protocol is that of bench/peer_process.h.
import { createInterface } from 'node:readline';
import limiters from 'rate-limiter-flexible';

// Fifty requests in flight: awaiting each by itself is less than half as fast.
const IN_FLIGHT = 50;

const keys = Number(process.argv[2]);
if (!Number.isInteger(keys) || keys <= 0) {
  console.error('rlf: usage: rlf.mjs KEYS');
  process.exit(1);
}

// 20 characters, as everywhere, made in the cheapest way that V8 was found to have.
const makeKey = (id) => 'usr:aaaaaaaa' + (10_000_000 + id);

const limiter = new limiters.RateLimiterMemory({ points: 1e9, duration: 24 * 3600 });

// A denial rejects, and then the process ends with an error: every request must be admitted.
async function decide(count, nextId) {
  for (let done = 0; done < count; done += IN_FLIGHT) {
    const flight = [];
    for (let i = Math.min(IN_FLIGHT, count - done); i > 0; i--) {
      flight.push(limiter.consume(makeKey(nextId())));
    }
    await Promise.all(flight);
  }
}

let next = 0;
await decide(keys, () => next++);
console.log('ready');

for await (const line of createInterface({ input: process.stdin })) {
  const start = process.hrtime.bigint();
  await decide(Number(line), () => Math.floor(Math.random() * keys));
  console.log(String(process.hrtime.bigint() - start));
}
