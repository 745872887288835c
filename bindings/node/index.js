// weir for Node.
//
//   const {Limiter} = require('weir');
//   const limiter = new Limiter('100/min burst 20');
//   const decision = limiter.check('user:42');
//   if (!decision.allowed) reply429(decision.retryAfterMs);
//
// Calls are synchronous: a decision takes less than any promise would. A worker thread has limiters
// of its own, since handles cannot be sent to it; so has each process of a cluster.
'use strict';

const native = require('./weir.node');

const OVERFLOW = ['sketch', 'deny', 'allow'];
const KEYS = ['text', 'binary'];
const MODES = ['admit', 'count-always', 'up-to', 'dry-run'];

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

function wholeNumber(name, value) {
  if (!Number.isSafeInteger(value)) {
    throw new TypeError(`${name}: ${value} is not allowed; pass a whole number`);
  }
  return value;
}

function nativeOptions(options) {
  const {budgetBytes = 0, maxSkewMs = 0, fleetSecret = 0n, overflow = 'sketch', keys = 'text',
    hugePages = true, ...unknown} = options;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) throw new TypeError(`${stray}: not an option`);
  return [
    wholeNumber('budgetBytes', budgetBytes),
    wholeNumber('maxSkewMs', maxSkewMs) * 1e6,
    BigInt(fleetSecret),
    indexIn('overflow', overflow, OVERFLOW),
    indexIn('keys', keys, KEYS),
    hugePages ? 0 : 1,
  ];
}

// In two halves, because a BigInt is made on the heap. Exact up to 104 days, near enough beyond.
function milliseconds(offset) {
  const high = answer.getInt32(little ? offset + 4 : offset, little);
  const low = answer.getUint32(little ? offset : offset + 4, little);
  return (high * 2 ** 32 + low) / 1e6;
}

class Decision {
  constructor() {
    this.retryAfterMs = milliseconds(0);
    this.resetAfterMs = milliseconds(8);
    this.limit = answer.getUint32(16, little);
    this.remaining = answer.getUint32(20, little);
    this.charged = answer.getUint32(24, little);
    this.allowed = answer.getUint8(31) === 1;
    this.outcome = native.outcomes[answer.getUint8(28)];
    this.basis = native.bases[answer.getUint8(29)];
    this.problem = native.problems[answer.getUint8(30)];
  }

  // How long to wait before starting; 0 unless the quota is a queue.
  get startAfterMs() {
    return this.allowed ? this.retryAfterMs : 0;
  }
}

// Memory of a fixed size for several limiters: new Store({budgetBytes: 16 << 20}).
class Store {
  #handle;

  constructor(options = {}) {
    this.#handle = native.createStore(...nativeOptions(options));
  }

  static handleOf(store) {
    return store.#handle;
  }
}

// A quota counted by key, on a store ({store}) or with memory of its own (options as for Store).
class Limiter {
  #handle;

  constructor(quota, {store, ...options} = {}) {
    if (store === undefined) {
      this.#handle = native.createLimiter(quota, ...nativeOptions(options));
    } else {
      const [stray] = Object.keys(options);
      if (stray !== undefined) throw new TypeError(`${stray}: set it on the store`);
      this.#handle = native.createLimiterOn(quota, Store.handleOf(store));
    }
  }

  // Takes `cost` units or none; 0 only looks. A key is a string or a Uint8Array.
  check(key, cost = 1) {
    native.check(this.#handle, key, wholeNumber('cost', cost));
    return new Decision();
  }

  // check(key, cost).allowed, without the object.
  allows(key, cost = 1) {
    return native.check(this.#handle, key, wholeNumber('cost', cost)) === 1;
  }

  // A decision with a receipt for giveBack. Modes: admit, count-always, up-to, dry-run.
  charge(key, cost = 1, mode = 'admit') {
    const receipt = new Uint8Array(32);
    native.charge(this.#handle, key, wholeNumber('cost', cost), indexIn('mode', mode, MODES),
      receipt);
    return Object.assign(new Decision(), {receipt});
  }

  takeUpTo(key, most) {
    return this.charge(key, most, 'up-to');
  }

  // The units given back, as far as they were still owed. A receipt counts once.
  giveBack(receipt) {
    return native.giveBack(this.#handle, receipt);
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

module.exports = {Decision, Limiter, Store, version: native.version};
