'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const {Worker} = require('node:worker_threads');
const {Limiter, Store, version} = require('./index.js');
const packageVersion = require('./package.json').version;

const small = {budgetBytes: 1 << 20};

test('the package has the version of the library', () => assert.equal(version, packageVersion));

test('what exceeds the burst is denied', () => {
  const limiter = new Limiter('2/h burst 2', small);
  assert.deepEqual([1, 2, 3].map(() => limiter.allows('k')), [true, true, false]);
  const decision = limiter.check('k');
  assert.equal(decision.outcome, 'denied');
  assert.equal(decision.limit, 2);
  assert.equal(decision.remaining, 0);
  assert.equal(decision.basis, 'store');
  assert.equal(decision.problem, 'none');
  assert.ok(decision.retryAfterMs > 1790e3 && decision.retryAfterMs <= 1800e3);
  assert.ok(limiter.check('été').allowed);
});

test('a queue says when to start', () => {
  const limiter = new Limiter('1/h burst 2 queue', small);
  assert.equal(limiter.check('k').startAfterMs, 0);
  const second = limiter.check('k').startAfterMs;
  assert.ok(second > 3590e3 && second <= 3600e3);
  assert.equal(limiter.check('k').startAfterMs, 0);
});

test('a string and its bytes are the same key, short or long', () => {
  const limiter = new Limiter('1/h burst 1', small);
  for (const key of ['k', 'é'.repeat(125), 'é'.repeat(126), 'é'.repeat(127), 'x'.repeat(65535)]) {
    assert.ok(limiter.allows(key), `${key.length}`);
    assert.ok(!limiter.allows(Buffer.from(key)), `${key.length}`);
  }
});

test('questions without an answer are refused', () => {
  const limiter = new Limiter('2/h burst 2', small);
  for (const [key, cost, problem] of [
    ['', 1, 'key_empty'], [new Uint8Array(0), 1, 'key_empty'], ['a\0b', 1, 'key_has_nul'],
    ['x'.repeat(65536), 1, 'key_too_long'], ['é'.repeat(40000), 1, 'key_too_long'],
    ['k', 3, 'cost_above_burst'], ['k', -1, 'cost_too_large']]) {
    const decision = limiter.check(key, cost);
    assert.equal(decision.outcome, 'refused');
    assert.equal(decision.problem, problem);
    assert.equal(decision.allowed, false);
  }
});

test('calls that are wrong throw and name the argument', () => {
  const limiter = new Limiter('2/h burst 2', small);
  assert.throws(() => limiter.check(42), /^TypeError: key:/);
  assert.throws(() => limiter.check(new Uint16Array(2)), /^TypeError: key:/);
  assert.throws(() => limiter.check('k', 1.5), /^TypeError: cost:/);
  assert.throws(() => limiter.charge('k', 1, 'steal'), /^TypeError: mode:/);
  assert.throws(() => limiter.giveBack(new Uint8Array(3)), /^TypeError: receipt:/);
  assert.throws(() => limiter.giveBack({}), /^TypeError: receipt:/);
  assert.throws(() => limiter.update(7), /^TypeError: quota:/);
  assert.throws(() => limiter.update('2/h\0'), /^TypeError: quota:/);
  assert.throws(() => new Limiter('2 furlongs', small), {code: 'invalid_argument'});
  assert.throws(() => new Limiter('2/h', {budgetBytes: 1}), /budget_bytes/);
  assert.throws(() => new Limiter('2/h', {budget: 1}), /^TypeError: budget:/);
  assert.throws(() => new Limiter('2/h', {overflow: 'maybe'}), /^TypeError: overflow:/);
  assert.throws(() => new Limiter('2/h', {store: {}}), TypeError);
});

test('limiters share a store with binary keys', () => {
  const store = new Store({...small, keys: 'binary'});
  const one = new Limiter('1/h burst 1', {store});
  const five = new Limiter('5/h burst 5', {store});
  assert.ok(one.allows('a\0b'));
  assert.ok(!one.allows('a\0b'));
  assert.ok(five.allows('a\0b', 5));
  const stats = one.stats();
  assert.equal(stats.decisions, 3);
  assert.equal(stats.denials, 1);
  assert.equal(stats.budgetBytes, 1 << 20);
});

test('what was charged can be given back once, and quotas change', () => {
  const limiter = new Limiter('10/h fixed-window from first-hit', small);
  const {charged, receipt} = limiter.charge('k', 6);
  assert.equal(charged, 6);
  assert.equal(limiter.giveBack(receipt), 6);
  assert.equal(limiter.giveBack(receipt), 0);
  assert.equal(limiter.takeUpTo('k', 20).charged, 10);
  limiter.update('15/h fixed-window from first-hit');
  assert.equal(limiter.check('k', 0).remaining, 5);
});

test('a worker thread has answers of its own', async () => {
  const limiter = new Limiter('2/h burst 2', small);
  limiter.check('k');
  const worker = new Worker(`
    const {Limiter} = require(${JSON.stringify(require.resolve('./index.js'))});
    const limiter = new Limiter('7/h burst 7', {budgetBytes: 1 << 20});
    require('node:worker_threads').parentPort.postMessage(limiter.check('k').remaining);
  `, {eval: true});
  const remaining = await new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  assert.equal(remaining, 6);
  assert.equal(limiter.check('k').remaining, 0);
});
