// Our rate limit headers, read by the packages that clients use: usage read_back.mjs <samples>.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import { parseRateLimit } from 'ratelimit-header-parser'
import { parseList } from 'structured-headers'

const samples = new Map()
const program = process.env.WEIR_ANSWER_SAMPLES
for (const line of execFileSync(program, { encoding: 'utf8' }).trim().split('\n')) {
  const { case: name, answer } = JSON.parse(line)
  const [head] = answer.split('\r\n\r\n')
  const headers = new Headers(
    head.split('\r\n').slice(1).map((field) => {
      const colon = field.indexOf(': ')
      return [field.slice(0, colon), field.slice(colon + 2)]
    })
  )
  samples.set(name, headers)
}

// Seconds from now, give or take the test's own time.
const isIn = (date, seconds) => Math.abs(date.getTime() - Date.now() - seconds * 1000) < 60_000

for (const name of ['x-unix', 'x-delta', 'x-list', 'draft-3', 'draft-7']) {
  test(`ratelimit-header-parser reads ${name}`, () => {
    const read = parseRateLimit(samples.get(name))
    assert.equal(read.limit, 100)
    assert.equal(read.remaining, 40)
    assert.equal(read.used, 60)
    if (name === 'x-unix') assert.equal(read.reset.getTime(), 1_700_000_030_000)
    else assert.ok(isIn(read.reset, 30), `${read.reset}`)
  })
}

for (const name of ['x-unix-denied', 'draft-7-denied']) {
  test(`ratelimit-header-parser reads ${name}`, () => {
    const headers = samples.get(name)
    const read = parseRateLimit(headers)
    assert.equal(read.limit, 100)
    assert.equal(read.remaining, 0)
    assert.equal(headers.get('retry-after'), '13')
  })
}

const items = (headers, field) =>
  parseList(headers.get(field)).map(([name, parameters]) => [name, Object.fromEntries(parameters)])

test('structured-headers reads RateLimit-Policy of draft 10', () => {
  assert.deepEqual(items(samples.get('draft-10'), 'ratelimit-policy'), [
    ['plan', { q: 100, w: 60 }],
    ['po"l\\i te %C3%A4 10/min', { q: 10, w: 60 }],
    ['po"l\\i te %C3%A4 500/h', { q: 500, w: 3600 }]
  ])
})

test('structured-headers reads RateLimit of draft 10', () => {
  assert.deepEqual(items(samples.get('draft-10'), 'ratelimit'), [
    ['plan', { r: 40, t: 30 }],
    ['po"l\\i te %C3%A4 10/min', { r: 9, t: 30 }],
    ['po"l\\i te %C3%A4 500/h', { r: 499, t: 30 }]
  ])
})

test('a refusal tells no t later than Retry-After', () => {
  const headers = samples.get('draft-10-denied')
  const retryAfter = Number(headers.get('retry-after'))
  const list = items(headers, 'ratelimit')
  assert.deepEqual(list[0], ['plan', { r: 0, t: 13 }])
  for (const [, { t }] of list) assert.ok(t === undefined || t <= retryAfter)
})
