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
  assert.throws(() => new Limiter('2/h', {store: {}}), /^TypeError: store:/);
  assert.throws(() => new Limiter('2/h', {store: new Store(small), keys: 'text'}),
    /^TypeError: keys: set it on the store/);
  assert.throws(() => new Limiter('2/h', {budgetBytes: -1}), /^RangeError: budgetBytes:/);
  assert.throws(() => new Limiter('2/h', {fleetSecret: -1n}), /^RangeError: fleetSecret:/);
  assert.throws(() => new Limiter('2/h', {recordPercent: 101}), /^RangeError: recordPercent:/);
  assert.throws(() => new Limiter('2/h', {sketchPercent: 51}), /options.sketch_percent: 51/);
  assert.throws(() => new Limiter('2/h', {precision: 'rough'}), /^TypeError: precision:/);
  assert.throws(() => new Limiter('2/h', {topKeys: 4097}), /^RangeError: topKeys:/);
  assert.throws(() => new Limiter('2/h', {topKeysSample: 3}), /top_keys_sample: 3/);
  assert.throws(() => limiter.checkMany(['k', 7]), /^TypeError: keys:/);
  assert.throws(() => limiter.checkMany(new Array(65537).fill('k')), /^RangeError: keys: 65537/);
  assert.throws(() => limiter.acquire('k', {leaseMs: NaN}), /^TypeError: leaseMs:/);
  assert.throws(() => limiter.acquire('k', {leaseMs: '5'}), /^TypeError: leaseMs:/);
  assert.throws(() => limiter.release(null), /^TypeError: hold:/);
  assert.throws(() => limiter.renew({}), /^TypeError: hold:/);
  assert.throws(() => limiter.settle(7, 1), /^TypeError: reservation:/);
  assert.throws(() => limiter.settle(7n, 1.5), /^TypeError: actual:/);
  assert.throws(() => limiter.topKeys(0), /^RangeError: most:/);
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
  assert.equal(limiter.charge('again', 6).allowed, true);
  assert.equal(limiter.reset('again'), true);
  assert.equal(limiter.check('again', 0).remaining, 10);
  assert.equal(limiter.reset('never seen'), false);
  assert.throws(() => limiter.reset(''), /key/);
  assert.equal(limiter.takeUpTo('k', 20).charged, 10);
  limiter.update('15/h fixed-window from first-hit');
  assert.equal(limiter.check('k', 0).remaining, 5);
});

test('many keys at once are decided as one after the other', () => {
  const limiter = new Limiter('2/h burst 2', small);
  const keys = ['k', Buffer.from('k'), 'é'.repeat(200), 'k', '', 'x'.repeat(70000), 'a\0b'];
  const decisions = limiter.checkMany(keys);
  assert.deepEqual(decisions.map((d) => d.allowed), [true, true, true, false, false, false, false]);
  assert.deepEqual(decisions.map((d) => d.problem),
    ['none', 'none', 'none', 'none', 'key_empty', 'key_too_long', 'key_has_nul']);
  assert.equal(limiter.check('é'.repeat(200), 0).remaining, 1);
  assert.deepEqual(limiter.checkMany([]), []);
  assert.deepEqual(limiter.checkMany(new Set(['s', 't']), 2).map((d) => d.charged), [2, 2]);
  assert.equal(limiter.checkMany(Array.from({length: 5000}, (_, i) => `key ${i}`))
    .filter((d) => d.allowed).length, 5000);
});

test('a hold is released once and has a fence that grows', () => {
  const limiter = new Limiter('concurrency 1 lease 30s', small);
  const first = limiter.acquire('k');
  assert.ok(first.allowed && limiter.renew(first.hold, {leaseMs: 60e3}));
  const denied = limiter.acquire('k');
  assert.equal(denied.allowed, false);
  assert.equal(denied.hold, null);
  assert.ok(denied.retryAfterMs > 30e3 && denied.retryAfterMs <= 60e3);
  assert.ok(limiter.release(first.hold));
  assert.ok(!limiter.release(first.hold));
  assert.ok(!limiter.renew(first.hold));
  const second = limiter.acquire('k', {leaseMs: 0.5});
  assert.ok(second.hold.fence > first.hold.fence);
  assert.equal(limiter.acquire('k', {leaseMs: -1}).problem, 'lease_out_of_range');
  assert.equal(new Limiter('1/h', small).acquire('k').problem, 'wrong_quota');
});

test('a reservation is settled once', () => {
  const limiter = new Limiter('100/day fixed-window', {...small, recordPercent: 20});
  const {reservation, remaining} = limiter.reserve('k', 40, {lastsMs: 60e3});
  assert.equal(remaining, 60);
  const settled = limiter.settle(reservation, 10);
  assert.deepEqual([settled.outcome, settled.givenBack, settled.decision.remaining],
    ['settled', 30, 90]);
  assert.deepEqual([limiter.settle(reservation, 99).outcome, limiter.settle(1n, 1).outcome],
    ['before', 'gone']);
  assert.equal(limiter.settle(limiter.reserve('k', 5).reservation, 25).charged, 20);
  assert.equal(limiter.check('k', 0).remaining, 65);
  assert.equal(limiter.reserve('k', 66).reservation, null);
  assert.equal(new Limiter('1/h', small).reserve('k', 1).problem, 'no_records');
});

test('the most frequent keys are named', () => {
  const limiter = new Limiter('5/h fixed-window', {...small, topKeys: 8, topKeysSample: 1});
  limiter.checkMany([...Array(7).fill('often'), 'x'.repeat(100), 'x'.repeat(100), 'once']);
  const [first, second, ...rest] = limiter.topKeys();
  assert.deepEqual({...first, bytes: undefined},
    {key: 'often', bytes: undefined, cut: false, count: 7, denied: 2, error: 0});
  assert.deepEqual([second.key, second.cut, second.count], ['x'.repeat(64), true, 2]);
  assert.equal(rest.length, 1);
  assert.equal(limiter.topKeys(1).length, 1);
  assert.deepEqual(new Limiter('5/h', small).topKeys(), []);
});

test('keys begin in the sketch if asked to, and hot keys need not be leased', () => {
  const limiter = new Limiter('100/h fixed-window',
    {...small, precision: 'sketch', sketchPercent: 25, hotKeys: false});
  assert.equal(limiter.check('few').basis, 'sketch');
  const allowed = limiter.checkMany(Array(200).fill('many')).filter((d) => d.allowed).length;
  assert.ok(allowed > 50 && allowed <= 100);
  const stats = limiter.stats();
  assert.deepEqual([stats.promotions, stats.liveSlots, stats.records], [1, 1, 0]);
  assert.deepEqual([stats.leases, stats.leasesReturned, stats.leaseUnitsReturned], [0, 0, 0]);
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
