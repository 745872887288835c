// weir for Node.
//
//   const {Limiter} = require('weir');
//   const limiter = new Limiter('100/min burst 20');
//   const decision = limiter.check('user:42');
//   if (!decision.allowed) reply429(decision.retryAfterMs);
//
// Calls are synchronous: a decision takes less than any promise would. A worker thread has limiters
// of its own, since handles cannot be sent to it; so has each process of a cluster. index.d.ts
// describes what is exported.
'use strict';

const native = require('./weir.node');

const OVERFLOW = ['sketch', 'deny', 'allow'];
const KEYS = ['text', 'binary'];
const MODES = ['admit', 'count-always', 'up-to', 'dry-run'];
const PRECISIONS = ['exact', 'sketch'];
const SETTLED = ['settled', 'before', 'gone', 'refused'];
const MANY_MAX = 65536;
const TOP_KEYS_MAX = 4096;

// Where the addon leaves its answers: making an object through N-API costs more than deciding.
const answer = new DataView(native.answer);
const little = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

function indexIn(name, value, choices) {
  const index = choices.indexOf(value);
  if (index < 0) {
    throw new TypeError(`${name}: ${value} is not allowed; choose ${choices.join(', ')}`);
  }
  return index;
}

function wholeNumber(name, value, least = -(2 ** 53), most = 2 ** 53) {
  if (!Number.isSafeInteger(value)) {
    throw new TypeError(`${name}: ${value} is not allowed; pass a whole number`);
  }
  if (value < least || value > most) {
    throw new RangeError(`${name}: ${value} is not allowed; choose from ${least} to ${most}`);
  }
  return value;
}

// As nanoseconds. What a double does not hold exactly is longer than any lease may be.
function nanoseconds(name, milliseconds) {
  const value = Math.round(milliseconds * 1e6);
  if (typeof milliseconds !== 'number' || !(Math.abs(value) <= 2 ** 62)) {
    throw new TypeError(`${name}: ${milliseconds} is not allowed; pass milliseconds`);
  }
  return value;
}

function unsigned64(name, value) {
  const wide = BigInt(value);
  if (BigInt.asUintN(64, wide) !== wide) {
    throw new RangeError(`${name}: ${value} is not allowed; choose from 0 to 2^64 - 1`);
  }
  return wide;
}

function percent(name, value) {
  return BigInt(wholeNumber(name, value, 0, 100));
}

function refuseOthers(others, because) {
  const [stray] = Object.keys(others);
  if (stray !== undefined) throw new TypeError(`${stray}: ${because}`);
}

// In the shape of the C structs: numbers are BigInts, choices their index.
function storeOptions({budgetBytes = 0, maxSkewMs = 0, fleetSecret = 0n, overflow = 'sketch',
  keys = 'text', hugePages = true, recordPercent = 0, widePercent = 0, sketchPercent = 0,
  hotKeys = true, ...others}) {
  refuseOthers(others, 'not an option');
  return {
    budgetBytes: BigInt(wholeNumber('budgetBytes', budgetBytes, 0)),
    maxSkewNs: BigInt(nanoseconds('maxSkewMs', maxSkewMs)),
    fleetSecret: unsigned64('fleetSecret', fleetSecret),
    overflow: BigInt(indexIn('overflow', overflow, OVERFLOW)),
    keys: BigInt(indexIn('keys', keys, KEYS)),
    hugePages: hugePages ? 0n : 1n,
    recordPercent: percent('recordPercent', recordPercent),
    widePercent: percent('widePercent', widePercent),
    sketchPercent: percent('sketchPercent', sketchPercent),
    hotKeys: hotKeys ? 0n : 1n,
  };
}

function limiterOptions(precision, topKeys, topKeysSample) {
  return {
    precision: BigInt(indexIn('precision', precision, PRECISIONS)),
    topKeys: BigInt(wholeNumber('topKeys', topKeys, 0, TOP_KEYS_MAX)),
    topKeysSample: BigInt(wholeNumber('topKeysSample', topKeysSample, 1, 2 ** 20)),
  };
}

// In two halves, because a BigInt is made on the heap. Exact up to 104 days, near enough beyond.
function milliseconds(view, offset) {
  const high = view.getInt32(little ? offset + 4 : offset, little);
  const low = view.getUint32(little ? offset : offset + 4, little);
  return (high * 2 ** 32 + low) / 1e6;
}

function copyOf(offset, length) {
  return new Uint8Array(native.answer.slice(offset, offset + length));
}

class Decision {
  constructor(view, offset) {
    this.retryAfterMs = milliseconds(view, offset);
    this.resetAfterMs = milliseconds(view, offset + 8);
    this.limit = view.getUint32(offset + 16, little);
    this.remaining = view.getUint32(offset + 20, little);
    this.charged = view.getUint32(offset + 24, little);
    this.allowed = view.getUint8(offset + 31) === 1;
    this.outcome = native.outcomes[view.getUint8(offset + 28)];
    this.basis = native.bases[view.getUint8(offset + 29)];
    this.problem = native.problems[view.getUint8(offset + 30)];
  }

  // How long to wait before starting; 0 unless the quota is a queue.
  get startAfterMs() {
    return this.allowed ? this.retryAfterMs : 0;
  }
}

function lastDecision() {
  return new Decision(answer, 0);
}

// What is held: for Limiter.release and renew.
class Hold {
  #bytes;

  constructor(bytes) {
    this.#bytes = bytes;
    this.fence = new DataView(bytes.buffer).getBigUint64(native.receiptSize, little);
  }

  static bytesOf(hold) {
    if (!(hold instanceof Hold)) throw new TypeError('hold: must be one that acquire returned');
    return hold.#bytes;
  }
}

// Memory of a fixed size for several limiters: new Store({budgetBytes: 16 << 20}).
class Store {
  #handle;

  constructor(options = {}) {
    this.#handle = native.createStore(storeOptions(options));
  }

  static handleOf(store) {
    if (!(store instanceof Store)) throw new TypeError('store: must be a Store');
    return store.#handle;
  }
}

// A quota counted by key, on a store ({store}) or with memory of its own (options as for Store).
class Limiter {
  #handle;

  constructor(quota, {store, precision = 'exact', topKeys = 0, topKeysSample = 64,
    ...options} = {}) {
    const own = limiterOptions(precision, topKeys, topKeysSample);
    if (store === undefined) {
      this.#handle = native.createLimiter(quota, storeOptions(options), own);
    } else {
      refuseOthers(options, 'set it on the store');
      this.#handle = native.createLimiter(quota, Store.handleOf(store), own);
    }
  }

  // Takes `cost` units or none; 0 only looks. A key is a string or a Uint8Array.
  check(key, cost = 1) {
    native.check(this.#handle, key, wholeNumber('cost', cost));
    return lastDecision();
  }

  // check(key, cost).allowed, without the object.
  allows(key, cost = 1) {
    return native.check(this.#handle, key, wholeNumber('cost', cost)) === 1;
  }

  // A decision for each key, in order, as check would one after the other.
  checkMany(keys, cost = 1) {
    const plain = Array.from(keys);
    if (plain.length > MANY_MAX) {
      throw new RangeError(`keys: ${plain.length} at once is not allowed; the most is ${MANY_MAX}`);
    }
    const view = new DataView(native.checkMany(this.#handle, plain, wholeNumber('cost', cost)));
    return plain.map((_, i) => new Decision(view, 32 * i));
  }

  // A decision with a receipt for giveBack. Modes: admit, count-always, up-to, dry-run.
  charge(key, cost = 1, mode = 'admit') {
    native.charge(this.#handle, key, wholeNumber('cost', cost), indexIn('mode', mode, MODES));
    return Object.assign(lastDecision(), {receipt: copyOf(native.receiptAt, native.receiptSize)});
  }

  takeUpTo(key, most) {
    return this.charge(key, most, 'up-to');
  }

  // The units given back, as far as they were still owed. A receipt counts once.
  giveBack(receipt) {
    return native.giveBack(this.#handle, receipt);
  }

  // Starts a key anew, whatever it owes; false: there was nothing to forget.
  reset(key) {
    return native.reset(this.#handle, key, 0n) === 1;
  }

  // A decision with a hold, under a quota such as 'concurrency 20 lease 30s'. It ends by release or
  // with its lease: leaseMs, or what the quota says.
  acquire(key, {cost = 1, leaseMs = 0} = {}) {
    const held = native.acquire(this.#handle, key, wholeNumber('cost', cost),
      nanoseconds('leaseMs', leaseMs));
    const hold = held === 1 ? new Hold(copyOf(native.holdAt, native.holdSize)) : null;
    return Object.assign(lastDecision(), {hold});
  }

  // False: it had ended already.
  release(hold) {
    return native.release(this.#handle, Hold.bytesOf(hold)) === 1;
  }

  // The lease begins anew. False: the hold has ended, and may be somebody else's.
  renew(hold, {leaseMs = 0} = {}) {
    return native.renew(this.#handle, Hold.bytesOf(hold), nanoseconds('leaseMs', leaseMs)) === 1;
  }

  // A decision with a reservation, for a cost known only afterwards: charges the estimate. It can
  // be settled for lastsMs (10 minutes), and stays charged if nobody does.
  reserve(key, estimate, {lastsMs = 0} = {}) {
    const made = native.reserve(this.#handle, key, wholeNumber('estimate', estimate),
      nanoseconds('lastsMs', lastsMs));
    const reservation = made === 1 ? answer.getBigUint64(native.reservationAt, little) : null;
    return Object.assign(lastDecision(), {reservation});
  }

  // What was used in the end. Counts once.
  settle(reservation, actual) {
    native.settle(this.#handle, reservation, wholeNumber('actual', actual));
    const at = native.settlementAt;
    return {
      actual: Number(answer.getBigUint64(at, little)),
      givenBack: answer.getUint32(at + 8, little),
      charged: answer.getUint32(at + 12, little),
      outcome: SETTLED[answer.getUint32(at + 16, little)],
      decision: new Decision(answer, at + 24),
    };
  }

  // The most frequent keys so far, if it was made with topKeys.
  topKeys(most = 10) {
    return native.topKeys(this.#handle, wholeNumber('most', most, 1, TOP_KEYS_MAX))
      .map(({cut, ...rest}) => ({key: rest.bytes.toString(), cut: cut === 1, ...rest}));
  }

  // Changes the quota; what keys owe is carried over.
  update(quota) {
    native.update(this.#handle, quota);
  }

  // Of the store that the limiter is on.
  stats() {
    return native.stats(this.#handle);
  }
}

module.exports = {Decision, Hold, Limiter, Store, version: native.version};
